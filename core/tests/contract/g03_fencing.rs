//! G3: tokens of a name strictly increase.

use fencelock::LockOptions;

use crate::site::{Site, lock, ms, on_each_backend, queue_up, soon};

on_each_backend!(
    g3_tokens_rise_over_release_expiry_hand_off_and_reconnect,
    g3_tokens_rise_over_a_forced_release,
);

async fn g3_tokens_rise_over_release_expiry_hand_off_and_reconnect(site: Site) {
    let mut tokens = Vec::new();
    for round in 0..3 {
        // Every round with new clients, as after a restart of the service.
        let client = site.client().await;
        let released = client.lock("a").unwrap().acquire().await.unwrap();
        tokens.push(released.token());
        let waiting = queue_up(&client, &client.lock("a").unwrap()).await;
        released.release().await.unwrap();
        let handed_off = soon("the hand-off", waiting).await.unwrap();
        tokens.push(handed_off.token());
        handed_off.release().await.unwrap();
        let fixed = LockOptions::new().ttl(ms(150)).renew(false);
        let expiring = client.lock_with("a", fixed).unwrap().acquire().await.unwrap();
        tokens.push(expiring.token());
        soon("its expiry", expiring.lost()).await;
        if round == 1 {
            client.close().await;
        }
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

async fn g3_tokens_rise_over_a_forced_release(site: Site) {
    let client = site.client().await;
    let lease = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    assert!(client.force_release("a").await.unwrap());
    let next = lock(&client, "a", ms(30_000)).try_acquire().await.unwrap().unwrap();
    assert!(next.token() > lease.token());
    assert!(!client.force_release("never held").await.unwrap());
}
