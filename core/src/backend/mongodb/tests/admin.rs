//! What people and tools ask for.

use super::*;
use crate::{LockInfo, LockState};

async fn inspect(scene: &Scene) -> LockInfo {
    scene.mongo.inspect(&Name::new("n").unwrap()).await.unwrap()
}

#[tokio::test]
async fn g6_inspect_shows_holder_and_queue_in_order() {
    let scene = Scene::new().await;
    assert_eq!(inspect(&scene).await.state, LockState::Free);
    let (holder, token) = scene.hold(TTL).await;
    let waiting = [place_of("n", TTL, "first"), place_of("n", TTL, "second")];
    for place in &waiting {
        scene.intro(place).await;
    }
    let info = inspect(&scene).await;
    assert_eq!((info.state, info.token), (LockState::Held, Some(token)));
    assert_eq!(info.owner, Some(holder.owner.to_string()));
    assert_eq!(info.metadata.as_deref(), Some(&*holder.metadata));
    assert_just_below(info.ttl_left.unwrap().as_millis() as i64, TTL);
    let queue: Vec<_> =
        info.queue.iter().map(|w| (w.owner.clone(), w.metadata.clone().unwrap())).collect();
    let expected: Vec<_> =
        waiting.iter().map(|p| (p.owner.to_string(), p.metadata.to_string())).collect();
    assert_eq!(queue, expected);
    scene.expire().await;
    let info = inspect(&scene).await;
    assert_eq!((info.state, info.queue.len()), (LockState::Free, 2));
}

#[tokio::test]
async fn g6_a_forced_release_counts_as_lost_and_hands_on() {
    let scene = Scene::new().await;
    let name = Name::new("n").unwrap();
    assert!(!scene.mongo.force_release(&name).await.unwrap());
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    scene.intro(&waiting).await;
    assert!(scene.mongo.force_release(&name).await.unwrap());
    assert_eq!(scene.holder().await, Some(waiting.owner.to_string()));
    let renewal = crate::backend::Renewal { place: holder.clone(), token };
    let renewed = scene.mongo.renew(vec![renewal]).await.unwrap().pop().unwrap().unwrap();
    assert_eq!(renewed, crate::backend::Renewed::NotOurs);
    assert_eq!(scene.release(&holder, token).await, Verdict::Lost);
    assert!(scene.mongo.force_release(&name).await.unwrap());
    assert_eq!(scene.holder().await, None);
    assert_eq!(time(&scene.document().await, "u"), 0);
    assert!(!scene.mongo.force_release(&name).await.unwrap());
}

#[tokio::test]
async fn g6_list_shows_what_is_held_or_waited_for_and_nothing_else() {
    let scene = Scene::new().await;
    let (released, token) = scene.hold(TTL).await;
    scene.release(&released, token).await;
    scene.insert(doc! { "_id": "foreign", "h": 1 }).await;
    scene.insert(doc! { "_id": 5, "v": 1, "h": 1 }).await;
    let places: Vec<_> = (0..600).map(|n| place(&format!("held {n:03}"), TTL)).collect();
    futures_util::future::join_all(places.iter().map(|place| scene.intro(place))).await;
    let mut names: Vec<_> =
        scene.mongo.list().await.unwrap().into_iter().map(|info| info.name).collect();
    names.sort();
    let expected: Vec<_> = places.iter().map(|place| place.name.as_str().to_owned()).collect();
    assert_eq!(names, expected);
}
