//! Every branch of `release.lua`: leases, places in the queue, and the truth about the past.

use super::*;
use crate::backend::Verdict::{self, Lost, Released, Unknown};

impl Scene {
    async fn release(&self, place: &Arc<Place>, token: impl Into<Option<Token>>) -> Verdict {
        self.redis.release(place, token.into(), false).await.unwrap()
    }
}

#[tokio::test]
async fn g7_a_release_leaves_only_the_token_record_for_ten_minutes() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    assert_eq!(scene.release(&place, token).await, Released);
    let names = keys("n");
    assert_eq!(scene.record(), Some((token.get(), "R".to_owned(), token.get() - 1)));
    assert_just_below(scene.pttl(&names.record), ms(600_000));
    assert_eq!(scene.all_keys(), [names.record]);
}

#[tokio::test]
async fn g8_a_repeated_release_is_told_the_truth() {
    let mut scene = Scene::new().await;
    let (first, first_token) = scene.hold(TTL).await;
    assert_eq!(scene.release(&first, first_token).await, Released);
    assert_eq!(scene.release(&first, first_token).await, Released);
    // Also while somebody else holds it, and after that one released or lost it.
    let (second, second_token) = scene.hold(TTL).await;
    assert_eq!(scene.release(&first, first_token).await, Released);
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&second, &scene.redis)));
    scene.expire_lock();
    assert_eq!(scene.release(&second, second_token).await, Lost);
    assert_eq!(scene.release(&second, second_token).await, Lost);
    let (third, third_token) = scene.hold(TTL).await;
    assert_eq!(scene.release(&second, second_token).await, Lost);
    // The first was released, but since then one was lost: nothing tells them apart any more.
    assert_eq!(scene.release(&first, first_token).await, Unknown);
    assert_eq!(scene.release(&third, third_token).await, Released);
    assert_eq!(scene.release(&second, second_token).await, Lost);
}

/// Every row of the verdict table, with K, T and the token put there by hand.
#[tokio::test]
async fn g8_the_verdict_goes_by_token() {
    let mut scene = Scene::new().await;
    const HELD: Option<&str> = Some("100 H 50");
    const GIVEN_BACK: Option<&str> = Some("100 R 50");
    for (ours, record, token, expected) in [
        (true, HELD, 100, Released),
        (true, None, 100, Released),
        // A late intro granted the same owner id once more: the old token is judged by itself.
        (true, HELD, 60, Released),
        (true, HELD, 50, Lost),
        (true, HELD, 40, Unknown),
        (true, HELD, 101, Unknown),
        (false, None, 100, Unknown),
        (false, HELD, 101, Unknown),
        (false, GIVEN_BACK, 101, Unknown),
        (false, HELD, 100, Lost),
        (false, GIVEN_BACK, 100, Released),
        (false, HELD, 99, Released),
        (false, GIVEN_BACK, 51, Released),
        (false, HELD, 50, Lost),
        (false, GIVEN_BACK, 50, Lost),
        (false, HELD, 49, Unknown),
        (false, GIVEN_BACK, 1, Unknown),
    ] {
        let () = scene.command(&["FLUSHALL"]);
        let place = place("n", TTL);
        let names = keys("n");
        let holder = if ours { owner_value(&place, &scene.redis) } else { "other".to_owned() };
        let () = scene.command(&["SET", &names.lock, &holder, "PX", "30000"]);
        if let Some(record) = record {
            scene.set(&names.record, record);
        }
        let verdict = scene.release(&place, Token::new(token)).await;
        let row = format!("ours {ours}, record {record:?}, token {token}");
        assert_eq!(verdict, expected, "{row}");
        assert_eq!(scene.get(&names.lock), (!ours).then_some(holder), "{row}");
        let record = record.map(str::to_owned);
        let after = match (ours, &record) {
            (false, _) => record.clone(),
            (true, None) => Some(format!("{token} R {}", token - 1)),
            (true, Some(_)) => Some(format!("{} R 50", token.max(100))),
        };
        assert_eq!(scene.get(&names.record), after, "{row}");
    }
}

#[tokio::test]
async fn g8_after_loss_of_the_data_an_old_token_is_unknown() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    let () = scene.command(&["FLUSHALL"]);
    assert_eq!(scene.release(&place, token).await, Unknown);
    // Also when others have taken the lock since: what was lost is not called released.
    scene.hold(TTL).await;
    assert_eq!(scene.release(&place, token).await, Unknown);
}

#[tokio::test]
async fn g8_a_lease_that_ran_out_is_lost_also_after_the_next_grant() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(ms(100)).await;
    let lock = keys("n").lock;
    until("the end of the lease", || std::future::ready(scene.pttl(&lock) == -2)).await;
    assert_eq!(scene.release(&place, token).await, Lost);
    let (_, next) = scene.hold(TTL).await;
    assert_eq!(scene.release(&place, token).await, Lost);
    assert_eq!(scene.record().unwrap(), (next.get(), "H".to_owned(), token.get()));
}

#[tokio::test]
async fn g6_a_release_of_somebody_else_changes_nothing() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    scene.intro(&waiting).await;
    let stranger = place("n", TTL);
    for token in [None, Some(token), Token::new(token.get() + 1)] {
        scene.release(&stranger, token).await;
    }
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&holder, &scene.redis)));
    assert_eq!(scene.record().unwrap(), (token.get(), "H".to_owned(), token.get() - 1));
    assert_eq!(scene.queue(), [owner_value(&waiting, &scene.redis)]);
}

#[tokio::test]
async fn g7_a_contender_that_leaves_is_in_the_queue_no_more() {
    let mut scene = Scene::new().await;
    scene.hold(TTL).await;
    let [leaving, staying] = [place("n", TTL), place("n", TTL)];
    for place in [&leaving, &staying] {
        scene.intro(place).await;
        scene.again(place).await;
    }
    scene.release(&leaving, None).await;
    let names = keys("n");
    let staying = [owner_value(&staying, &scene.redis)];
    assert_eq!(scene.queue(), staying);
    assert_eq!(scene.command::<Vec<String>>(&["ZRANGE", &names.alive, "0", "-1"]), staying);
    assert_eq!(scene.get(&tombstone(&leaving)), None, "the normal way leaves no tombstone");
}

#[tokio::test]
async fn g7_a_contender_that_was_granted_while_it_left_hands_the_lock_on() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [leaving, next] = [place("n", TTL), place("n", TTL)];
    scene.intro(&leaving).await;
    scene.intro(&next).await;
    scene.release(&holder, token).await;
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&leaving, &scene.redis)));
    scene.release(&leaving, None).await;
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&next, &scene.redis)));
    // Given back and not lost.
    assert_eq!(scene.record().unwrap().2, token.get() - 1);
    scene.release(&next, None).await;
    let record = keys("n").record;
    assert_eq!(scene.all_keys(), [record]);
}

#[tokio::test]
async fn g7_a_leave_without_a_record_writes_none_that_could_not_be_read() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    let () = scene.command(&["DEL", &keys("n").record]);
    scene.release(&place, None).await;
    assert!(scene.all_keys().is_empty());
    let (_, next) = scene.hold(TTL).await;
    assert!(next > token);
}

#[tokio::test]
async fn g4_a_leave_hands_a_free_lock_on() {
    let mut scene = Scene::new().await;
    scene.hold(TTL).await;
    let [leaving, next] = [place("n", TTL), place("n", TTL)];
    scene.intro(&leaving).await;
    scene.intro(&next).await;
    scene.expire_lock();
    scene.release(&leaving, None).await;
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&next, &scene.redis)));
}

#[tokio::test]
async fn g7_a_late_intro_that_took_the_lock_once_more_is_cleaned_up_by_the_same_owner_id() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    scene.expire_lock();
    let again = granted(scene.intro(&place).await);
    assert!(again > token);
    // The release of the first lease: that one was lost, and nothing stays behind.
    assert_eq!(scene.redis.release(&place, Some(token), true).await.unwrap(), Lost);
    assert_eq!(scene.get(&keys("n").lock), None);
    assert_eq!(scene.record().unwrap(), (again.get(), "R".to_owned(), token.get()));
    assert_eq!(scene.intro(&place).await, Look::Gone);
}

#[tokio::test]
async fn g7_every_key_has_an_end() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [first, second] = [place("n", TTL), place("n", TTL)];
    scene.intro(&first).await;
    scene.again(&first).await;
    scene.intro(&second).await;
    scene.intro(&second).await;
    scene.redis.release(&place("n", TTL), None, true).await.unwrap();
    let assert_limited = |scene: &mut Scene| {
        for key in scene.all_keys() {
            let left = scene.pttl(&key);
            assert!((1..=630_000).contains(&left), "{key} lives {left} ms");
        }
    };
    assert_eq!(scene.all_keys().len(), 5, "one of each kind");
    assert_limited(&mut scene);
    scene.release(&holder, token).await;
    assert_limited(&mut scene);
    scene.expire_lock();
    scene.intro(&place("n", TTL)).await;
    assert_limited(&mut scene);
}
