//! The leader is killed and started again while processes contend for a lock.

use std::time::Duration;

use anyhow::Result;
use fencelock_test_support::clock::{ms, now};

use crate::outcome::Outcome;
use crate::workers::{Progress, Workers, waiting};
use crate::zookeeper_ensemble::ZooKeeperEnsemble;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How often the leader is killed
    #[arg(long, default_value_t = 20)]
    kills: u32,
    #[arg(long, default_value_t = 8)]
    processes: usize,
}

const TTL: Duration = ms(4_000);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let mut ensemble = waiting(ZooKeeperEnsemble::start);
    let workers = Workers::start(&ensemble.url(), "killed", TTL, options.processes).await?;
    let mut progress = Progress::default();
    for _ in 0..options.kills {
        tokio::time::sleep(ms(fastrand::u64(100..1_500))).await;
        let leader = waiting(|| ensemble.leader());
        let fault = now();
        ensemble.members[leader].kill();
        waiting(|| ensemble.leader_after(leader));
        let over = now();
        let grant = workers.grants_since(over, 3).await?;
        progress.note(fault, over, grant);
        waiting(|| {
            ensemble.members[leader].restart();
            ensemble.settle();
        });
    }
    let mut outcome = Outcome::default();
    outcome.figure("leader killed", options.kills.to_string());
    // The new leader grants every session its whole time anew.
    progress.judge(TTL * 2 + ms(1_000), &mut outcome);
    workers.finish(&mut outcome).await?;
    Ok(outcome)
}
