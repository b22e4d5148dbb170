//! Acquires are cancelled at random moments, some with the request already sent. Afterwards there
//! are no keys but token records, and the client sends nothing.

use std::time::{Duration, Instant};

use anyhow::Result;
use fencelock::{Client, LockOptions};
use fencelock_test_support::clock::{ms, now};
use fencelock_test_support::monitor::Monitor;
use fencelock_test_support::redis_server::{RedisServer, keys};
use fencelock_test_support::toxiproxy::Proxy;
use redis::aio::MultiplexedConnection;

use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How many acquires are cancelled
    #[arg(long, default_value_t = 300)]
    cancels: u32,
}

/// What the link adds each way, so that many are cancelled while the request is under way.
const DELAY_MS: u64 = 3;
const TTL: Duration = ms(1000);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let server = RedisServer::start()?;
    let proxy = Proxy::to(server.port())?;
    proxy.delay(DELAY_MS)?;
    let mut connection = server.connection().await?;
    let holder = Client::connect(&server.url()).await?;
    let client = Client::connect(&proxy.redis_url()).await?;
    let ttl = || LockOptions::new().ttl(TTL);

    // Half of the names are free, the others held, and released now and then.
    let held: Vec<_> =
        (0..5).map(|i| holder.lock_with(&format!("name-{i}"), ttl())).collect::<Result<_, _>>()?;
    let holding = tokio::spawn(async move {
        loop {
            for lock in &held {
                if let Ok(Some(lease)) = lock.try_acquire().await {
                    tokio::time::sleep(ms(fastrand::u64(1..20))).await;
                    let _ = lease.release().await;
                }
            }
        }
    });
    let (mut cancelled, mut granted) = (0, 0);
    let mut tasks = Vec::new();
    while cancelled < options.cancels {
        for _ in 0..10 {
            let lock = client.lock_with(&format!("name-{}", fastrand::u32(0..10)), ttl())?;
            let time = Duration::from_micros(fastrand::u64(0..20_000));
            tasks.push(tokio::spawn(async move {
                // Dropping the future is what cancelling is in Rust.
                let acquired = tokio::time::timeout(time, lock.acquire()).await;
                matches!(acquired, Ok(Ok(lease)) if lease.release().await.is_ok())
            }));
        }
        for task in tasks.drain(..) {
            if task.await? { granted += 1 } else { cancelled += 1 }
        }
    }
    let cancels_ended = Instant::now();
    holding.abort();
    let _ = holding.await;
    holder.close().await;

    let mut outcome = Outcome::default();
    let mut left = leftovers(&mut connection).await?;
    while !left.is_empty() && cancels_ended.elapsed() < Duration::from_secs(15) {
        tokio::time::sleep(ms(10)).await;
        left = leftovers(&mut connection).await?;
    }
    outcome.figure("cancelled, granted in time", format!("{cancelled}, {granted}"));
    outcome.figure("clean after the last cancel", format!("{:.0?}", cancels_ended.elapsed()));
    outcome.promise(left.is_empty(), || format!("left after 15 s: {left:?}"));

    let eternal = eternal(&mut connection).await?;
    outcome.promise(eternal.is_empty(), || format!("keys without a ttl: {eternal:?}"));

    let monitor = Monitor::start(server.port())?;
    tokio::time::sleep(ms(2000)).await;
    let mark = format!("mark-{}", now());
    let _: String = redis::cmd("ECHO").arg(&mark).query_async(&mut connection).await?;
    let seen = monitor.take_until(&mark)?;
    outcome.figure("commands in 2 s afterwards", seen.len().to_string());
    outcome.promise(seen.is_empty(), || format!("it goes on sending: {:?}", seen[0].words));
    let late = leftovers(&mut connection).await?;
    outcome.promise(late.is_empty(), || format!("keys that came later: {late:?}"));
    Ok(outcome)
}

/// Keys other than token records and the marks of owner ids that have ended.
pub(crate) async fn leftovers(connection: &mut MultiplexedConnection) -> Result<Vec<String>> {
    let mut keys = keys(connection).await?;
    keys.retain(|key| !key.contains("~fl1:t:") && !key.contains("~fl1:x:"));
    Ok(keys)
}

/// Keys that would stay for ever.
pub(crate) async fn eternal(connection: &mut MultiplexedConnection) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for key in keys(connection).await? {
        let ttl: i64 = redis::cmd("PTTL").arg(&key).query_async(connection).await?;
        if ttl == -1 {
            found.push(key);
        }
    }
    Ok(found)
}
