//! The lock goes to the first live contender: `hand_off` in `common.lua`, from every script.

use super::*;
use crate::backend::Verdict;

#[tokio::test]
async fn g5_a_release_hands_the_lock_to_the_first_in_line_and_tells_its_client() {
    let mut scene = Scene::new().await;
    let other = scene.client().await;
    let [mut ours, mut theirs] = [raw(scene.server.port()), raw(scene.server.port())];
    let mut inbox = ours.as_pubsub();
    inbox.subscribe(scene.redis.shared.prefix.channel(scene.redis.shared.client)).unwrap();
    let mut other_inbox = theirs.as_pubsub();
    other_inbox.subscribe(scene.redis.shared.prefix.channel(other.shared.client)).unwrap();

    let (holder, token) = scene.hold(TTL).await;
    let [first, second] = [place("n", TTL), place("n", TTL)];
    let floor = queued(scene.intro(&first).await).floor;
    other.contend(&second, Mode::Intro).await.unwrap();
    let verdict = scene.redis.release(&holder, Some(token), false).await.unwrap();
    assert_eq!(verdict, Verdict::Released);

    let member = owner_value(&first, &scene.redis);
    assert_eq!(scene.get(&keys("n").lock), Some(member.clone()));
    let (next, flag, lost) = scene.record().unwrap();
    assert!(next >= floor && next > token.get() && flag == "H" && lost == token.get() - 1);
    let message: String = inbox.get_message().unwrap().get_payload().unwrap();
    assert_eq!(message, format!("{member} {next}"));
    assert_eq!(scene.queue(), [owner_value(&second, &other)]);

    // One message to the client that is next, none to anybody else.
    let next = Token::new(next).unwrap();
    scene.redis.release(&first, Some(next), false).await.unwrap();
    let message: String = other_inbox.get_message().unwrap().get_payload().unwrap();
    assert!(message.starts_with(&owner_value(&second, &other)));
    inbox.set_read_timeout(Some(ms(50))).unwrap();
    assert!(inbox.get_message().unwrap_err().is_timeout());
}

#[tokio::test]
async fn g4_a_hand_off_grants_the_claim_window_and_not_the_ttl() {
    for (ttl, window) in [(TTL, ms(5_000)), (ms(2_000), ms(2_000))] {
        let mut scene = Scene::new().await;
        let (holder, token) = scene.hold(TTL).await;
        let waiting = place("n", ttl);
        scene.intro(&waiting).await;
        scene.redis.release(&holder, Some(token), false).await.unwrap();
        let names = keys("n");
        assert_just_below(scene.pttl(&names.lock), window);
        assert_just_below(scene.pttl(&names.record), ms(600_000) + window);
        // Its next look finds the lease its own, now for a full ttl.
        let token = granted(scene.again(&waiting).await);
        assert_eq!(scene.record().unwrap().0, token.get());
        assert_just_below(scene.pttl(&names.lock), ttl);
        assert_eq!(scene.all_keys(), [names.lock, names.record]);
    }
}

#[tokio::test]
async fn g4_a_dead_contender_is_passed_over() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [dead, alive, late] = [place("n", TTL), place("n", TTL), place("n", ms(300))];
    let redis = scene.client().await;
    scene.enqueue(&dead, &redis, ms(6_001));
    scene.enqueue(&late, &redis, ms(301));
    scene.enqueue(&alive, &redis, ms(100));
    scene.redis.release(&holder, Some(token), false).await.unwrap();
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&alive, &redis)));
    assert!(scene.queue().is_empty());
}

#[tokio::test]
async fn g4_who_looked_again_in_time_is_alive_however_long_it_waits() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let redis = scene.client().await;
    let [dead, alive] = [place("n", TTL), place("n", TTL)];
    scene.enqueue(&dead, &redis, ms(60_000));
    scene.enqueue(&alive, &redis, ms(50_000));
    let now = scene.micros() / 1000;
    for (place, until) in [(&dead, now - 1), (&alive, now + 3_000)] {
        let member = owner_value(place, &redis);
        let () = scene.command(&["ZADD", &keys("n").alive, &until.to_string(), &member]);
    }
    scene.redis.release(&holder, Some(token), false).await.unwrap();
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&alive, &redis)));
    let names = keys("n");
    assert_eq!(scene.all_keys(), [names.lock, names.record], "signs of life go with the place");
}

#[tokio::test]
async fn g5_a_newcomer_that_finds_the_lock_free_does_not_pass_those_who_wait() {
    let mut scene = Scene::new().await;
    let (_, token) = scene.hold(TTL).await;
    let [waiting, newcomer] = [place("n", TTL), place("n", TTL)];
    scene.intro(&waiting).await;
    scene.expire_lock();
    let look = queued(scene.intro(&newcomer).await);
    assert!(look.first && !look.foreign);
    assert_just_below(look.remaining.unwrap().as_millis() as i64, ms(5_000));
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&waiting, &scene.redis)));
    // The lease that ran out counts as lost.
    let (handed, _, lost) = scene.record().unwrap();
    assert_eq!(lost, token.get());
    assert!(look.floor > handed);
    assert_eq!(scene.queue(), [owner_value(&newcomer, &scene.redis)]);
}

#[tokio::test]
async fn g5_a_try_does_not_pass_those_who_wait() {
    let mut scene = Scene::new().await;
    scene.hold(TTL).await;
    let waiting = place("n", TTL);
    scene.intro(&waiting).await;
    scene.expire_lock();
    assert_eq!(scene.attempt(&place("n", TTL)).await, Look::Busy);
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&waiting, &scene.redis)));
    assert!(scene.queue().is_empty());
}

#[tokio::test]
async fn g4_newcomers_and_tries_do_not_wait_behind_the_dead() {
    for mode in [Mode::Intro, Mode::Try] {
        let mut scene = Scene::new().await;
        let redis = scene.client().await;
        for ago in [60_000, 50_000, 40_000] {
            scene.enqueue(&place("n", TTL), &redis, ms(ago));
        }
        let place = place("n", TTL);
        granted(scene.redis.contend(&place, mode).await.unwrap());
        let names = keys("n");
        assert_just_below(scene.pttl(&names.lock), TTL);
        assert_eq!(scene.all_keys(), [names.lock, names.record]);
    }
}

#[tokio::test]
async fn g4_the_first_in_line_takes_a_free_lock_when_it_looks() {
    for mode in [Mode::Intro, Mode::Again] {
        let mut scene = Scene::new().await;
        scene.hold(TTL).await;
        let [first, second] = [place("n", TTL), place("n", TTL)];
        scene.intro(&first).await;
        scene.again(&first).await;
        scene.intro(&second).await;
        scene.expire_lock();
        let token = granted(scene.redis.contend(&first, mode).await.unwrap());
        assert_eq!(scene.record().unwrap().0, token.get());
        assert_just_below(scene.pttl(&keys("n").lock), TTL);
        assert_eq!(scene.queue(), [owner_value(&second, &scene.redis)]);
        assert_eq!(scene.command::<i64>(&["ZCARD", &keys("n").alive]), 0);
    }
}

#[tokio::test]
async fn g4_a_look_by_anybody_hands_a_free_lock_to_the_first_in_line() {
    let mut scene = Scene::new().await;
    scene.hold(TTL).await;
    let [first, second, third] = [place("n", TTL), place("n", TTL), place("n", TTL)];
    for place in [&first, &second, &third] {
        scene.intro(place).await;
    }
    scene.expire_lock();
    let look = queued(scene.again(&third).await);
    assert!(!look.first);
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&first, &scene.redis)));
    assert!(look.floor > scene.record().unwrap().0);
    scene.expire_lock();
    assert!(queued(scene.again(&third).await).first, "the second has the lock by now");
    scene.expire_lock();
    granted(scene.again(&third).await);
}

#[tokio::test]
async fn g5_a_contender_that_is_late_but_not_yet_passed_over_keeps_its_place() {
    for mode in [Mode::Intro, Mode::Again] {
        let mut scene = Scene::new().await;
        let redis = scene.client().await;
        let [dead, late, next] = [place("n", TTL), place("n", TTL), place("n", TTL)];
        scene.enqueue(&dead, &redis, ms(60_000));
        scene.enqueue(&late, &redis, ms(50_000));
        scene.enqueue(&next, &redis, ms(100));
        // Nobody has looked at the free lock since: now it does, and is first.
        granted(redis.contend(&late, mode).await.unwrap());
        assert_eq!(scene.queue(), [owner_value(&next, &redis)]);
    }
    // Behind a live holder a late one is alive again with its look.
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let late = place("n", TTL);
    let redis = scene.client().await;
    scene.enqueue(&late, &redis, ms(50_000));
    assert!(queued(redis.contend(&late, Mode::Again).await.unwrap()).first);
    scene.redis.release(&holder, Some(token), false).await.unwrap();
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&late, &redis)));
}

#[tokio::test]
async fn g4_a_place_that_was_passed_over_is_gone() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [dead, alive] = [place("n", TTL), place("n", TTL)];
    let redis = scene.client().await;
    scene.enqueue(&dead, &redis, ms(7_000));
    scene.enqueue(&alive, &redis, ms(10));
    scene.redis.release(&holder, Some(token), false).await.unwrap();
    assert_eq!(redis.contend(&dead, Mode::Again).await.unwrap(), Look::Gone);
}

#[tokio::test]
async fn g4_many_dead_contenders_are_dropped_a_hundred_at_a_time() {
    let mut scene = Scene::new().await;
    let redis = scene.client().await;
    for n in 0..150 {
        scene.enqueue(&place("n", TTL), &redis, ms(60_000 - n));
    }
    let place = place("n", TTL);
    let look = queued(scene.intro(&place).await);
    assert_eq!((look.remaining, look.first), (Some(Duration::ZERO), true), "look on at once");
    assert_eq!(scene.queue().len(), 51);
    granted(scene.again(&place).await);
    assert!(scene.queue().is_empty());
}

#[tokio::test]
async fn g4_what_is_no_contender_of_ours_in_the_queue_is_dropped() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let now = scene.micros();
    for member in ["", "x", "fl1:0:0:30000", "fl2:x"] {
        let () = scene.command(&["ZADD", &keys("n").queue, &now.to_string(), member]);
    }
    let waiting = place("n", TTL);
    scene.intro(&waiting).await;
    scene.redis.release(&holder, Some(token), false).await.unwrap();
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&waiting, &scene.redis)));
}

#[tokio::test]
async fn g5_after_a_del_by_an_administrator_the_queue_goes_on_in_order() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [first, second] = [place("n", TTL), place("n", TTL)];
    scene.intro(&first).await;
    scene.intro(&second).await;
    scene.expire_lock();
    // The old holder's release finds it lost and repairs what it finds.
    let verdict = scene.redis.release(&holder, Some(token), false).await.unwrap();
    assert_eq!(verdict, Verdict::Lost);
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&first, &scene.redis)));
}

#[tokio::test]
async fn g5_contenders_behind_a_foreign_holder_keep_their_order() {
    let mut scene = Scene::new().await;
    scene.set(keys("n").lock, "foreign");
    let [first, second] = [place("n", TTL), place("n", TTL)];
    scene.intro(&first).await;
    scene.intro(&second).await;
    scene.expire_lock();
    queued(scene.again(&second).await);
    granted(scene.again(&first).await);
}
