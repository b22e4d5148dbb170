//! What contenders cost that only wait: nothing is written but what keeps their session alive,
//! whatever their number.

use std::time::Duration;

use anyhow::{Context, Result};
use fencelock::{Client, LockOptions};
use fencelock_test_support::clock::{ms, ms_between, now};

use crate::outcome::Outcome;
use crate::workers::waiting;
use crate::zookeeper_ensemble::ZooKeeperEnsemble;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 20)]
    contenders: usize,
    /// For how long they wait while it is counted
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

const TTL: Duration = Duration::from_secs(30);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let ensemble = waiting(ZooKeeperEnsemble::start);
    let leader = waiting(|| ensemble.leader());
    let holder = Client::connect(&ensemble.url()).await?;
    let client = Client::connect(&ensemble.url()).await?;
    let lease = holder.lock_with("idle", LockOptions::new().ttl(TTL))?.acquire().await?;
    let mut waiters = Vec::new();
    for _ in 0..options.contenders {
        let lock = client.lock_with("idle", LockOptions::new().ttl(TTL))?;
        waiters.push(tokio::spawn(async move { lock.acquire().await }));
    }
    while holder.inspect("idle").await?.queue.len() < options.contenders {
        tokio::time::sleep(ms(20)).await;
    }
    tokio::time::sleep(ms(1_000)).await;
    // Each transaction of the ensemble, of whatever kind, has a number.
    let zxid = || {
        let answer = waiting(|| ensemble.members[leader].ask("srvr"));
        let zxid = answer.lines().find_map(|line| line.strip_prefix("Zxid: 0x"));
        anyhow::Ok(i64::from_str_radix(zxid.context("no zxid")?, 16)?)
    };
    let (start, before) = (now(), zxid()?);
    tokio::time::sleep(Duration::from_secs(options.seconds)).await;
    let (end, after) = (now(), zxid()?);
    let seconds = ms_between(start, end) / 1e3;
    let writes = after - before;
    // Two sessions, each with a beat every quarter of its timeout; one of each may fall on the
    // edge.
    let beats = 2.0 * (seconds / (TTL.as_secs_f64() / 4.0) + 1.0);
    let mut outcome = Outcome::default();
    outcome.figure("contenders, seconds", format!("{}, {seconds:.1}", options.contenders));
    outcome.figure("transactions, beats of two sessions", format!("{writes}, {beats:.1}"));
    outcome.promise(writes as f64 <= beats, || format!("{writes} writes, but {beats:.1} beats"));
    outcome.promise(writes > 0, || "no beats at all".into());
    outcome.promise(lease.is_held(), || "the holder lost its lease".into());
    for waiter in waiters {
        waiter.abort();
    }
    Ok(outcome)
}
