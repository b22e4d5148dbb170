//! Giving a lease back when replies are lost.

use super::proxy::{Fate, Frame, Op};
use super::*;
use crate::backend::Verdict;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_release_that_did_not_arrive_is_sent_again() {
    let scene = Scene::new().await;
    let (place, _) = scene.hold(TTL).await;
    scene.proxy.once(Frame::Request(Op::Delete), Fate::Cut);
    assert_eq!(scene.release(&place).await, Verdict::Released);
    assert!(scene.nodes().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_release_whose_reply_was_lost_is_told_the_truth() {
    let scene = Scene::new().await;
    let (place, _) = scene.hold(TTL).await;
    scene.proxy.once(Frame::Answer(Op::Delete), Fate::Cut);
    assert_eq!(scene.release(&place).await, Verdict::Released);
    assert!(scene.nodes().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_a_release_of_a_node_that_somebody_deleted_says_lost() {
    let scene = Scene::new().await;
    let (place, _) = scene.hold(TTL).await;
    scene.delete_node_of(&place).await;
    assert_eq!(scene.release(&place).await, Verdict::Lost);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_release_that_nobody_waits_for_is_done_all_the_same() {
    let scene = Scene::new().await;
    let (place, _) = scene.hold(TTL).await;
    scene.proxy.once(Frame::Request(Op::Delete), Fate::Cut);
    drop(scene.zookeeper.release(&place, None, false));
    until("the release", || async { scene.nodes().await.is_empty() }).await;
}
