//! Acquires are cancelled at random moments, many with the create already sent: while the client
//! lives on, no child of theirs is left.

use std::time::{Duration, Instant};

use anyhow::Result;
use fencelock::{Client, LockOptions};
use fencelock_test_support::clock::ms;
use fencelock_test_support::toxiproxy::Proxy;
use zookeeper_client as zk;

use crate::outcome::Outcome;
use crate::workers::waiting;
use crate::zookeeper_server::ZooKeeperServer;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How many acquires are cancelled at random moments
    #[arg(long, default_value_t = 300)]
    cancels: u32,
    /// How many more are cancelled while the create is under way
    #[arg(long, default_value_t = 40)]
    in_flight: u32,
}

/// What the link adds each way.
const DELAY_MS: u64 = 3;
const LONG_DELAY_MS: u64 = 80;
const TTL: Duration = ms(10_000);
const NAMES: u32 = 10;
/// A child that is no contender.
const EYE: &str = "eye";

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let server = waiting(ZooKeeperServer::start);
    let proxy = waiting(|| Proxy::to(server.port()))?;
    waiting(|| proxy.delay(DELAY_MS))?;
    let eye = zk::Client::connect(&server.host()).await?;
    let holder = Client::connect(&server.url()).await?;
    let client = Client::connect(&format!("zookeeper://127.0.0.1:{}/", proxy.port()?)).await?;
    let ttl = || LockOptions::new().ttl(TTL);
    let mut outcome = Outcome::default();

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
    while cancelled < options.cancels {
        let mut tasks = Vec::new();
        for _ in 0..10 {
            let lock = client.lock_with(&format!("name-{}", fastrand::u32(0..NAMES)), ttl())?;
            let time = Duration::from_micros(fastrand::u64(0..30_000));
            tasks.push(tokio::spawn(async move {
                // Dropping the future is what cancelling is in Rust.
                let acquired = tokio::time::timeout(time, lock.acquire()).await;
                matches!(acquired, Ok(Ok(lease)) if lease.release().await.is_ok())
            }));
        }
        for task in tasks {
            if task.await? { granted += 1 } else { cancelled += 1 }
        }
    }
    holding.abort();
    let _ = holding.await;
    holder.close().await;
    outcome.figure("cancelled, granted in time", format!("{cancelled}, {granted}"));
    none_left(&eye, "after random cancels", &mut outcome).await?;

    // Every name is known to the client by now, so that the create is the first request. A child of
    // ours keeps the servers from removing the lock's node.
    for i in 0..NAMES {
        let lease = client.lock_with(&format!("name-{i}"), ttl())?.acquire().await?;
        let mode = zk::CreateMode::Ephemeral.with_acls(zk::Acls::anyone_all());
        eye.create(&format!("/fencelock/name-{i}/{EYE}"), b"", &mode).await?;
        lease.release().await?;
    }
    waiting(|| {
        proxy.remove("delay-up")?;
        proxy.remove("delay-down")?;
        proxy.delay(LONG_DELAY_MS)
    })?;
    let created_before = created(&eye).await?;
    let mut in_flight = 0;
    for i in 0..options.in_flight {
        let lock = client.lock_with(&format!("name-{}", i % NAMES), ttl())?;
        // The answer takes twice the delay.
        let time = ms(fastrand::u64(5..LONG_DELAY_MS * 2 - 20));
        in_flight += u32::from(tokio::time::timeout(time, lock.acquire()).await.is_err());
    }
    none_left(&eye, "after cancels in flight", &mut outcome).await?;
    let created = created(&eye).await?.saturating_sub(created_before);
    outcome.figure(
        "cancelled before the create was answered, nodes created",
        format!("{in_flight}, {created}"),
    );
    let wanted = options.in_flight.min(20);
    outcome
        .promise(created.min(in_flight) >= wanted, || "too few with the create in flight".into());
    let lease = client.lock_with("name-0", ttl())?.acquire().await;
    outcome.promise(lease.is_ok(), || format!("the client does not live: {lease:?}"));
    Ok(outcome)
}

/// How many children the locks ever had.
async fn created(eye: &zk::Client) -> Result<u32> {
    let mut count = 0;
    for i in 0..NAMES {
        let stat = eye.check_stat(&format!("/fencelock/name-{i}")).await?;
        // Each create and each delete counts one.
        count += stat.map_or(0, |stat| (stat.cversion / 2) as u32);
    }
    Ok(count)
}

async fn none_left(eye: &zk::Client, when: &str, outcome: &mut Outcome) -> Result<()> {
    let start = Instant::now();
    let mut left = children(eye).await?;
    while !left.is_empty() && start.elapsed() < ms(15_000) {
        tokio::time::sleep(ms(10)).await;
        left = children(eye).await?;
    }
    outcome.figure(format!("clean {when}"), format!("{:.0?}", start.elapsed()));
    outcome.promise(left.is_empty(), || format!("left {when}, 15 s later: {left:?}"));
    // Nothing comes late, either.
    tokio::time::sleep(ms(1_000)).await;
    let late = children(eye).await?;
    outcome.promise(late.is_empty() || !left.is_empty(), || format!("came late {when}: {late:?}"));
    Ok(())
}

/// The contenders of all locks.
async fn children(eye: &zk::Client) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for i in 0..NAMES {
        match eye.list_children(&format!("/fencelock/name-{i}")).await {
            Ok(children) => all.extend(children.into_iter().filter(|child| child != EYE)),
            // An empty container was removed.
            Err(zk::Error::NoNode) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}
