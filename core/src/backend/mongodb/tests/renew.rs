//! Renewals.

use super::*;
use crate::backend::{Renewal, Renewed};
use crate::period::Term;

const OURS: Renewed = Renewed::Ours(Term::FullTtl);

fn renewal(place: &Arc<Place>, token: Token) -> Renewal {
    Renewal { place: place.clone(), token }
}

async fn renew(scene: &Scene, leases: Vec<Renewal>) -> Vec<Renewed> {
    let results = scene.mongo.renew(leases).await.unwrap();
    results.into_iter().map(Result::unwrap).collect()
}

#[tokio::test]
async fn g2_a_renewal_sets_a_full_ttl_and_confirms_a_hand_off() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let next = place("n", TTL);
    scene.intro(&next).await;
    scene.release(&holder, token).await;
    let token = Token::new(number(&scene.document().await, "t")).unwrap();
    assert_eq!(renew(&scene, vec![renewal(&next, token)]).await, [OURS]);
    let document = scene.document().await;
    assert_eq!(document.get_document("h").unwrap().get_str("k").unwrap(), "own");
    assert_just_below(scene.left().await, TTL);
    let purge = time(&document, "purge") - time(&document, "u");
    assert!(purge >= 23 * 3_600_000);
}

#[tokio::test]
async fn g1_an_old_renewal_never_shortens_a_lease() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    scene.set_time("u", 90_000).await;
    assert_eq!(renew(&scene, vec![renewal(&holder, token)]).await, [OURS]);
    assert!(scene.left().await > 60_000);
}

#[tokio::test]
async fn g6_a_renewal_never_revives_or_re_creates() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let lease = || vec![renewal(&holder, token)];
    scene.expire().await;
    let before = scene.document().await;
    assert_eq!(renew(&scene, lease()).await, [Renewed::NotOurs], "its time is over");
    assert_eq!(scene.document().await, before);
    scene.release(&holder, token).await;
    assert_eq!(renew(&scene, lease()).await, [Renewed::NotOurs], "it was released");
    let (other, later) = scene.hold(TTL).await;
    let before = scene.document().await;
    let wrong = [renewal(&holder, later), renewal(&other, token)];
    for wrong in wrong {
        assert_eq!(renew(&scene, vec![wrong]).await, [Renewed::NotOurs]);
    }
    assert_eq!(scene.document().await, before);
    scene.raw.delete_one(doc! { "_id": "n" }).await.unwrap();
    assert_eq!(renew(&scene, lease()).await, [Renewed::NotOurs], "there is no document");
    assert_eq!(scene.raw.count_documents(doc! {}).await.unwrap(), 0);
}

#[tokio::test]
async fn g2_of_many_leases_each_is_judged_alone() {
    let scene = Scene::new().await;
    let mut leases = Vec::new();
    for n in 0..620 {
        leases.push(place(&format!("n{n}"), TTL));
    }
    let looks = futures_util::future::join_all(leases.iter().map(|place| scene.intro(place)));
    let leases: Vec<_> =
        leases.iter().zip(looks.await).map(|(p, l)| renewal(p, granted(l))).collect();
    let lost = [3, 77, 499, 500, 619];
    for n in lost {
        let filter = doc! { "_id": format!("n{n}") };
        let pipeline = vec![doc! { "$set": { "u": { "$subtract": ["$$NOW", 1] } } }];
        scene.raw.update_one(filter, pipeline).await.unwrap();
    }
    let results = renew(&scene, leases).await;
    assert_eq!(results.len(), 620);
    for (n, result) in results.into_iter().enumerate() {
        let expected = if lost.contains(&n) { Renewed::NotOurs } else { OURS };
        assert_eq!(result, expected, "{n}");
    }
}
