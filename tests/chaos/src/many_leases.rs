//! Many leases of one client over a slow link: one watchdog renews them all, and none is lost.

use std::time::{Duration, Instant};

use anyhow::Result;
use fencelock::{Client, Lease, LockOptions};
use fencelock_test_support::clock::ms;
use fencelock_test_support::process::{cpu_seconds, resident_bytes};
use fencelock_test_support::redis_server::{RedisServer, calls};
use fencelock_test_support::toxiproxy::Proxy;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 10_000)]
    leases: u32,
    #[arg(long, default_value_t = 5000)]
    ttl_ms: u64,
    #[arg(long, default_value_t = 25)]
    hold_s: u64,
    /// Added to the link in each direction
    #[arg(long, default_value_t = 25)]
    delay_ms: u64,
}

/// How many acquires are under way at once: few, because the memory that these need and give back
/// is used again by leases, which then seem to need less.
fn at_once(leases: u32) -> usize {
    (leases as usize / 100).max(50)
}

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let server = RedisServer::start()?;
    let proxy = Proxy::to(server.port())?;
    proxy.delay(options.delay_ms)?;
    let mut connection = server.connection().await?;
    let client = Client::connect(&proxy.redis_url()).await?;
    let ttl = Duration::from_millis(options.ttl_ms);

    // What the requests under way need does not count. Held on, so that the memory of these
    // leases is not used again.
    let at_once = at_once(options.leases);
    let warm = acquire(&client, "warm", at_once as u32, ttl, at_once).await?;

    let memory = resident_bytes()?;
    let start = Instant::now();
    let mut leases = acquire(&client, "many", options.leases, ttl, at_once).await?;
    let acquiring = start.elapsed();
    let each = resident_bytes()?.saturating_sub(memory) as f64 / leases.len() as f64;
    leases.extend(warm);

    let pid = std::process::id();
    let (cpu, server_cpu) = (cpu_seconds(pid)?, cpu_seconds(server.pid())?);
    let renewals = calls(&mut connection, &["evalsha"]).await?;
    let start = Instant::now();
    tokio::time::sleep(Duration::from_secs(options.hold_s)).await;
    let held_for = start.elapsed().as_secs_f64();
    let share = (cpu_seconds(pid)? - cpu) / held_for * 100.0;
    let server_share = (cpu_seconds(server.pid())? - server_cpu) / held_for * 100.0;
    let renewals = calls(&mut connection, &["evalsha"]).await? - renewals;
    let lost = leases.iter().filter(|lease| !lease.is_held()).count();
    let shortest = leases.iter().map(Lease::remaining).min().unwrap_or_default();

    let start = Instant::now();
    let count = leases.len();
    let refused = stream::iter(leases)
        .map(async |lease| lease.release().await.is_err())
        .buffer_unordered(500)
        .filter(|refused| std::future::ready(*refused))
        .count()
        .await;
    let mut outcome = Outcome::default();
    let mut figure = |what: &str, value: String| outcome.figure(what, value);
    figure(
        "leases, ttl, held for, delay added",
        format!(
            "{count}, {} s, {held_for:.0} s, {}+{} ms",
            ttl.as_secs_f64(),
            options.delay_ms,
            options.delay_ms
        ),
    );
    figure("taken in, released in", format!("{acquiring:.1?}, {:.1?}", start.elapsed()));
    figure("lost", lost.to_string());
    figure("shortest time that was left", format!("{shortest:.1?}"));
    figure("renewals per lease and ttl/3", {
        let turns = held_for / (ttl.as_secs_f64() / 3.0);
        format!("{:.2}", renewals as f64 / count as f64 / turns)
    });
    figure("share of a core, client / server", format!("{share:.1} % / {server_share:.1} %"));
    figure("memory per lease", format!("{each:.0} bytes"));
    outcome.promise(lost == 0 && refused == 0, || {
        format!("{lost} leases were lost, {refused} could not be released")
    });
    Ok(outcome)
}

async fn acquire(
    client: &Client,
    name: &str,
    count: u32,
    ttl: Duration,
    at_once: usize,
) -> Result<Vec<Lease>> {
    let locks = (0..count).map(|i| {
        let lock = client.lock_with(&format!("{name}-{i}"), LockOptions::new().ttl(ttl));
        async move { anyhow::Ok(lock?.acquire_timeout(ms(60_000)).await?) }
    });
    stream::iter(locks).buffer_unordered(at_once).try_collect().await
}
