//! G8: a repeated acquire or release has the effect of one.

use std::sync::Arc;
use std::time::Instant;

use fencelock::Ended;

use crate::site::{Site, lock, ms, on_each_backend};

on_each_backend!(
    g8_a_release_may_be_repeated,
    g8_releases_that_meet_are_all_told_the_truth,
    g8_10000_holds_about_as_long_as_the_renewal_period_report_no_false_loss,
);

async fn g8_a_release_may_be_repeated(site: Site) {
    let client = site.client().await;
    let lease = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    lease.release().await.unwrap();
    let next = lock(&client, "a", ms(30_000)).try_acquire().await.unwrap().unwrap();
    lease.release().await.unwrap();
    drop(lease);
    assert!(next.is_held());
    assert_eq!(client.inspect("a").await.unwrap().owner, Some(next.owner()));
}

/// One that was cancelled and goes on in the background, and two more at the same time.
async fn g8_releases_that_meet_are_all_told_the_truth(site: Site) {
    let client = site.client().await;
    for _ in 0..100 {
        let lease = Arc::new(lock(&client, "a", ms(30_000)).acquire().await.unwrap());
        {
            let cancelled = lease.release();
            tokio::pin!(cancelled);
            let _ = futures_util::poll!(cancelled.as_mut());
        }
        let other = lease.clone();
        let other = tokio::spawn(async move { other.release().await });
        lease.release().await.unwrap();
        other.await.unwrap().unwrap();
        assert_eq!(lease.ended().await, Ended::Released);
        assert!(!lease.is_lost());
    }
}

/// The renewal and the release are sent at about the same moment, again and again.
async fn g8_10000_holds_about_as_long_as_the_renewal_period_report_no_false_loss(site: Site) {
    let client = site.client().await;
    let mut tasks = Vec::new();
    let rounds = 100;
    for worker in 0..site.holders_at_once {
        let lock = lock(&client, &format!("name {worker}"), ms(300));
        tasks.push(tokio::spawn(async move {
            let mut stalls = 0;
            for round in 0..rounds {
                let lease = lock.acquire().await.unwrap();
                let certain_until = Instant::now() + lease.remaining();
                // Renewals are due after 90 to 100 ms.
                tokio::time::sleep(ms(85 + (worker + round) % 20)).await;
                if let Err(error) = lease.release().await {
                    // On a machine that stood still for that long it was lost in truth.
                    assert!(Instant::now() >= certain_until, "{error}");
                    stalls += 1;
                }
            }
            stalls
        }));
    }
    let mut stalls = 0;
    for task in tasks {
        stalls += task.await.unwrap();
    }
    assert!(
        stalls < site.holders_at_once * rounds / 5,
        "{stalls} leases were lost to a machine that is too slow"
    );
}
