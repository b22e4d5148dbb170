//! The primary is killed and started again while processes contend for a lock.

use std::time::Duration;

use anyhow::Result;
use fencelock_test_support::clock::{ms, now};

use crate::mongo_set::MongoSet;
use crate::outcome::Outcome;
use crate::workers::{Progress, Workers, waiting};

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How often the primary is killed
    #[arg(long, default_value_t = 20)]
    kills: u32,
    #[arg(long, default_value_t = 8)]
    processes: usize,
}

const TTL: Duration = ms(3_000);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let mut set = waiting(MongoSet::start);
    let workers = Workers::start(&set.url(), "killed", TTL, options.processes).await?;
    let mut progress = Progress::default();
    for _ in 0..options.kills {
        tokio::time::sleep(ms(fastrand::u64(100..1_500))).await;
        let primary = waiting(|| set.primary());
        let fault = now();
        set.members[primary].kill();
        waiting(|| set.primary_after(primary));
        let over = now();
        let grant = workers.grants_since(over, 3).await?;
        progress.note(fault, over, grant);
        waiting(|| {
            set.members[primary].restart();
            set.settle();
        });
    }
    let mut outcome = Outcome::default();
    outcome.figure("primary killed", options.kills.to_string());
    // The lease that the dead primary had granted last, and a look period to notice its end.
    progress.judge(TTL + TTL / 3 + ms(1_000), &mut outcome);
    workers.finish(&mut outcome).await?;
    Ok(outcome)
}
