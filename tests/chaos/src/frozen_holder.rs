//! A process that holds the lock is stopped for longer than ttl. Its first check afterwards,
//! before any I/O, must say lost; meanwhile somebody else has got the lock, and keeps it.

use std::time::Duration;

use anyhow::{Result, bail};
use fencelock::{Client, LockOptions};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::{ms, ms_between, now};
use fencelock_test_support::redis_server::RedisServer;
use fencelock_test_support::samples::Samples;
use futures_util::future::try_join_all;

use crate::agents::{News, Order};
use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How often a holder is stopped
    #[arg(long, default_value_t = 20)]
    tries: u32,
    /// How many holders are stopped side by side
    #[arg(long, default_value_t = 5)]
    lanes: u32,
}

const TTL: Duration = ms(1000);
/// 2.5 ttl.
const STOPPED: Duration = ms(2500);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let server = RedisServer::start()?;
    let each = options.tries.div_ceil(options.lanes);
    let lanes = (0..options.lanes).map(|i| lane(server.url(), format!("held-{i}"), each));
    let mut outcome = Outcome::default();
    let mut blocked = Samples::default();
    for (found, waits) in try_join_all(lanes).await? {
        outcome.absorb(found);
        waits.into_iter().for_each(|wait| blocked.add(wait));
    }
    outcome.figure("holders stopped for 2.5 ttl of 1 s", blocked.len().to_string());
    outcome.figure(
        "the next one got the lock after, median / max",
        format!("{:.0} / {:.0} ms", blocked.median(), blocked.max()),
    );
    Ok(outcome)
}

async fn lane(url: String, name: String, tries: u32) -> Result<(Outcome, Vec<f64>)> {
    let mut outcome = Outcome::default();
    let mut blocked = Vec::new();
    let mut agent = Agent::start(&["agent", "holder", &url, &name, &TTL.as_millis().to_string()])?;
    let News::Ready = agent.hear(ms(10_000)).await? else { bail!("not ready") };
    let client = Client::connect(&url).await?;
    let lock = client.lock_with(&name, LockOptions::new().ttl(TTL))?;
    for _ in 0..tries {
        agent.tell(&Order::Go).await?;
        let News::Held { token } = agent.hear(ms(10_000)).await? else { bail!("not held") };
        tokio::time::sleep(ms(fastrand::u64(20..500))).await;
        agent.freeze()?;
        let stopped = now();
        let lease = lock.acquire().await?;
        blocked.push(ms_between(stopped, now()));
        tokio::time::sleep(STOPPED.saturating_sub(ms(ms_between(stopped, now()) as u64))).await;
        agent.thaw()?;
        let News::Woken { gap_ms, held, lost, release } = agent.hear(ms(10_000)).await? else {
            bail!("no check")
        };
        outcome.promise(!held && lost, || {
            format!("first check after {gap_ms} ms: held={held} lost={lost}")
        });
        outcome.promise(release == "LOST", || format!("its release said {release}"));
        outcome.promise(lease.is_held(), || "the new holder lost the lock".into());
        outcome.promise(lease.token().get() > token, || "the token did not rise".into());
        let released = lease.release().await;
        outcome.promise(released.is_ok(), || format!("the new holder's release: {released:?}"));
    }
    let longest = blocked.iter().copied().fold(0.0, f64::max);
    outcome.promise(longest <= TTL.as_millis() as f64 + 1000.0, || {
        format!("a stopped holder blocked for {longest:.0} ms, more than ttl + 1 s")
    });
    Ok((outcome, blocked))
}
