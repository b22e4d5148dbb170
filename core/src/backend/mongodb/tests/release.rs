//! Releases, withdrawals, and what they are told.

use super::*;

#[tokio::test]
async fn g8_a_release_sent_again_is_told_the_truth() {
    let scene = Scene::new().await;
    let (first, token) = scene.hold(TTL).await;
    for _ in 0..2 {
        assert_eq!(scene.release(&first, token).await, Verdict::Released);
    }
    let document = scene.document().await;
    assert_eq!((document.get("h"), time(&document, "u")), (Some(&Bson::Null), 0));
    let (second, next) = scene.hold(TTL).await;
    assert_eq!(scene.release(&first, token).await, Verdict::Released);
    assert_eq!(scene.holder().await, Some(second.owner.to_string()));
    // The second one is lost; of the first nothing is known any more.
    scene.expire().await;
    assert_eq!(scene.release(&second, next).await, Verdict::Lost);
    let (third, last) = scene.hold(TTL).await;
    assert_eq!(scene.release(&second, next).await, Verdict::Lost);
    assert_eq!(scene.release(&first, token).await, Verdict::Unknown);
    assert_eq!(scene.release(&third, last).await, Verdict::Released);
    assert_eq!(scene.release(&second, next).await, Verdict::Lost);
}

#[tokio::test]
async fn g8_a_release_without_a_document_or_with_a_newer_token_is_told_that_nothing_is_known() {
    let scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    scene.raw.delete_one(doc! { "_id": "n" }).await.unwrap();
    assert_eq!(scene.release(&place, token).await, Verdict::Unknown);
    assert_eq!(scene.raw.count_documents(doc! {}).await.unwrap(), 0, "nothing is re-created");
    let (_, next) = scene.hold(TTL).await;
    assert_eq!(scene.release(&place, token).await, Verdict::Unknown);
    let later = Token::new(next.get() + 1).unwrap();
    assert_eq!(scene.release(&place, later).await, Verdict::Unknown);
}

#[tokio::test]
async fn g8_a_released_lease_stays_released_when_the_release_handed_on() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    scene.intro(&place("n", TTL)).await;
    for _ in 0..2 {
        assert_eq!(scene.release(&holder, token).await, Verdict::Released);
    }
}

#[tokio::test]
async fn g7_leaving_takes_a_place_out_of_the_queue_and_gives_back_what_it_was_granted() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [leaving, granted_meanwhile, last] = [0; 3].map(|_| place("n", TTL));
    for place in [&leaving, &granted_meanwhile, &last] {
        scene.intro(place).await;
    }
    scene.leave(&leaving).await;
    let rest = [granted_meanwhile.owner.to_string(), last.owner.to_string()];
    assert_eq!(scene.queue().await, rest);
    scene.release(&holder, token).await;
    scene.leave(&granted_meanwhile).await;
    assert_eq!(scene.holder().await, Some(last.owner.to_string()));
    scene.leave(&last).await;
    assert_eq!(scene.holder().await, None);
    assert!(scene.queue().await.is_empty());
}

#[tokio::test]
async fn g4_any_release_hands_a_free_lock_on() {
    let scene = Scene::new().await;
    scene.hold(TTL).await;
    let waiting = place("n", TTL);
    scene.intro(&waiting).await;
    scene.expire().await;
    scene.leave(&place("n", TTL)).await;
    assert_eq!(scene.holder().await, Some(waiting.owner.to_string()));
}

#[tokio::test]
async fn g6_a_foreign_release_leaves_the_holder_alone() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let before = scene.document().await;
    assert_eq!(scene.release(&place("n", TTL), token).await, Verdict::Lost);
    assert_eq!(scene.document().await, before);
    assert_eq!(scene.release(&holder, token).await, Verdict::Released);
}

#[tokio::test]
async fn g7_tombstones_are_written_only_when_asked_for_and_their_number_is_bounded() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    scene.release(&holder, token).await;
    assert!(scene.document().await.get_array("x").unwrap().is_empty());
    let ended: Vec<_> = (0..1_024)
        .map(|n| doc! { "o": format!("{n:032x}"), "e": { "$add": ["$$NOW", 60_000] } })
        .collect();
    scene.set(doc! { "x": ended }).await;
    let last = place("n", TTL);
    scene.mongo.release(&last, None, true).await.unwrap();
    let owners = |document: Document| -> Vec<String> {
        let ended = document.get_array("x").unwrap().iter();
        ended.map(|e| e.as_document().unwrap().get_str("o").unwrap().to_owned()).collect()
    };
    let known = owners(scene.document().await);
    assert_eq!(known.len(), 1_024);
    assert_eq!(known[0], format!("{:032x}", 1), "the oldest goes");
    assert_eq!(known[1_023], last.owner.to_string());
    scene
        .set(doc! { "x": { "$map": { "input": "$x", "in": {
            "o": "$$this.o", "e": { "$subtract": ["$$NOW", 1] },
        } } } })
        .await;
    scene.mongo.release(&last, None, true).await.unwrap();
    assert_eq!(owners(scene.document().await), [last.owner.to_string()], "what is over goes");
}
