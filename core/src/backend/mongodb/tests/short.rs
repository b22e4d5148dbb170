//! The short form, which must not differ from the long one but in speed.

use super::*;

async fn turn(scene: &Scene) -> Token {
    let (place, token) = scene.hold(TTL).await;
    assert_eq!(scene.release(&place, token).await, Verdict::Released);
    token
}

async fn lonely_scene() -> Scene {
    let scene = Scene::new().await;
    turn(&scene).await;
    assert!(scene.mongo.shared.loneliness.is(&Name::new("n").unwrap()));
    scene
}

#[tokio::test]
async fn g3_the_short_form_leaves_the_document_as_the_long_one_does() {
    let scene = lonely_scene().await;
    let (holder, token) = scene.hold(TTL).await;
    let document = scene.document().await;
    assert_eq!(number(&document, "t"), token.get());
    assert_eq!(document.get_str("f").unwrap(), "H");
    let held = document.get_document("h").unwrap();
    let keys: Vec<_> = held.keys().map(String::as_str).collect();
    assert_eq!(keys, ["o", "c", "ttl", "a", "k", "m"]);
    assert_eq!(held.get_str("o").unwrap(), holder.owner.to_string());
    assert_eq!(time(&document, "u") - time(&document, "h.a"), 30_000);
    assert_eq!(time(&document, "z"), time(&document, "h.a"));
    assert_eq!(scene.release(&holder, token).await, Verdict::Released);
    let document = scene.document().await;
    assert_eq!(document.get("h"), Some(&Bson::Null));
    assert_eq!((time(&document, "u"), document.get_str("f").unwrap()), (0, "R"));
    assert_eq!(scene.release(&holder, token).await, Verdict::Released, "sent again");
    assert!(turn(&scene).await > token);
}

#[tokio::test]
async fn g7_the_short_form_keeps_up_the_purge_date() {
    let scene = lonely_scene().await;
    scene.set_time("purge", 3_600_000).await;
    scene.hold(TTL).await;
    let document = scene.document().await;
    assert!(time(&document, "purge") - time(&document, "u") >= 23 * 3_600_000);
}

#[tokio::test]
async fn g1_the_short_form_takes_no_held_lock_and_passes_no_queue() {
    let scene = lonely_scene().await;
    let other = scene.client().await;
    let held = place("n", TTL);
    let token = granted(other.contend(&held, Mode::Intro).await.unwrap());
    let waiting = place("n", TTL);
    queued(scene.intro(&waiting).await);
    other.release(&held, Some(token), false).await.unwrap();
    assert_eq!(scene.holder().await, Some(waiting.owner.to_string()));

    let scene = lonely_scene().await;
    let other = scene.client().await;
    let [first, second] = [place("n", TTL), place("n", TTL)];
    granted(other.contend(&first, Mode::Intro).await.unwrap());
    queued(other.contend(&second, Mode::Intro).await.unwrap());
    // Free, with somebody waiting.
    scene.set(doc! { "h": Bson::Null, "u": DateTime::from_millis(0) }).await;
    assert_eq!(scene.attempt(&place("n", TTL)).await, Look::Busy);
    assert_eq!(scene.holder().await, Some(second.owner.to_string()));
}

#[tokio::test]
async fn g7_the_short_form_grants_nothing_while_a_tombstone_stands() {
    let scene = lonely_scene().await;
    let late = place("n", TTL);
    scene.mongo.release(&late, None, true).await.unwrap();
    scene.mongo.shared.loneliness.ended_alone(&late.name);
    scene.mongo.shared.loneliness.ended_alone(&late.name);
    assert!(scene.mongo.shared.loneliness.is(&late.name));
    assert_eq!(scene.intro(&late).await, Look::Full);
    assert_eq!(scene.holder().await, None);
}

#[tokio::test]
async fn g5_a_short_release_that_finds_somebody_waiting_hands_on() {
    let scene = lonely_scene().await;
    let other = scene.client().await;
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    queued(other.contend(&waiting, Mode::Intro).await.unwrap());
    assert_eq!(scene.release(&holder, token).await, Verdict::Released);
    assert_eq!(scene.holder().await, Some(waiting.owner.to_string()));
    assert!(!scene.mongo.shared.loneliness.is(&holder.name));
}

#[tokio::test]
async fn g8_a_short_release_of_a_lost_lease_is_told_so() {
    let scene = lonely_scene().await;
    let (holder, token) = scene.hold(TTL).await;
    scene.expire().await;
    assert_eq!(scene.release(&holder, token).await, Verdict::Lost);
}

#[tokio::test]
async fn g8_a_short_grant_whose_answer_was_lost_is_found_by_the_long_form() {
    let scene = lonely_scene().await;
    let place = place("n", TTL);
    let token = granted(scene.intro(&place).await);
    assert_eq!(granted(scene.intro(&place).await), token);
}
