//! `replicas = n`: what the replicas did not acknowledge is no lease.

use std::time::{Duration, Instant};

use fencelock::{Client, ClientOptions, LockState};

use crate::redis_pair::{RedisPair, ask};
use crate::site::{lock, ms, queue_up, soon, until};

const LONG: Duration = Duration::from_secs(30);

async fn client(pair: &RedisPair, replicas: u32) -> Client {
    Client::connect(&format!("{}?fl.replicas={replicas}", pair.url())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_grant_that_no_replica_has_is_undone_and_reported() {
    let pair = RedisPair::start().await;
    let client = client(&pair, 1).await;
    let lock = lock(&client, "a", LONG);
    lock.acquire().await.unwrap().release().await.unwrap();
    pair.cut();
    for timeout in [None, Some(ms(0)), Some(LONG)] {
        let start = Instant::now();
        let error = lock.acquire_within(timeout).await.unwrap_err();
        assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}");
        assert!(error.to_string().contains("1 replica did not acknowledge"), "{error}");
        assert!(start.elapsed() < ms(2_000) + ms(400), "{:?}", start.elapsed());
        until("a free lock", || async {
            client.inspect("a").await.unwrap().state == LockState::Free
        })
        .await;
    }
    pair.connect();
    lock.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_a_renewal_that_no_replica_has_does_not_extend_the_lease() {
    let pair = RedisPair::start().await;
    let client = client(&pair, 1).await;
    let lease = lock(&client, "a", ms(3_000)).acquire().await.unwrap();
    let long = lock(&client, "b", LONG).acquire().await.unwrap();
    tokio::time::sleep(ms(3_500)).await;
    assert!(lease.is_held());
    pair.cut();
    assert_eq!(long.renew().await.unwrap_err().kind().code(), "UNAVAILABLE");
    soon("lost", lease.lost()).await;
    assert!(long.is_held());
    // Back in time, and it goes on.
    pair.connect();
    long.renew().await.unwrap();
    long.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_hand_off_counts_only_after_a_look_that_the_replicas_acknowledged() {
    let pair = RedisPair::start().await;
    let client = client(&pair, 1).await;
    let lock = lock(&client, "a", LONG);
    let mut holder = lock.acquire().await.unwrap();
    let mut delays = Vec::new();
    for _ in 0..5 {
        let waiting = queue_up(&client, &lock).await;
        let start = Instant::now();
        holder.release().await.unwrap();
        holder = soon("the hand-off", waiting).await.unwrap();
        delays.push(start.elapsed());
        // A full ttl at once: it was a look that got it, not the message.
        assert!(holder.remaining() > ms(20_000), "{:?}", holder.remaining());
    }
    delays.sort();
    assert!(delays[2] < ms(1_000), "{delays:?}");
    let waiting = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await }
    });
    until("the contender", || async { !client.inspect("a").await.unwrap().queue.is_empty() }).await;
    pair.cut();
    holder.release().await.unwrap();
    let error = soon("the end of the wait", waiting).await.unwrap().unwrap_err();
    assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}");
    until("a free lock", || async { client.inspect("a").await.unwrap().state == LockState::Free })
        .await;
}

/// Renewals and releases of others go on while somebody waits for replicas that do not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_release_does_not_wait_behind_the_grants_of_others() {
    let pair = RedisPair::start().await;
    let client = client(&pair, 1).await;
    let holder = lock(&client, "a", LONG).acquire().await.unwrap();
    pair.cut();
    let others: Vec<_> = (0..8)
        .map(|n| {
            let lock = lock(&client, &format!("other {n}"), LONG);
            tokio::spawn(async move { lock.acquire().await.map(drop) })
        })
        .collect();
    tokio::time::sleep(ms(100)).await;
    let start = Instant::now();
    holder.release().await.unwrap();
    assert!(start.elapsed() < ms(700), "{:?}", start.elapsed());
    for other in others {
        assert!(soon("an error", other).await.unwrap().is_err());
    }
}

/// What the scenario `failover-loses-grant` of `tests/chaos` does fifty times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_g3_a_failover_that_loses_the_grant_repeats_no_token() {
    for replicas in [0, 1] {
        let mut pair = RedisPair::start().await;
        let (holding, other) = (client(&pair, replicas).await, client(&pair, replicas).await);
        let mut last = None;
        for round in 0..4 {
            pair.cut();
            let lost = lock(&holding, "a", LONG).try_acquire().await;
            // With an acknowledgement there is nothing that could be lost.
            assert_eq!(lost.is_err(), replicas > 0, "{lost:?}");
            let lost = lost.ok().flatten();
            pair.fail_over();
            pair.connect();
            let next = soon("a grant by the new primary", async {
                loop {
                    match lock(&other, "a", LONG).acquire().await {
                        Ok(lease) => break lease,
                        Err(error) => assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}"),
                    }
                }
            })
            .await;
            for token in [lost.as_ref().map(fencelock::Lease::token), Some(next.token())] {
                assert!(token.is_none() || token > last, "{round}: a token came again");
                last = token.or(last);
            }
            if let Some(lost) = &lost {
                until("lost", || async { lost.renew().await.is_err() && lost.is_lost() }).await;
            }
            next.release().await.unwrap();
        }
    }
}

/// Single, without replicas, but with the right asked for: found when the client connects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_the_right_to_wait_is_asked_for_when_the_client_connects() {
    let pair = RedisPair::start().await;
    let user = ["ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-wait"];
    ask::<()>(&pair.primary, &user);
    let url = pair.url().replace("redis://", "redis://u:p@");
    Client::connect(&url).await.unwrap();
    let options = ClientOptions::new().replicas(1);
    let error = Client::connect_with(&url, options).await.unwrap_err();
    assert_eq!(error.kind().code(), "AUTH_FAILED", "{error}");
}
