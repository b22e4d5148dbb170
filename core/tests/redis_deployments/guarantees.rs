//! What a single server guarantees when it forgets: the lines of `DEPLOYMENTS.md` that need no
//! second server.

use std::time::Duration;

use fencelock::{Client, LockState};

use crate::redis_pair::ask;
use crate::redis_server::RedisServer;
use crate::site::{lock, ms, queue_up, soon, until};

const LONG: Duration = Duration::from_secs(30);

async fn client(server: &RedisServer) -> Client {
    Client::connect(&server.url()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g3_a_restart_without_data_frees_the_lock_early_and_repeats_no_token() {
    let mut server = RedisServer::start();
    let (first, second) = (client(&server).await, client(&server).await);
    let lost = lock(&first, "a", LONG).acquire().await.unwrap();
    server.restart();
    let next = soon("the lock", lock(&second, "a", LONG).acquire()).await.unwrap();
    // Until its next renewal the first one believes to hold it: for that there is the token.
    assert!(next.token() > lost.token());
    until("lost", || async { lost.renew().await.is_err() && lost.is_lost() }).await;
    assert!(next.is_held());
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_restart_with_appendfsync_always_keeps_leases_and_queue() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let client = client(&server).await;
    let kept = lock(&client, "a", LONG).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, "a", LONG)).await;
    server.restart();
    until("a renewal after the restart", || async {
        assert!(kept.is_held(), "lost");
        kept.renew().await.is_ok()
    })
    .await;
    let owner = client.inspect("a").await.unwrap().owner;
    assert_eq!(owner, Some(kept.owner()));
    kept.release().await.unwrap();
    let next = soon("the hand-off after the restart", waiting).await.unwrap();
    assert!(next.token() > kept.token());
    next.release().await.unwrap();
}

/// Fills the server until it has dropped keys.
fn fill(server: &RedisServer) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    for round in 0.. {
        let mut values = redis::pipe();
        for n in 0..200 {
            let (key, value) = (format!("filler:{round}:{n}"), "x".repeat(2_000));
            values.cmd("SET").arg(key).arg(value).ignore();
        }
        values.query::<()>(&mut connection).unwrap();
        // All that was there before is gone by then.
        let first: bool = redis::cmd("EXISTS").arg("filler:0:0").query(&mut connection).unwrap();
        if !first {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g3_eviction_takes_locks_away_early_and_repeats_no_token() {
    let server = RedisServer::start_with(&[
        "--maxmemory",
        "6mb",
        "--maxmemory-policy",
        "allkeys-lru",
        "--maxmemory-samples",
        "64",
    ]);
    let (first, second) = (client(&server).await, client(&server).await);
    let lost = lock(&first, "a", LONG).acquire().await.unwrap();
    let mut evicted = false;
    for _ in 0..20 {
        fill(&server);
        evicted = ask::<u8>(&server, &["EXISTS", "fencelock:a"]) == 0;
        if evicted {
            break;
        }
        // The longer the lock is idle, the sooner it goes.
        tokio::time::sleep(ms(300)).await;
    }
    assert!(evicted, "the server kept the lock");
    let next = lock(&second, "a", LONG).try_acquire().await.unwrap().unwrap();
    assert!(next.token() > lost.token());
    assert_eq!(lost.renew().await.unwrap_err().kind().code(), "LOST");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_with_noeviction_a_full_server_keeps_what_is_held() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let client = client(&server).await;
    let kept = lock(&client, "a", LONG).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, "a", LONG)).await;
    ask::<()>(&server, &["CONFIG", "SET", "maxmemory", "1"]);
    let error = client.lock("b").unwrap().acquire().await.unwrap_err();
    assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}");
    assert!(error.to_string().contains("memory"), "{error}");
    kept.renew().await.unwrap();
    kept.release().await.unwrap();
    soon("the hand-off on a full server", waiting).await.unwrap().release().await.unwrap();
}

/// A client's wall clock plays no part: what is stored and granted is by the server's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g3_tokens_and_times_are_those_of_the_server() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let micros = || {
        let (seconds, micros): (u64, u64) = ask(&server, &["TIME"]);
        seconds * 1_000_000 + micros
    };
    let before = micros();
    let lease = lock(&client, "a", LONG).acquire().await.unwrap();
    let after = micros();
    assert!((before..=after).contains(&lease.token().get()));
    lease.release().await.unwrap();
    assert_eq!(client.inspect("a").await.unwrap().state, LockState::Free);
}
