//! G6: nothing but a lease's own owner id can renew or release it.

use fencelock::{LockOptions, LockState};

use crate::site::{Site, lock, ms, on_each_backend, soon, until};

on_each_backend!(
    g6_a_late_owner_does_not_disturb_the_next_one,
    g6_a_forced_release_is_loud,
    g6_inspect_shows_holder_and_queue,
    g6_list_shows_what_is_held,
);

async fn g6_a_late_owner_does_not_disturb_the_next_one(site: Site) {
    let client = site.client().await;
    let fixed = LockOptions::new().ttl(ms(150)).renew(false);
    let late = client.lock_with("a", fixed).unwrap().acquire().await.unwrap();
    soon("its expiry", late.lost()).await;
    let next = soon("the next lease", lock(&client, "a", ms(30_000)).acquire()).await.unwrap();
    assert_eq!(late.renew().await.unwrap_err().kind().code(), "LOST");
    assert_eq!(late.release().await.unwrap_err().kind().code(), "LOST");
    drop(late);
    assert_eq!(client.inspect("a").await.unwrap().owner, Some(next.owner()));
    next.renew().await.unwrap();
    next.release().await.unwrap();
}

async fn g6_a_forced_release_is_loud(site: Site) {
    let (holder, admin) = (site.client().await, site.client().await);
    let lease = lock(&holder, "a", ms(900)).acquire().await.unwrap();
    // The holder waits for lost; it may be told at once, and is at its next renewal at the latest.
    assert!(admin.force_release("a").await.unwrap());
    let next = lock(&admin, "a", ms(30_000)).try_acquire().await.unwrap().unwrap();
    soon("lost", lease.lost()).await;
    assert_eq!(lease.release().await.unwrap_err().kind().code(), "LOST");
    assert_eq!(admin.inspect("a").await.unwrap().owner, Some(next.owner()));
    assert!(next.is_held());
}

async fn g6_inspect_shows_holder_and_queue(site: Site) {
    let client = site.client().await;
    let free = client.inspect("a").await.unwrap();
    assert_eq!((free.state, free.owner, free.token), (LockState::Free, None, None));
    let holder = client
        .lock_with("a", LockOptions::new().ttl(ms(30_000)).metadata("the: holder"))
        .unwrap()
        .acquire()
        .await
        .unwrap();
    let waiting = lock(&client, "a", ms(30_000));
    let task = crate::site::queue_up(&client, &waiting).await;
    tokio::time::sleep(ms(20)).await;
    let info = client.inspect("a").await.unwrap();
    assert_eq!((info.name.as_str(), info.state), ("a", LockState::Held));
    assert_eq!((info.owner, info.token), (Some(holder.owner()), Some(holder.token())));
    assert_eq!(info.metadata.as_deref(), Some("the: holder"));
    if site.keeps_sessions() {
        assert_eq!((info.held, info.ttl_left), (None, None));
    } else {
        assert!(info.held.unwrap() >= ms(20) && info.held.unwrap() < ms(20_000));
        let left = info.ttl_left.unwrap();
        assert!(left <= ms(30_000) && left > ms(10_000), "{left:?}");
    }
    assert_eq!(info.queue.len(), 1);
    assert!(info.queue[0].waiting >= ms(20) && info.queue[0].waiting < ms(20_000));
    assert!(info.queue[0].metadata.as_deref().unwrap().contains("lang=rust"));
    holder.release().await.unwrap();
    let next = soon("the hand-off", task).await.unwrap();
    assert_eq!(info.queue[0].owner, next.owner());
}

async fn g6_list_shows_what_is_held(site: Site) {
    let client = site.client().await;
    assert!(client.list().await.unwrap().is_empty());
    let names = ["a", "b*", "[c]"];
    let mut leases = Vec::new();
    for name in names {
        leases.push(client.lock(name).unwrap().acquire().await.unwrap());
    }
    let mut listed: Vec<_> =
        client.list().await.unwrap().into_iter().map(|info| (info.name, info.owner)).collect();
    listed.sort();
    let mut expected: Vec<_> =
        leases.iter().map(|l| (l.name().to_owned(), Some(l.owner()))).collect();
    expected.sort();
    assert_eq!(listed, expected);
    for lease in leases {
        lease.release().await.unwrap();
    }
    until("an empty list", || async { client.list().await.unwrap().is_empty() }).await;
}
