//! What contenders cost that only wait: each look is a write that a majority has to confirm.

use std::time::Duration;

use anyhow::{Context, Result};
use fencelock::{Client, LockOptions};
use fencelock_test_support::clock::{ms, ms_between, now};
use mongodb::bson::{Bson, Document, doc};

use crate::mongo_set::MongoSet;
use crate::outcome::Outcome;
use crate::workers::waiting;

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
    let set = waiting(MongoSet::start);
    let primary = waiting(|| set.primary());
    let holder = Client::connect(&set.url()).await?;
    let client = Client::connect(&set.url()).await?;
    let lease = holder.lock_with("idle", LockOptions::new().ttl(TTL))?.acquire().await?;
    let mut waiters = Vec::new();
    for _ in 0..options.contenders {
        let lock = client.lock_with("idle", LockOptions::new().ttl(TTL))?;
        waiters.push(tokio::spawn(async move { lock.acquire().await }));
    }
    while holder.inspect("idle").await?.queue.len() < options.contenders {
        tokio::time::sleep(ms(20)).await;
    }
    // The stream opens, and the index is made, only once.
    tokio::time::sleep(ms(2_000)).await;
    let count = || {
        let status = waiting(|| set.members[primary].admin(doc! { "serverStatus": 1 }));
        let of = |command| total(&status, command);
        anyhow::Ok([of("findAndModify")?, of("getMore")?, of("aggregate")?])
    };
    let (start, before) = (now(), count()?);
    tokio::time::sleep(Duration::from_secs(options.seconds)).await;
    let (end, after) = (now(), count()?);
    let seconds = ms_between(start, end) / 1e3;
    let looks = after[0] - before[0];
    let rate = looks as f64 / seconds / options.contenders as f64;
    let mut outcome = Outcome::default();
    outcome.figure("contenders, seconds", format!("{}, {seconds:.1}", options.contenders));
    outcome.figure("findAndModify on the primary", looks.to_string());
    outcome.figure("writes of one contender", format!("{rate:.4} /s (at most 0.1)"));
    outcome.figure(
        "getMore (also those of the secondaries), aggregate",
        format!("{}, {}", after[1] - before[1], after[2] - before[2]),
    );
    outcome.promise(rate <= 0.1, || format!("{rate:.3} writes a second and contender"));
    outcome.promise(looks > 0, || "no signs of life at all".into());
    outcome.promise(lease.is_held(), || "the holder lost its lease".into());
    for waiter in waiters {
        waiter.abort();
    }
    Ok(outcome)
}

/// How often the server was given this command.
fn total(status: &Document, command: &str) -> Result<i64> {
    let metrics = status.get_document("metrics")?.get_document("commands")?;
    match metrics.get_document(command)?.get("total") {
        Some(Bson::Int64(total)) => Ok(*total),
        Some(Bson::Int32(total)) => Ok(i64::from(*total)),
        _ => None.context("no count of this command"),
    }
}
