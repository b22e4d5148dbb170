//! Every branch of a look but the hand-offs.

use super::*;
use crate::period::Term;

#[tokio::test]
async fn g1_a_free_lock_is_taken_and_the_document_says_so() {
    let scene = Scene::new().await;
    let before = scene.now().await as u64 * 1_000;
    let (place, token) = scene.hold(TTL).await;
    let after = (scene.now().await as u64 + 1) * 1_000;
    assert!((before..=after).contains(&token.get()), "tokens are the server's microseconds");
    let document = scene.document().await;
    assert_eq!(document.get_i32("v").unwrap(), 1);
    assert_eq!(number(&document, "t"), token.get());
    assert_eq!(number(&document, "l"), token.get() - 1);
    assert_eq!(document.get_str("f").unwrap(), "H");
    let holder = document.get_document("h").unwrap();
    assert_eq!(holder.get_str("o").unwrap(), place.owner.to_string());
    assert_eq!(holder.get_str("c").unwrap(), scene.mongo.shared.client.to_string());
    assert_eq!(holder.get_str("k").unwrap(), "own");
    assert_eq!(holder.get_str("m").unwrap(), &*place.metadata);
    assert_eq!(time(&document, "u") - time(&document, "h.a"), 30_000);
    assert_eq!(time(&document, "purge") - time(&document, "u"), 86_400_000);
    assert!(document.keys().all(|key| !key.starts_with('_') || key == "_id"), "{document}");
    assert!(document.get_document("q").unwrap().is_empty());
    assert!(document.get_array("x").unwrap().is_empty());
}

#[tokio::test]
async fn g1_a_held_lock_is_not_granted_to_others() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [second, third] = [place("n", TTL), place("n", TTL)];
    let look = queued(scene.intro(&second).await);
    assert!(look.first && !look.foreign && look.remaining.is_none());
    assert_eq!(look.floor, token.get() + 1);
    assert!(!queued(scene.intro(&third).await).first);
    let expected = [second.owner.to_string(), third.owner.to_string()];
    assert_eq!(scene.queue().await, expected);
    let before = scene.document().await;
    assert_eq!(scene.attempt(&place("n", TTL)).await, Look::Busy);
    assert_eq!(scene.document().await, before, "a try never queues, and writes nothing");
    assert_eq!(scene.holder().await, Some(holder.owner.to_string()));
}

#[tokio::test]
async fn g8_an_intro_sent_again_is_granted_the_same_lease_for_a_full_ttl() {
    let scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    for mode in [Mode::Intro, Mode::Try, Mode::Again] {
        scene.set_time("u", 1_000).await;
        let look = scene.mongo.contend(&place, mode).await.unwrap();
        assert_eq!(look, Look::Granted(token, Term::FullTtl));
        assert_just_below(scene.left().await, TTL);
    }
    assert!(scene.queue().await.is_empty());
}

#[tokio::test]
async fn g1_an_old_look_never_shortens_a_lease() {
    let scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    // As a newer look or renewal has left it.
    scene.set_time("u", 90_000).await;
    assert_eq!(granted(scene.intro(&place).await), token);
    assert!(scene.left().await > 60_000);
}

#[tokio::test]
async fn g8_an_intro_sent_again_keeps_its_place_and_is_a_sign_of_life() {
    let scene = Scene::new().await;
    scene.hold(TTL).await;
    let [first, second] = [place("n", TTL), place("n", TTL)];
    scene.intro(&first).await;
    scene.intro(&second).await;
    let order = scene.queue().await;
    let before = scene.document().await;
    tokio::time::sleep(ms(5)).await;
    assert!(queued(scene.intro(&first).await).first);
    assert!(!queued(scene.intro(&second).await).first);
    assert_eq!(scene.queue().await, order);
    let after = scene.document().await;
    for place in [&first, &second] {
        let (seen, begun) = (entry(place, "s"), entry(place, "e"));
        assert!(time(&after, &seen) > time(&before, &seen));
        assert_eq!(time(&after, &begun), time(&before, &begun));
    }
}

#[tokio::test]
async fn g4_an_old_look_does_not_take_back_a_sign_of_life() {
    let scene = Scene::new().await;
    scene.hold(TTL).await;
    let waiting = place("n", TTL);
    scene.intro(&waiting).await;
    scene.set_time(&entry(&waiting, "s"), 60_000).await;
    let before = scene.document().await;
    scene.again(&waiting).await;
    let seen = entry(&waiting, "s");
    assert_eq!(time(&scene.document().await, &seen), time(&before, &seen));
}

#[tokio::test]
async fn g7_a_look_again_never_introduces() {
    let scene = Scene::new().await;
    let stranger = place("n", TTL);
    assert_eq!(scene.again(&stranger).await, Look::Gone);
    assert_eq!(scene.raw.count_documents(doc! {}).await.unwrap(), 0);
    scene.hold(TTL).await;
    let before = scene.document().await;
    assert_eq!(scene.again(&stranger).await, Look::Gone);
    assert_eq!(scene.document().await, before);
    // Nor when the lock is free.
    scene.expire().await;
    assert_eq!(scene.again(&stranger).await, Look::Gone);
    assert_eq!(scene.holder().await, None);
}

#[tokio::test]
async fn g7_an_intro_that_comes_after_its_end_finds_the_tombstone() {
    let scene = Scene::new().await;
    let late = place("n", TTL);
    scene.mongo.release(&late, None, true).await.unwrap();
    for held in [false, true] {
        if held {
            scene.hold(TTL).await;
        }
        let before = scene.document().await;
        assert_eq!(scene.intro(&late).await, Look::Full);
        assert_eq!(scene.attempt(&late).await, Look::Busy);
        assert_eq!(scene.document().await, before);
    }
    let document = scene.document().await;
    let tombstone = document.get_array("x").unwrap()[0].as_document().unwrap();
    assert_eq!(tombstone.get_str("o").unwrap(), late.owner.to_string());
    assert_just_below(time(tombstone, "e") - scene.now().await, ms(120_000));
}

#[tokio::test]
async fn g1_a_step_of_one_that_has_ended_leaves_no_expired_record_behind() {
    let scene = Scene::new().await;
    let late = place("n", TTL);
    scene.mongo.release(&late, None, true).await.unwrap();
    let (holder, token) = scene.hold(TTL).await;
    for step in ["intro", "again", "release"] {
        scene.expire().await;
        match step {
            "intro" => assert_eq!(scene.intro(&late).await, Look::Full),
            "again" => assert_eq!(scene.again(&place("n", TTL)).await, Look::Gone),
            _ => scene.leave(&place("n", TTL)).await,
        }
        let document = scene.document().await;
        assert_eq!(document.get("h"), Some(&Bson::Null), "after {step}");
        assert_eq!(time(&document, "u"), 0);
        // Its lease counts as lost and not as released.
        assert_eq!(document.get_str("f").unwrap(), "H");
        assert_eq!(number(&document, "t"), token.get());
        // Back as it was, for the next step.
        scene
            .set(doc! { "h": { "$literal": {
                "o": holder.owner.to_string(), "c": "0", "ttl": 30_000_i64, "k": "own", "m": "",
            } } })
            .await;
    }
}

#[tokio::test]
async fn g4_a_holder_whose_time_is_over_is_replaced() {
    let scene = Scene::new().await;
    let (late, first) = scene.hold(TTL).await;
    scene.expire().await;
    let next = place("n", TTL);
    let second = granted(scene.intro(&next).await);
    assert!(second > first);
    assert_eq!(number(&scene.document().await, "l"), first.get(), "the first one is lost");
    assert_eq!(scene.release(&late, first).await, Verdict::Lost);
    assert_eq!(scene.holder().await, Some(next.owner.to_string()));
    assert_eq!(scene.release(&next, second).await, Verdict::Released);
}

#[tokio::test]
async fn g3_tokens_grow_by_count_when_the_clock_does_not_and_by_the_clock_without_a_document() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    scene.release(&holder, token).await;
    let far = token.get() + 3_600_000_000;
    scene.set(doc! { "t": far as i64 }).await;
    let (_, token) = scene.hold(TTL).await;
    assert_eq!(token.get(), far + 1);
    scene.raw.delete_one(doc! { "_id": "n" }).await.unwrap();
    let before = scene.now().await as u64 * 1_000;
    let (_, token) = scene.hold(TTL).await;
    assert!(token.get() >= before);
}

#[tokio::test]
async fn g5_a_full_queue_takes_nobody_and_grows_no_further() {
    let scene = Scene::new().await;
    scene.hold(TTL).await;
    let entries: Vec<_> = (0..super::super::steps::LONGEST_QUEUE)
        .map(|n| {
            doc! { "k": format!("o{n:032x}"), "v": {
                "c": "c", "ttl": 30_000_i64, "s": "$$NOW", "e": "$$NOW", "m": "",
            } }
        })
        .collect();
    scene.set(doc! { "q": { "$arrayToObject": [entries] } }).await;
    let late = place("n", TTL);
    assert_eq!(scene.intro(&late).await, Look::Full);
    assert_eq!(scene.queue().await.len(), super::super::steps::LONGEST_QUEUE as usize);
    assert_eq!(scene.attempt(&late).await, Look::Busy);
}

#[tokio::test]
async fn g1_names_and_metadata_are_data_and_never_operators() {
    let scene = Scene::new().await;
    let longest = "é".repeat(512);
    let names = ["$where", "$$NOW", "a.b", "{x}", "..", "%", "🔒", "$_me", "n", &longest];
    let mut places = Vec::new();
    for name in names {
        let place = place_of(name, TTL, "$h {$ne: 1} $$ROOT");
        granted(scene.intro(&place).await);
        let waiting = place_of(name, TTL, "$_token");
        assert!(queued(scene.intro(&waiting).await).first, "{name}");
        places.push(place);
    }
    for (name, place) in names.iter().zip(&places) {
        let document = scene.raw.find_one(doc! { "_id": name }).await.unwrap().unwrap();
        let holder = document.get_document("h").unwrap();
        assert_eq!(holder.get_str("o").unwrap(), place.owner.to_string());
        assert_eq!(holder.get_str("m").unwrap(), "$h {$ne: 1} $$ROOT");
        let waiter = document.get_document("q").unwrap().values().next().unwrap();
        assert_eq!(waiter.as_document().unwrap().get_str("m").unwrap(), "$_token");
    }
}

#[tokio::test]
async fn g7_the_purge_date_is_raised_once_an_hour_and_never_comes_near_a_lease() {
    let scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    let first = time(&scene.document().await, "purge");
    scene.again(&place).await;
    assert_eq!(time(&scene.document().await, "purge"), first);
    scene.set_time("purge", 3_600_000).await;
    scene.again(&place).await;
    let document = scene.document().await;
    assert!(time(&document, "purge") - time(&document, "u") >= 23 * 3_600_000);
    scene.set_time("purge", 3_600_000).await;
    scene.release(&place, token).await;
    let document = scene.document().await;
    assert!(time(&document, "purge") - time(&document, "z") >= 23 * 3_600_000);
}

#[tokio::test]
async fn g8_many_first_requests_at_once_make_one_holder_and_one_queue() {
    let scene = Scene::new().await;
    let places: Vec<_> = (0..50).map(|_| place("n", TTL)).collect();
    let looks = futures_util::future::join_all(places.iter().map(|place| scene.intro(place)));
    let looks = soon("all answers", looks).await;
    let holders = looks.iter().filter(|look| matches!(look, Look::Granted(..))).count();
    assert_eq!(holders, 1, "{looks:?}");
    assert!(looks.iter().all(|look| matches!(look, Look::Granted(..) | Look::Queued(_))));
    assert_eq!(scene.queue().await.len(), 49);
}
