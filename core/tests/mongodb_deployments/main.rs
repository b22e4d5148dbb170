//! MongoDB as it runs in production: members that die, freeze, step down or are cut off, users
//! with few rights, TLS, many first users at once. Real servers, started by each test.

// A test that cannot go on has failed; the lint's own exception covers only #[test] functions.
#![allow(clippy::unwrap_used)]

#[path = "../support/authority.rs"]
mod authority;
#[path = "../support/background.rs"]
mod background;
#[path = "../support/freeze.rs"]
mod freeze;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/links.rs"]
mod links;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/mongo_server.rs"]
mod mongo_server;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/mongo_set.rs"]
mod mongo_set;
#[path = "../support/ports.rs"]
mod ports;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/server_process.rs"]
mod server_process;

use std::future::Future;
use std::time::{Duration, Instant};

use fencelock::{Client, Lease, Lock, LockOptions};

mod failover;
mod first_use;
mod rights;
mod tls;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Long enough for anything but a hang on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(ms(10)).await;
    }
}

fn lock(client: &Client, name: &str, ttl: Duration) -> Lock {
    client.lock_with(name, LockOptions::new().ttl(ttl)).expect("valid options")
}

/// Starts to wait for the lock and returns when the backend has the contender in its queue.
async fn queue_up(client: &Client, lock: &Lock) -> tokio::task::JoinHandle<Lease> {
    let waiting = lock.clone();
    let task = tokio::spawn(async move { waiting.acquire().await.expect("a grant") });
    until("a place in the queue", || async {
        client.inspect(lock.name()).await.is_ok_and(|info| !info.queue.is_empty())
    })
    .await;
    task
}
