//! Every branch of `contend.lua` but the hand-offs.

use super::*;
use crate::ErrorKind;
use crate::period::Term;

#[tokio::test]
async fn g1_a_free_lock_is_taken_with_a_limit_on_every_key() {
    let mut scene = Scene::new().await;
    let before = scene.micros();
    let (place, token) = scene.hold(TTL).await;
    let after = scene.micros();
    assert!((before..=after).contains(&token.get()), "tokens are the server's microseconds");
    let names = keys("n");
    assert_eq!(scene.get(&names.lock), Some(owner_value(&place, &scene.redis)));
    assert_just_below(scene.pttl(&names.lock), TTL);
    assert_eq!(scene.record(), Some((token.get(), "H".to_owned(), token.get() - 1)));
    assert_just_below(scene.pttl(&names.record), ms(600_000) + TTL);
    assert_eq!(scene.all_keys(), [names.lock, names.record]);
}

#[tokio::test]
async fn g1_a_held_lock_is_not_granted_to_others() {
    let mut scene = Scene::new().await;
    let (_, token) = scene.hold(TTL).await;
    let [second, third] = [place("n", TTL), place("n", TTL)];
    let before = scene.micros();
    let look = queued(scene.intro(&second).await);
    assert!(look.first && !look.foreign);
    assert_just_below(look.remaining.unwrap().as_millis() as i64, TTL);
    assert!(look.floor > token.get() && look.floor >= before);
    let look = queued(scene.intro(&third).await);
    assert!(!look.first && !look.foreign);
    let names = keys("n");
    let expected = [owner_value(&second, &scene.redis), owner_value(&third, &scene.redis)];
    assert_eq!(scene.queue(), expected);
    assert_just_below(scene.pttl(&names.queue), ms(10_000));
    // The order is the first sign of life; another is written by a look-again only.
    assert_eq!(scene.pttl(&names.alive), -2);
    assert_eq!(scene.attempt(&place("n", TTL)).await, Look::Busy);
    assert_eq!(scene.queue(), expected, "a try never queues");
}

#[tokio::test]
async fn g8_an_intro_sent_again_is_granted_the_same_lease_for_a_full_ttl() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    let lock = keys("n").lock;
    let () = scene.command(&["PEXPIRE", &lock, "1000"]);
    for mode in [Mode::Intro, Mode::Try, Mode::Again] {
        assert_eq!(
            scene.redis.contend(&place, mode).await.unwrap(),
            Look::Granted(token, Term::FullTtl)
        );
        assert_just_below(scene.pttl(&lock), TTL);
    }
}

#[tokio::test]
async fn g8_a_lease_whose_record_was_lost_gets_one_again() {
    let mut scene = Scene::new().await;
    let (place, first) = scene.hold(TTL).await;
    let () = scene.command(&["DEL", &keys("n").record]);
    let token = granted(scene.intro(&place).await);
    assert!(token > first);
    assert_eq!(scene.record(), Some((token.get(), "H".to_owned(), token.get() - 1)));
    assert_just_below(scene.pttl(&keys("n").record), ms(600_000) + TTL);
    assert_eq!(granted(scene.intro(&place).await), token);
}

#[tokio::test]
async fn g8_an_intro_sent_again_keeps_its_place_and_is_a_sign_of_life() {
    let mut scene = Scene::new().await;
    scene.hold(TTL).await;
    let [first, second] = [place("n", TTL), place("n", TTL)];
    scene.intro(&first).await;
    scene.intro(&second).await;
    let names = keys("n");
    let order: Vec<String> = scene.command(&["ZRANGE", &names.queue, "0", "-1", "WITHSCORES"]);
    assert!(queued(scene.intro(&first).await).first);
    assert!(!queued(scene.intro(&second).await).first);
    let same: Vec<String> = scene.command(&["ZRANGE", &names.queue, "0", "-1", "WITHSCORES"]);
    assert_eq!(order, same);
    assert_eq!(scene.command::<i64>(&["ZCARD", &names.alive]), 2);
    assert_just_below(scene.pttl(&names.alive), ms(10_000));
}

#[tokio::test]
async fn g4_a_look_again_is_a_sign_of_life_and_keeps_the_queue() {
    let mut scene = Scene::new().await;
    scene.hold(TTL).await;
    let [first, second] = [place("n", TTL), place("n", ms(900))];
    scene.intro(&first).await;
    scene.intro(&second).await;
    let names = keys("n");
    let () = scene.command(&["PEXPIRE", &names.queue, "1000"]);
    assert!(queued(scene.again(&first).await).first);
    assert!(!queued(scene.again(&second).await).first);
    assert_just_below(scene.pttl(&names.queue), ms(10_000));
    assert_just_below(scene.pttl(&names.alive), ms(10_000));
    // D = min(ttl, 6 s) from now.
    let now = scene.micros() as i64 / 1000;
    for (place, life) in [(first, ms(6_000)), (second, ms(900))] {
        let member = owner_value(&place, &scene.redis);
        let until: i64 = scene.command(&["ZSCORE", &names.alive, &member]);
        assert_just_below(until - now, life);
    }
}

#[tokio::test]
async fn g7_a_look_again_never_introduces() {
    let mut scene = Scene::new().await;
    let place = place("n", TTL);
    assert_eq!(scene.again(&place).await, Look::Gone);
    assert!(scene.all_keys().is_empty());
    let (_, token) = scene.hold(TTL).await;
    let before = scene.all_keys();
    assert_eq!(scene.again(&place).await, Look::Gone);
    assert_eq!(scene.all_keys(), before);
    assert_eq!(scene.record().map(|r| r.0), Some(token.get()));
}

#[tokio::test]
async fn g7_an_intro_that_comes_after_its_end_finds_the_tombstone() {
    let mut scene = Scene::new().await;
    let late = place("n", TTL);
    scene.redis.release(&late, None, true).await.unwrap();
    for held in [false, true] {
        if held {
            scene.hold(TTL).await;
        }
        let before = scene.all_keys();
        assert_eq!(scene.intro(&late).await, Look::Gone);
        assert_eq!(scene.attempt(&late).await, Look::Gone);
        assert_eq!(scene.all_keys(), before);
    }
    assert!(scene.queue().is_empty());
    let tombstone = tombstone(&late);
    assert_just_below(scene.pttl(&tombstone), ms(120_000));
}

#[tokio::test]
async fn g7_an_intro_that_comes_after_its_end_does_not_pass_the_queue_either() {
    let mut scene = Scene::new().await;
    let [late, waiting] = [place("n", TTL), place("n", TTL)];
    scene.redis.release(&late, None, true).await.unwrap();
    scene.hold(TTL).await;
    scene.intro(&waiting).await;
    scene.expire_lock();
    assert_eq!(scene.intro(&late).await, Look::Gone);
    assert_eq!(scene.get(&keys("n").lock), None);
}

#[tokio::test]
async fn g1_a_foreign_holder_excludes_us_and_is_told_apart() {
    let mut scene = Scene::new().await;
    let lock = keys("n").lock;
    // As redis-py, redlock and others write it.
    for value in ["5f0b7a3c-95d1-4a0e-8d4e-3d1a3a0a8f11", "", "fl1:x", "flx:"] {
        let () = scene.command(&["SET", &lock, value, "NX", "PX", "20000"]);
        let look = queued(scene.intro(&place("n", TTL)).await);
        assert!(look.foreign, "{value:?}");
        assert_just_below(look.remaining.unwrap().as_millis() as i64, ms(20_000));
        assert_eq!(scene.attempt(&place("n", TTL)).await, Look::Busy);
        assert_eq!(scene.get(&lock).as_deref(), Some(value));
        let () = scene.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn g1_a_foreign_holder_without_a_limit_has_no_remaining_time() {
    let mut scene = Scene::new().await;
    scene.set(keys("n").lock, "for ever");
    let waiting = place("n", TTL);
    let look = queued(scene.intro(&waiting).await);
    assert!(look.foreign && look.first && look.remaining.is_none());
    let look = queued(scene.again(&waiting).await);
    assert!(look.foreign && look.first && look.remaining.is_none());
    // When it goes, the first look takes the lock; foreign clients send no message.
    scene.expire_lock();
    granted(scene.again(&waiting).await);
}

#[tokio::test]
async fn g1_a_newer_layout_is_unsupported_and_left_untouched() {
    let mut scene = Scene::new().await;
    let lock = keys("n").lock;
    scene.set(&lock, "fl2:whatever");
    for mode in [Mode::Intro, Mode::Try, Mode::Again] {
        let error = scene.redis.contend(&place("n", TTL), mode).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
    assert_eq!(scene.all_keys(), [lock]);
}

#[tokio::test]
async fn g1_a_key_of_another_type_is_a_conflict_before_anything_is_written() {
    let mut scene = Scene::new().await;
    let lock = keys("n").lock;
    let () = scene.command(&["HSET", &lock, "a", "b"]);
    let place = place("n", TTL);
    for mode in [Mode::Intro, Mode::Try, Mode::Again] {
        let error = scene.redis.contend(&place, mode).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(!error.is_passing());
    }
    let error = scene.redis.release(&place, Token::new(1), true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(scene.redis.inspect(&place.name).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(
        scene.redis.force_release(&place.name).await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    assert_eq!(scene.all_keys(), [lock]);
}

#[tokio::test]
async fn g3_tokens_grow_over_releases_expiry_and_loss_of_data() {
    let mut scene = Scene::new().await;
    let mut last = 0;
    for round in 0..60 {
        let (place, token) = scene.hold(TTL).await;
        assert!(token.get() > last, "round {round}");
        last = token.get();
        match round % 3 {
            0 => drop(scene.redis.release(&place, Some(token), false).await.unwrap()),
            1 => scene.expire_lock(),
            _ => scene.command(&["FLUSHALL"]),
        }
    }
}

#[tokio::test]
async fn g3_tokens_grow_although_the_servers_clock_is_set_back() {
    let mut scene = Scene::new().await;
    let ahead = scene.micros() + 3_600_000_000;
    scene.set(keys("n").record, format!("{ahead} R {}", ahead - 5));
    let (holder, token) = scene.hold(TTL).await;
    assert_eq!(token.get(), ahead + 1);
    let waiting = place("n", TTL);
    assert_eq!(queued(scene.intro(&waiting).await).floor, ahead + 2);
    scene.redis.release(&holder, Some(token), false).await.unwrap();
    assert_eq!(granted(scene.again(&waiting).await).get(), ahead + 2);
}

#[tokio::test]
async fn g3_tokens_beyond_32_bits_come_back_to_the_digit() {
    let mut scene = Scene::new().await;
    // The largest that a double can hold exactly, less a few.
    let last = (1_u64 << 53) - 10;
    scene.set(keys("n").record, format!("{last} R 1"));
    let (place, token) = scene.hold(TTL).await;
    assert_eq!(token.get(), last + 1);
    assert_eq!(scene.record(), Some((last + 1, "H".to_owned(), 1)));
    assert_eq!(
        scene.redis.release(&place, Some(token), false).await.unwrap(),
        crate::backend::Verdict::Released
    );
    assert_eq!(scene.record(), Some((last + 1, "R".to_owned(), 1)));
}

#[tokio::test]
async fn g5_a_clock_set_back_does_not_reorder_the_queue() {
    let mut scene = Scene::new().await;
    scene.hold(TTL).await;
    let ahead = scene.micros() + 60_000_000;
    let [first, second] = [place("n", TTL), place("n", TTL)];
    let member = owner_value(&first, &scene.redis);
    let () = scene.command(&["ZADD", &keys("n").queue, &ahead.to_string(), &member]);
    scene.intro(&second).await;
    let member = owner_value(&second, &scene.redis);
    let order: u64 = scene.command(&["ZSCORE", &keys("n").queue, &member]);
    assert_eq!(order, ahead + 1);
}

#[tokio::test]
async fn g10_names_are_data_and_never_part_of_a_script_or_pattern() {
    let mut scene = Scene::new().await;
    let names = ["a\" b", "'", "]] --", "*", "a?[b]\\", "\r\nSET x y\r\n", "🔒", "{x}", "%s%.0f"];
    for name in names {
        let place = place(name, TTL);
        let token = granted(scene.intro(&place).await);
        assert_eq!(scene.get(&format!("{PREFIX}{name}")), Some(owner_value(&place, &scene.redis)));
        scene.redis.release(&place, Some(token), false).await.unwrap();
        assert_eq!(scene.get(&format!("{PREFIX}{name}")), None);
    }
}
