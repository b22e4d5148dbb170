//! Hand-offs: by a release, by a look, by anybody who sees that the holder's time is over.

use super::*;

#[tokio::test]
async fn g5_a_release_hands_the_lock_to_the_first_contender_for_the_claim_window() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [first, second] = [place("n", TTL), place("n", TTL)];
    let floor = queued(scene.intro(&first).await).floor;
    scene.intro(&second).await;
    assert_eq!(scene.release(&holder, token).await, Verdict::Released);
    let document = scene.document().await;
    let now_held = document.get_document("h").unwrap();
    assert_eq!(now_held.get_str("o").unwrap(), first.owner.to_string());
    assert_eq!(now_held.get_str("k").unwrap(), "hand");
    let next = number(&document, "t");
    assert!(next >= floor && next > token.get());
    let client = scene.mongo.shared.client;
    assert_eq!(document.get_str("w").unwrap(), format!("{client}:{}:{next}", first.owner));
    assert_eq!(document.get_str("n").unwrap(), format!("{client}:{}", second.owner));
    // A dead one must not hold the others up for a whole ttl.
    let window = time(&document, "u") - time(&document, "h.a");
    assert!((4_900..=5_000).contains(&window), "{window}");
    assert_eq!(scene.queue().await, [second.owner.to_string()]);
    // Its own look claims it for a full ttl.
    assert_eq!(granted(scene.again(&first).await).get(), next);
    let document = scene.document().await;
    assert_eq!(document.get_document("h").unwrap().get_str("k").unwrap(), "own");
    assert_just_below(scene.left().await, TTL);
}

#[tokio::test]
async fn g4_a_short_ttl_bounds_the_claim_window() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    scene.intro(&place("n", ms(4_000))).await;
    scene.release(&holder, token).await;
    let document = scene.document().await;
    assert_eq!(document.get_document("h").unwrap().get_i64("ttl").unwrap(), 4_000);
    assert!(time(&document, "u") - time(&document, "h.a") <= 4_000);
}

/// A release that waited on the server, behind a newer look of the contender: that look's answer
/// is what the contender counts from.
#[tokio::test]
async fn g1_a_hand_off_lasts_from_the_contenders_own_sign_of_life() {
    for by_release in [true, false] {
        let scene = Scene::new().await;
        let (holder, token) = scene.hold(TTL).await;
        let waiting = place("n", TTL);
        scene.intro(&waiting).await;
        scene.set_time(&entry(&waiting, "s"), 60_000).await;
        let seen = time(&scene.document().await, &entry(&waiting, "s"));
        if by_release {
            scene.release(&holder, token).await;
        } else {
            scene.expire().await;
            queued(scene.intro(&place("n", TTL)).await);
        }
        let document = scene.document().await;
        let handed = document.get_document("h").unwrap();
        assert_eq!(handed.get_str("o").unwrap(), waiting.owner.to_string());
        assert_eq!(time(&document, "u"), seen + 5_000);
    }
}

#[tokio::test]
async fn g5_a_newcomer_never_passes_the_queue_of_a_free_lock() {
    for mode in [Mode::Intro, Mode::Try] {
        let scene = Scene::new().await;
        scene.hold(TTL).await;
        let [waiting, newcomer] = [place("n", TTL), place("n", TTL)];
        scene.intro(&waiting).await;
        scene.expire().await;
        let look = scene.mongo.contend(&newcomer, mode).await.unwrap();
        assert_eq!(scene.holder().await, Some(waiting.owner.to_string()));
        if mode == Mode::Try {
            assert_eq!(look, Look::Busy);
            assert!(scene.queue().await.is_empty());
        } else {
            assert!(queued(look).first);
            assert_eq!(scene.queue().await, [newcomer.owner.to_string()]);
        }
    }
}

#[tokio::test]
async fn g4_dead_contenders_are_passed_over_and_forgotten() {
    let scene = Scene::new().await;
    let other = scene.client().await;
    let (holder, token) = scene.hold(TTL).await;
    let [long, short, live] = [place("n", TTL), place("n", ms(900)), place("n", TTL)];
    for place in [&long, &short, &live] {
        queued(other.contend(place, Mode::Intro).await.unwrap());
    }
    scene.set_time(&entry(&long, "s"), -25_001).await;
    scene.set_time(&entry(&short, "s"), -901).await;
    scene.set_time(&entry(&live, "s"), -15_000).await;
    scene.release(&holder, token).await;
    assert_eq!(scene.holder().await, Some(live.owner.to_string()));
    assert!(scene.queue().await.is_empty());
    assert_eq!(scene.again(&short).await, Look::Gone);
}

#[tokio::test]
async fn g4_a_late_look_keeps_a_place_that_nobody_passed_over_yet() {
    let scene = Scene::new().await;
    scene.hold(TTL).await;
    let [late, behind] = [place("n", TTL), place("n", TTL)];
    scene.intro(&late).await;
    scene.intro(&behind).await;
    scene.set_time(&entry(&late, "s"), -60_000).await;
    assert!(queued(scene.again(&late).await).first);
    scene.set_time(&entry(&late, "s"), -60_000).await;
    scene.expire().await;
    granted(scene.again(&late).await);
}

/// Else each contender of a process that died would cost the others a claim window.
#[tokio::test]
async fn g4_an_unclaimed_hand_off_condemns_its_client_but_not_those_seen_since() {
    let scene = Scene::new().await;
    let (died, lives) = (scene.client().await, scene.client().await);
    let (holder, token) = scene.hold(TTL).await;
    let [first, dead, seen, live] = [0; 4].map(|_| place("n", TTL));
    for place in [&first, &dead, &seen] {
        queued(died.contend(place, Mode::Intro).await.unwrap());
    }
    queued(lives.contend(&live, Mode::Intro).await.unwrap());
    scene.release(&holder, token).await;
    assert_eq!(scene.holder().await, Some(first.owner.to_string()));
    // One of them was seen after the grant, so its process lives on.
    scene.set(doc! { entry(&seen, "s"): { "$add": ["$h.a", 1_i64] } }).await;
    scene.expire().await;
    // Its own client would not be condemned by its own look.
    queued(lives.contend(&place("n", TTL), Mode::Intro).await.unwrap());
    assert_eq!(scene.holder().await, Some(seen.owner.to_string()));
    let queue = scene.queue().await;
    assert!(!queue.contains(&dead.owner.to_string()));
    assert!(queue.contains(&live.owner.to_string()));
}

#[tokio::test]
async fn g4_a_look_of_its_own_client_condemns_nobody() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [first, second, third] = [0; 3].map(|_| place("n", TTL));
    for place in [&first, &second, &third] {
        scene.intro(place).await;
    }
    scene.release(&holder, token).await;
    scene.expire().await;
    queued(scene.again(&third).await);
    assert_eq!(scene.holder().await, Some(second.owner.to_string()));
    assert_eq!(scene.queue().await, [third.owner.to_string()]);
}

#[tokio::test]
async fn g5_one_that_has_ended_hands_a_free_lock_on() {
    let scene = Scene::new().await;
    let [ended, waiting] = [place("n", TTL), place("n", TTL)];
    scene.mongo.release(&ended, None, true).await.unwrap();
    scene.hold(TTL).await;
    scene.intro(&waiting).await;
    scene.expire().await;
    assert_eq!(scene.intro(&ended).await, Look::Full);
    assert_eq!(scene.holder().await, Some(waiting.owner.to_string()));
}
