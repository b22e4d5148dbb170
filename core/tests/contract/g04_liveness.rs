//! G4: nobody waits much longer than it must.

use std::time::{Duration, Instant};

use crate::site::{Site, lock, ms, on_each_backend, queue_up, soon};

on_each_backend!(
    g4_a_crashed_holder_blocks_for_its_ttl_and_a_second_at_most,
    g4_dead_contenders_are_passed_over,
    g4_a_release_wakes_the_next_without_waiting_for_its_look,
);

/// A client on a runtime of its own that vanishes without a word, as after kill -9.
async fn crash_after<F, Fut>(url: &str, work: F)
where
    F: FnOnce(fencelock::Client) -> Fut + Send + 'static,
    Fut: std::future::Future<Output = ()>,
{
    let url = url.to_owned();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let client = fencelock::Client::connect(&url).await.unwrap();
            work(client).await;
        });
        // Its tasks are dropped here, so nothing more is sent or renewed.
        drop(runtime);
    });
    tokio::task::spawn_blocking(|| thread.join().unwrap()).await.unwrap();
}

async fn g4_a_crashed_holder_blocks_for_its_ttl_and_a_second_at_most(site: Site) {
    let ttl = ms(1_000);
    let lock = site.lock("a", ms(30_000)).await;
    let start = Instant::now();
    crash_after(&site.url, move |client| async move {
        let lease = crate::site::lock(&client, "a", ttl).acquire().await.unwrap();
        std::mem::forget(lease);
    })
    .await;
    soon("the lock after the crash", lock.acquire()).await.unwrap().release().await.unwrap();
    let blocked = start.elapsed();
    assert!(blocked > ttl * 9 / 10 && blocked < site.longest_block(ttl), "{blocked:?}");
}

async fn g4_dead_contenders_are_passed_over(site: Site) {
    let ttl = ms(600);
    let client = site.client().await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    for _ in 0..5 {
        crash_after(&site.url, move |client| async move {
            let lock = lock(&client, "a", ttl);
            std::mem::forget(queue_up(&client, &lock).await);
        })
        .await;
    }
    let waiting = queue_up(&client, &lock(&client, "a", ms(30_000))).await;
    tokio::time::sleep(site.longest_block(ttl) - ms(1_000)).await;
    let start = Instant::now();
    holder.release().await.unwrap();
    soon("the lock behind five dead contenders", waiting).await.unwrap().release().await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

async fn g4_a_release_wakes_the_next_without_waiting_for_its_look(site: Site) {
    let client = site.client().await;
    let mut delays = Vec::new();
    for _ in 0..10 {
        let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
        let waiting = queue_up(&client, &lock(&client, "a", ms(30_000))).await;
        let start = Instant::now();
        holder.release().await.unwrap();
        soon("the hand-off", waiting).await.unwrap().release().await.unwrap();
        delays.push(start.elapsed());
    }
    delays.sort();
    // A look comes every two seconds; one slow scheduling is no fault.
    assert!(delays[5] < ms(500), "{delays:?}");
}
