//! A session expires, because nothing of its client comes through: while it holds, lost has to
//! come before the next grant; while it waits, the contender has to queue again or to fail.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use fencelock::{Client, LockOptions};
use fencelock_test_support::clock::{ms, ms_between, now};
use fencelock_test_support::samples::Samples;
use fencelock_test_support::toxiproxy::{Proxy, Way};
use futures_util::future::try_join_all;
use serde_json::json;
use tokio::time::timeout;

use crate::lead::{Leads, Pair};
use crate::outcome::Outcome;
use crate::workers::waiting;
use crate::zookeeper_ensemble::ZooKeeperEnsemble;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How often a session expires while it holds, and how often while it waits
    #[arg(long, default_value_t = 50)]
    times: u32,
    /// How many of these happen side by side
    #[arg(long, default_value_t = 10)]
    lanes: u32,
}

const TTL: Duration = ms(2_000);
const PATIENCE: Duration = Duration::from_secs(40);

#[derive(Default)]
struct Tally {
    leads: Leads,
    /// How long after the line was back the contender stood in the queue again, in ms.
    queued_again: Vec<f64>,
    failed_clearly: u32,
    outcome: Outcome,
}

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let ensemble = waiting(ZooKeeperEnsemble::start);
    let each = options.times.div_ceil(options.lanes);
    let lanes = (0..options.lanes).map(|i| {
        // Followers and the leader in turn.
        let port = ensemble.members[i as usize % ensemble.members.len()].port();
        lane(ensemble.url(), port, format!("expired-{i}"), each)
    });
    let mut all = Tally::default();
    for tally in try_join_all(lanes).await? {
        all.leads.absorb(tally.leads);
        all.queued_again.extend(tally.queued_again);
        all.failed_clearly += tally.failed_clearly;
        all.outcome.absorb(tally.outcome);
    }
    let Tally { leads, queued_again, failed_clearly, mut outcome } = all;
    leads.judge("expired while it held", &mut outcome);
    outcome.figure(
        "expired while it waited: queued again, failed clearly",
        format!("{}, {failed_clearly}", queued_again.len()),
    );
    let mut times: Samples = queued_again.into_iter().collect();
    outcome.figure(
        "line back → in the queue again, min/p50/max",
        format!("{:.0} / {:.0} / {:.0} ms", times.min(), times.median(), times.max()),
    );
    Ok(outcome)
}

async fn lane(url: String, port: u16, name: String, times: u32) -> Result<Tally> {
    let proxy = Proxy::to(port)?;
    let behind = Client::connect(&format!("zookeeper://127.0.0.1:{}/", proxy.port()?)).await?;
    let direct = Client::connect(&url).await?;
    let options = || LockOptions::new().ttl(TTL);
    let (holder, next) = (behind.lock_with(&name, options())?, direct.lock_with(&name, options())?);
    let mut tally = Tally::default();
    for _ in 0..times {
        let pair = Pair::start(&holder, &next).await?;
        while direct.inspect(&name).await?.queue.is_empty() {
            tokio::time::sleep(ms(5)).await;
        }
        tokio::time::sleep(ms(fastrand::u64(0..1_000))).await;
        swallow(&proxy)?;
        let finished = pair.finish(&mut tally.leads).await;
        pass(&proxy)?;
        finished?;

        let lease = timeout(PATIENCE, next.acquire()).await.context("the direct one")??;
        let lock = holder.clone();
        let mut waits = tokio::spawn(async move { lock.acquire().await });
        queue(&direct, &name, 1).await?;
        tokio::time::sleep(ms(fastrand::u64(0..1_000))).await;
        swallow(&proxy)?;
        queue(&direct, &name, 0).await?;
        pass(&proxy)?;
        let back = now();
        tokio::select! {
            queued = queue(&direct, &name, 1) => {
                queued?;
                tally.queued_again.push(ms_between(back, now()));
            }
            failed = &mut waits => {
                tally.failed_clearly += 1;
                let code = failed?.err().map(|error| error.kind().code());
                tally.outcome.promise(code == Some("UNAVAILABLE"), || {
                    format!("the contender got {code:?} while another held")
                });
                lease.release().await?;
                continue;
            }
        }
        tally.outcome.promise(!waits.is_finished(), || "granted while another held".into());
        tally.outcome.promise(lease.is_held(), || "the direct one lost its lease".into());
        lease.release().await?;
        let lease =
            timeout(PATIENCE, waits).await.context("never granted after it queued again")??;
        lease?.release().await?;
    }
    Ok(tally)
}

/// Nothing passes, and nobody is told.
fn swallow(proxy: &Proxy) -> Result<()> {
    waiting(|| {
        proxy.add("up", "timeout", Way::Up, json!({ "timeout": 0 }))?;
        proxy.add("down", "timeout", Way::Down, json!({ "timeout": 0 }))
    })
}

fn pass(proxy: &Proxy) -> Result<()> {
    waiting(|| {
        proxy.remove("up")?;
        proxy.remove("down")
    })
}

/// Waits until so many wait.
async fn queue(client: &Client, name: &str, length: usize) -> Result<()> {
    let start = now();
    while client.inspect(name).await?.queue.len() != length {
        if ms_between(start, now()) > PATIENCE.as_millis() as f64 {
            bail!("the queue of {name} never had {length} contenders");
        }
        tokio::time::sleep(ms(5)).await;
    }
    Ok(())
}
