//! The server is stopped at a random moment while a lease is held.
//!
//! The server's own expiry of the lock is an upper bound for "ttl after the last answered renewal
//! was sent": it counts from when that renewal was carried out. MONITOR tells when that was.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fencelock::{Client, Lease, LockOptions};
use fencelock_test_support::clock::{ms, wall_micros};
use fencelock_test_support::monitor::{Command, Monitor};
use fencelock_test_support::redis_server::RedisServer;
use fencelock_test_support::samples::Samples;
use futures_util::future::try_join_all;

use crate::agents::verdict;
use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How often the server is stopped
    #[arg(long, default_value_t = 50)]
    tries: u32,
    /// How many servers are stopped side by side
    #[arg(long, default_value_t = 5)]
    lanes: u32,
}

const TTL: Duration = ms(1000);
const KEY: &str = "fencelock:frozen";

/// One stop: how long before the server's expiry, in milliseconds.
struct Try {
    /// `is_held` turned false.
    unheld: f64,
    /// Whoever waited for `lost` was woken.
    woken: f64,
    /// What release said: it must be LOST.
    release: String,
}

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let each = options.tries.div_ceil(options.lanes);
    let lanes = try_join_all((0..options.lanes).map(|_| lane(each))).await?;
    let tries: Vec<Try> = lanes.into_iter().flatten().collect();

    let mut outcome = Outcome::default();
    let mut unheld: Samples = tries.iter().map(|t| t.unheld).collect();
    let mut woken: Samples = tries.iter().map(|t| t.woken).collect();
    let early = tries.iter().filter(|t| t.unheld > 0.0).count();
    outcome
        .figure("held was false before the server's expiry", format!("{early} of {}", tries.len()));
    for (what, samples) in [("held false", &mut unheld), ("lost() woken", &mut woken)] {
        outcome.figure(
            format!("{what} before the server's expiry, min / median / max"),
            format!("{:.1} / {:.1} / {:.1} ms", samples.min(), samples.median(), samples.max()),
        );
    }
    for t in &tries {
        outcome
            .promise(t.unheld > 0.0, || format!("held until {:.1} ms after the expiry", -t.unheld));
        outcome.promise(t.release == "LOST", || format!("release said {}", t.release));
    }
    Ok(outcome)
}

async fn lane(tries: u32) -> Result<Vec<Try>> {
    let server = RedisServer::start()?;
    let monitor = Monitor::start(server.port())?;
    let client = Client::connect(&server.url()).await?;
    let lock = client.lock_with("frozen", LockOptions::new().ttl(TTL))?;
    let mut found = Vec::new();
    for _ in 0..tries {
        let lease = lock.acquire().await?;
        tokio::time::sleep(ms(fastrand::u64(0..1500))).await;
        ensure!(lease.is_held(), "lost before anything happened");
        server.freeze()?;
        found.push(watch(lease, &monitor).await?);
        server.thaw()?;
    }
    Ok(found)
}

/// Watches a lease whose server has stopped.
async fn watch(lease: Lease, monitor: &Monitor) -> Result<Try> {
    let (unheld, woken) = tokio::join!(
        async {
            while lease.is_held() {
                tokio::time::sleep(ms(1)).await;
            }
            wall_micros()
        },
        async {
            lease.lost().await;
            wall_micros()
        }
    );
    let release = verdict(&lease.release().await);
    let last = monitor.take().into_iter().rev().find(grants);
    // The server counts whole milliseconds of when it read its clock, up to one before the stamp.
    let expiry = last.context("no grant seen")?.at + TTL.as_micros() as u64 - 1000;
    let before = |at: u64| (expiry as i64 - at as i64) as f64 / 1e3;
    Ok(Try { unheld: before(unheld), woken: before(woken), release })
}

/// Whether this command sets the lock's time to a full ttl.
fn grants(command: &Command) -> bool {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    matches!(words[..], ["SET" | "set", KEY, ..] | ["PEXPIRE" | "pexpire", KEY, ..])
}
