//! G2: "held" ends at the local deadline, whatever the server does.

use std::time::{Duration, Instant};

use fencelock::LockOptions;

use crate::site::{Site, lock, ms, on_each_backend, soon};

on_each_backend!(
    g2_a_lease_is_renewed_for_as_long_as_it_is_held,
    g2_a_fixed_lease_ends_at_its_ttl_and_renew_sets_it_to_a_full_one,
    g2_max_hold_ends_a_lease_and_frees_the_lock,
    g2_remaining_never_exceeds_the_ttl_less_its_margin,
    g2_lost_never_comes_for_a_released_lease,
    g2_a_blocked_runtime_is_told_lost_first_thing_after,
);

async fn g2_a_lease_is_renewed_for_as_long_as_it_is_held(site: Site) {
    let ttl = ms(1_000);
    let lease = site.lock("a", ttl).await.acquire().await.unwrap();
    let other = site.lock("a", ttl).await;
    let start = Instant::now();
    while start.elapsed() < ttl * 3 {
        assert!(lease.is_held());
        assert!(other.try_acquire().await.unwrap().is_none());
        tokio::time::sleep(ms(50)).await;
    }
    lease.check().unwrap();
    lease.release().await.unwrap();
}

async fn g2_a_fixed_lease_ends_at_its_ttl_and_renew_sets_it_to_a_full_one(site: Site) {
    let ttl = ms(1_000);
    let client = site.client().await;
    let fixed = client.lock_with("a", LockOptions::new().ttl(ttl).renew(false)).unwrap();
    let sent = Instant::now();
    let lease = fixed.acquire().await.unwrap();
    lease.renew().await.unwrap();
    let renewed = Instant::now();
    soon("lost", lease.lost()).await;
    let lost = Instant::now();
    assert!(lost - sent >= ms(988) && lost - renewed < ms(1_500), "{:?}", lost - renewed);
    assert!(!lease.is_held() && lease.is_lost());
    assert_eq!(lease.check().unwrap_err().kind().code(), "LOST");
    assert_eq!(lease.renew().await.unwrap_err().kind().code(), "LOST");
    assert_eq!(lease.release().await.unwrap_err().kind().code(), "LOST");
    assert!(soon("the next lease", fixed.acquire()).await.unwrap().token() > lease.token());
}

async fn g2_max_hold_ends_a_lease_and_frees_the_lock(site: Site) {
    let client = site.client().await;
    let options = LockOptions::new().ttl(ms(20_000)).max_hold(ms(20_300));
    // The ttl is long: only the clean-up after the loss can free the lock this soon.
    let start = Instant::now();
    let short = LockOptions::new().ttl(ms(900)).max_hold(ms(2_000));
    let lease = client.lock_with("a", short).unwrap().acquire().await.unwrap();
    let waiting = client.lock_with("a", options).unwrap();
    let next = soon("the lock after max_hold", waiting.acquire()).await.unwrap();
    assert!(start.elapsed() >= ms(1_970), "{:?}", start.elapsed());
    assert!(lease.is_lost());
    next.release().await.unwrap();
}

async fn g2_remaining_never_exceeds_the_ttl_less_its_margin(site: Site) {
    for (ttl, most) in [(ms(1_000), ms(988)), (ms(30_000), ms(29_698))] {
        let lease = site.lock("a", ttl).await.acquire().await.unwrap();
        let remaining = lease.remaining();
        assert!(remaining <= most && remaining > Duration::ZERO, "{ttl:?}: {remaining:?}");
        lease.release().await.unwrap();
        assert_eq!(lease.remaining(), Duration::ZERO);
    }
}

async fn g2_lost_never_comes_for_a_released_lease(site: Site) {
    let lease = site.lock("a", ms(200)).await.acquire().await.unwrap();
    lease.release().await.unwrap();
    let lost = tokio::time::timeout(ms(600), lease.lost()).await;
    assert!(lost.is_err());
    assert!(!lease.is_lost() && !lease.is_held());
    lease.release().await.unwrap();
}

/// As a stopped process would find it: nothing of the client ran meanwhile, no I/O since.
async fn g2_a_blocked_runtime_is_told_lost_first_thing_after(site: Site) {
    let url = site.url.clone();
    let holder = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let client = fencelock::Client::connect(&url).await.unwrap();
            let ttl = ms(400);
            let lease = lock(&client, "a", ttl).acquire().await.unwrap();
            assert!(lease.is_held());
            std::thread::sleep(ttl * 5 / 2);
            (lease.is_held(), lease.is_lost(), lease.check().unwrap_err().kind())
        })
    });
    let (held, lost, code) = tokio::task::spawn_blocking(|| holder.join().unwrap()).await.unwrap();
    assert_eq!((held, lost, code.code()), (false, true, "LOST"));
}
