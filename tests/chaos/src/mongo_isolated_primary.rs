//! The primary is cut off from the other members, and clients still reach it: until it steps down
//! it takes writes that no majority will ever have. It must not grant anything.

use std::time::{Duration, Instant};

use anyhow::Result;
use fencelock::{Client, LockOptions};
use fencelock_test_support::clock::{ms, now};

use crate::mongo_set::MongoSet;
use crate::outcome::Outcome;
use crate::workers::{Progress, Workers, waiting};

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How often the primary is cut off
    #[arg(long, default_value_t = 10)]
    times: u32,
    /// How many contend through the whole set meanwhile
    #[arg(long, default_value_t = 4)]
    processes: usize,
}

const TTL: Duration = ms(3_000);
/// Locks that are asked for at the old primary alone.
const NAMES: u32 = 8;

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let set = waiting(MongoSet::start_with_links);
    let workers = Workers::start(&set.url(), "contended", TTL, options.processes).await?;
    let mut outcome = Outcome::default();
    let mut progress = Progress::default();
    let (mut asked, mut refused) = (0, 0);
    for round in 0..options.times {
        tokio::time::sleep(ms(fastrand::u64(100..1_000))).await;
        let primary = waiting(|| set.primary());
        let direct = format!("{}?directConnection=true", set.members[primary].url());
        let client = Client::connect(&direct).await?;
        // A free name whose last turn met nobody is taken in the short form.
        let lock = |name: &str| client.lock_with(name, LockOptions::new().ttl(TTL));
        for _ in 0..2 {
            lock("alone")?.acquire().await?.release().await?;
        }
        let fault = now();
        set.links().isolate(primary, set.members.len());
        // What is on its way at this instant may still arrive, and be granted.
        tokio::time::sleep(ms(100)).await;
        let mut attempts = Vec::new();
        for i in 0..NAMES {
            let name = match i {
                0 => "contended".to_owned(),
                1 => "alone".to_owned(),
                _ => format!("free-{round}-{i}"),
            };
            let lock = lock(&name)?;
            attempts.push(tokio::spawn(async move {
                let (mut grants, mut count) = (Vec::new(), 0);
                let start = Instant::now();
                while start.elapsed() < ms(4_000) {
                    count += 1;
                    if let Ok(lease) = lock.acquire_timeout(ms(1_500)).await {
                        grants.push(lease.name().to_owned());
                    }
                    tokio::time::sleep(ms(20)).await;
                }
                (grants, count)
            }));
        }
        waiting(|| set.primary_after(primary));
        let over = now();
        let grant = workers.grants_since(over, 2).await?;
        progress.note(fault, over, grant);
        for attempt in attempts {
            let (grants, count) = attempt.await?;
            asked += count;
            refused += count - grants.len();
            outcome.violations(
                grants.into_iter().map(|name| format!("the old primary granted {name}")),
            );
        }
        set.links().heal();
        waiting(|| set.settle());
        client.close().await;
    }
    outcome.figure("primary cut off", options.times.to_string());
    outcome.figure("acquires at the old primary, of which in vain", format!("{asked}, {refused}"));
    progress.judge(TTL + TTL / 3 + ms(1_000), &mut outcome);
    workers.finish(&mut outcome).await?;
    Ok(outcome)
}
