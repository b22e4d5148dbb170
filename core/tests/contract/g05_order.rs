//! G5: contenders are served in the order in which the backend saw them.

use std::sync::{Arc, Mutex};

use crate::site::{Site, lock, ms, on_each_backend, queue_up, soon};

on_each_backend!(
    g5_contenders_are_served_in_order_across_clients,
    g5_try_and_timeout_zero_never_overtake_a_live_contender,
    g5_timeout_zero_takes_a_free_lock,
);

async fn g5_contenders_are_served_in_order_across_clients(site: Site) {
    let clients = [site.client().await, site.client().await, site.client().await];
    let holder = lock(&clients[0], "a", ms(30_000)).acquire().await.unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for place in 0..12 {
        let client = &clients[place % 3];
        let waiting = queue_up(client, &lock(client, "a", ms(30_000))).await;
        let served = served.clone();
        tasks.push(tokio::spawn(async move {
            let lease = waiting.await.unwrap();
            served.lock().unwrap().push((lease.token(), place));
            lease.release().await.unwrap();
        }));
    }
    holder.release().await.unwrap();
    for task in tasks {
        soon("a turn", task).await.unwrap();
    }
    let mut served = served.lock().unwrap().clone();
    served.sort();
    let order: Vec<_> = served.into_iter().map(|(_, place)| place).collect();
    assert_eq!(order, (0..12).collect::<Vec<_>>());
}

async fn g5_try_and_timeout_zero_never_overtake_a_live_contender(site: Site) {
    let client = site.client().await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, "a", ms(30_000))).await;
    holder.release().await.unwrap();
    // From here on the lock belongs to the contender, whether it knows it yet or not.
    let barging = client.lock("a").unwrap();
    assert!(barging.try_acquire().await.unwrap().is_none());
    let zero = barging.acquire_timeout(ms(0)).await.unwrap_err();
    assert_eq!(zero.kind().code(), "TIMEOUT");
    assert!(client.inspect("a").await.unwrap().queue.is_empty(), "neither of them queues");
    soon("the hand-off", waiting).await.unwrap().release().await.unwrap();
}

async fn g5_timeout_zero_takes_a_free_lock(site: Site) {
    let lock = site.lock("a", ms(30_000)).await;
    let lease = lock.acquire_timeout(ms(0)).await.unwrap();
    lease.release().await.unwrap();
    assert!(lock.try_acquire().await.unwrap().is_some());
}
