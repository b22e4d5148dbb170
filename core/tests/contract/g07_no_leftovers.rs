//! G7: an acquire that is cancelled, times out or loses its reply leaves nothing behind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fencelock::LockState;

use crate::site::{Site, lock, ms, on_each_backend, queue_up, soon, until};

on_each_backend!(
    g7_300_acquires_cancelled_at_random_moments_leave_nothing,
    g7_a_cancelled_contender_is_withdrawn_at_once,
    g7_an_interrupted_contender_has_withdrawn_when_the_call_returns,
    g7_a_timed_out_contender_is_withdrawn_when_the_error_comes,
    g7_a_dropped_lease_is_released,
    g7_a_cancelled_release_goes_on_and_a_second_one_succeeds,
    g7_closing_a_client_releases_its_leases_and_ends_its_waits,
    g7_a_cancelled_close_goes_on_and_a_second_one_waits_for_it,
    g7_a_blocking_lease_that_is_dropped_last_is_released,
);

fn random_micros(bound: u64) -> Duration {
    static SEED: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
    let mut x = SEED.load(Ordering::Relaxed);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    SEED.store(x, Ordering::Relaxed);
    Duration::from_micros(x % bound)
}

async fn free_and_unqueued(client: &fencelock::Client, name: &str) -> bool {
    let info = client.inspect(name).await.unwrap();
    info.state == LockState::Free && info.queue.is_empty()
}

async fn g7_300_acquires_cancelled_at_random_moments_leave_nothing(site: Site) {
    let client = site.client().await;
    let contended = lock(&client, "contended", ms(30_000));
    let free = lock(&client, "free", ms(30_000));
    let mut holder = contended.acquire().await.unwrap();
    let mut obtained = 0;
    for round in 0..300 {
        let lock = if round % 2 == 0 { &contended } else { &free };
        let lease = tokio::time::timeout(random_micros(1_500), lock.acquire()).await;
        obtained += u32::from(lease.is_ok());
        drop(lease);
        if round % 30 == 0 {
            // Some of the cancelled ones are being handed the lock just now.
            holder.release().await.unwrap();
            holder =
                soon("the lock among cancelled contenders", contended.acquire()).await.unwrap();
        }
    }
    assert!(obtained < 300, "nothing was cancelled");
    holder.release().await.unwrap();
    until("nothing left of the contended name", || free_and_unqueued(&client, "contended")).await;
    until("nothing left of the free name", || free_and_unqueued(&client, "free")).await;
    // Another client gets in at once.
    for name in ["contended", "free"] {
        assert!(site.lock(name, ms(30_000)).await.try_acquire().await.unwrap().is_some());
    }
}

async fn g7_a_cancelled_contender_is_withdrawn_at_once(site: Site) {
    let client = site.client().await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let cancelled = queue_up(&client, &lock(&client, "a", ms(30_000))).await;
    let behind = queue_up(&client, &lock(&client, "a", ms(30_000))).await;
    cancelled.abort();
    until("the withdrawal", || async { client.inspect("a").await.unwrap().queue.len() == 1 }).await;
    holder.release().await.unwrap();
    soon("the hand-off", behind).await.unwrap().release().await.unwrap();
}

async fn g7_an_interrupted_contender_has_withdrawn_when_the_call_returns(site: Site) {
    let client = site.client().await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let waiting = lock(&client, "a", ms(30_000));
    let (interrupt, interrupted) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        waiting.acquire_unless(None, async move { drop(interrupted.await) }).await
    });
    until("the contender", || async { client.inspect("a").await.unwrap().queue.len() == 1 }).await;
    interrupt.send(()).unwrap();
    let error = soon("the end of the call", task).await.unwrap().unwrap_err();
    assert_eq!(error.kind().code(), "CANCELLED");
    until("an empty queue", || async { client.inspect("a").await.unwrap().queue.is_empty() }).await;
    holder.release().await.unwrap();
}

async fn g7_a_timed_out_contender_is_withdrawn_when_the_error_comes(site: Site) {
    let client = site.client().await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let start = Instant::now();
    let error = lock(&client, "a", ms(30_000)).acquire_timeout(ms(100)).await.unwrap_err();
    let waited = start.elapsed();
    assert_eq!(error.kind().code(), "TIMEOUT");
    assert!(error.to_string().contains("\"a\""), "{error}");
    assert!(waited >= ms(100) && waited < ms(1_000), "{waited:?}");
    until("an empty queue", || async { client.inspect("a").await.unwrap().queue.is_empty() }).await;
    holder.release().await.unwrap();
}

async fn g7_a_dropped_lease_is_released(site: Site) {
    let client = site.client().await;
    drop(lock(&client, "a", ms(30_000)).acquire().await.unwrap());
    until("the release", || free_and_unqueued(&client, "a")).await;
}

async fn g7_a_cancelled_release_goes_on_and_a_second_one_succeeds(site: Site) {
    let client = site.client().await;
    let lease = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    {
        // Polled once, so the request is on its way, then dropped.
        let release = lease.release();
        tokio::pin!(release);
        let _ = futures_util::poll!(release.as_mut());
    }
    assert!(!lease.is_held());
    until("the release", || free_and_unqueued(&client, "a")).await;
    lease.release().await.unwrap();
}

async fn g7_closing_a_client_releases_its_leases_and_ends_its_waits(site: Site) {
    let (client, other) = (site.client().await, site.client().await);
    let held = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let elsewhere = lock(&other, "b", ms(30_000)).acquire().await.unwrap();
    let waiting = lock(&client, "b", ms(30_000));
    let waiting = tokio::spawn(async move { waiting.acquire().await });
    until("the contender", || async { !other.inspect("b").await.unwrap().queue.is_empty() }).await;
    let start = Instant::now();
    client.close().await;
    assert!(start.elapsed() < ms(1_000), "{:?}", start.elapsed());
    assert!(!held.is_held() && !held.is_lost());
    let error = soon("the end of the wait", waiting).await.unwrap().unwrap_err();
    assert_eq!(error.kind().code(), "CLOSED");
    for closed in [
        client.lock("c").unwrap().acquire().await,
        client.lock("c").unwrap().acquire_timeout(ms(0)).await,
    ] {
        assert_eq!(closed.unwrap_err().kind().code(), "CLOSED");
    }
    assert_eq!(client.inspect("a").await.unwrap_err().kind().code(), "CLOSED");
    until("nothing left", || async {
        free_and_unqueued(&other, "a").await && other.inspect("b").await.unwrap().queue.is_empty()
    })
    .await;
    elsewhere.release().await.unwrap();
    client.close().await;
}

async fn g7_a_cancelled_close_goes_on_and_a_second_one_waits_for_it(site: Site) {
    let (client, other) = (site.client().await, site.client().await);
    let held = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    {
        let closing = client.close();
        tokio::pin!(closing);
        let _ = futures_util::poll!(closing.as_mut());
    }
    client.close().await;
    assert!(free_and_unqueued(&other, "a").await);
    assert!(!held.is_held());
}

async fn g7_a_blocking_lease_that_is_dropped_last_is_released(site: Site) {
    let url = site.url.clone();
    let blocking = std::thread::spawn(move || {
        for round in 0..5 {
            let client = fencelock::blocking::Client::connect(&url).unwrap();
            let lease = client.lock(&format!("a{round}")).unwrap().acquire().unwrap();
            drop(client);
            drop(lease);
        }
    });
    tokio::task::spawn_blocking(|| blocking.join().unwrap()).await.unwrap();
    let client = site.client().await;
    for round in 0..5 {
        assert!(free_and_unqueued(&client, &format!("a{round}")).await, "round {round}");
    }
}
