//! G1: at most one lease of a name is held at any instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::site::{Site, lock, ms, on_each_backend, queue_up, soon};

on_each_backend!(
    g1_an_unguarded_counter_loses_nothing,
    g1_a_contender_that_slept_through_its_grant_never_holds_beside_another,
    g1_two_tasks_on_one_lock_object_exclude_each_other,
    g1_names_that_differ_in_a_byte_do_not_exclude_each_other,
);

async fn g1_an_unguarded_counter_loses_nothing(site: Site) {
    const CLIENTS: u64 = 4;
    const TASKS: u64 = 4;
    const ROUNDS: u64 = 25;
    let counter = Arc::new(AtomicU64::new(0));
    let inside = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for _ in 0..CLIENTS {
        let client = site.client().await;
        for _ in 0..TASKS {
            let (lock, counter, inside) =
                (client.lock("counter").unwrap(), counter.clone(), inside.clone());
            tasks.push(tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let lease = lock.acquire().await.unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst), "two hold at once");
                    let seen = counter.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    counter.store(seen + 1, Ordering::SeqCst);
                    inside.store(false, Ordering::SeqCst);
                    lease.release().await.unwrap();
                }
            }));
        }
    }
    for task in tasks {
        soon("a worker's end", task).await.unwrap();
    }
    assert_eq!(counter.load(Ordering::SeqCst), CLIENTS * TASKS * ROUNDS);
}

/// A contender whose whole runtime stands still, as a stopped process would: it is granted,
/// passed over, and wakes to a push that is out of date.
async fn g1_a_contender_that_slept_through_its_grant_never_holds_beside_another(site: Site) {
    let ttl = ms(1_000);
    let watcher = site.client().await;
    let first = lock(&watcher, "a", ttl).acquire().await.unwrap();
    let (url, (frozen, is_frozen), (thaw, thawed)) =
        (site.url.clone(), std::sync::mpsc::channel::<()>(), std::sync::mpsc::channel::<()>());
    let sleeper = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let client = fencelock::Client::connect(&url).await.unwrap();
            let lock = lock(&client, "a", ttl);
            let waiting = queue_up(&client, &lock).await;
            frozen.send(()).unwrap();
            // Nothing of this runtime runs now: no look, no push, no timer.
            thawed.recv().unwrap();
            let lease = waiting.await.unwrap();
            let until = std::time::Instant::now() + lease.remaining();
            (lease.token(), until, lease)
        })
    });
    is_frozen.recv().unwrap();
    first.release().await.unwrap();
    // The sleeper has been granted for the claim window; when that has lapsed we get in.
    let ours =
        soon("the lock after the sleeper", lock(&watcher, "a", ttl).acquire()).await.unwrap();
    thaw.send(()).unwrap();
    // While we hold it, the sleeper must not believe that it does.
    tokio::time::sleep(ms(300)).await;
    assert!(ours.is_held());
    assert!(!sleeper.is_finished(), "two hold at once");
    ours.release().await.unwrap();
    let (token, _, lease) = tokio::task::spawn_blocking(|| sleeper.join().unwrap()).await.unwrap();
    assert!(token > ours.token());
    drop(lease);
}

async fn g1_two_tasks_on_one_lock_object_exclude_each_other(site: Site) {
    let client = site.client().await;
    let shared = client.lock("a").unwrap();
    let lease = shared.acquire().await.unwrap();
    assert!(shared.try_acquire().await.unwrap().is_none());
    let code = shared.acquire_timeout(ms(30)).await.unwrap_err().kind().code();
    assert_eq!(code, "TIMEOUT");
    // The failed attempts did not touch the first lease.
    assert!(lease.is_held());
    lease.release().await.unwrap();
    assert!(shared.try_acquire().await.unwrap().is_some());
}

async fn g1_names_that_differ_in_a_byte_do_not_exclude_each_other(site: Site) {
    let client = site.client().await;
    let names = [
        "a", "A", "a ", "a\n", "a/b", "a//b", "/a/b", "..", ".", "{x}", "x", "{x", "x}", "{}x",
        "a{b}", "*", "a*", "$ne", "%61", "e\u{301}", "\u{e9}", "🔒", "q:a", "~f", ":",
    ];
    let mut leases = Vec::new();
    for name in names {
        let lease = client.lock(name).unwrap().try_acquire().await.unwrap();
        leases.push(lease.unwrap_or_else(|| panic!("{name:?} is taken by another name")));
    }
    for (name, lease) in names.iter().zip(&leases) {
        assert_eq!(client.inspect(name).await.unwrap().owner, Some(lease.owner()));
    }
    for lease in leases {
        lease.release().await.unwrap();
    }
}
