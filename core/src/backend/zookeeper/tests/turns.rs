//! Waiting: whose node is watched, and what its end means.

use super::proxy::{Fate, Frame, Op};
use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_the_end_of_the_only_one_before_us_is_a_grant_without_a_request() {
    let scene = Scene::new().await;
    let other = scene.other().await;
    let holder = place(TTL);
    granted(other.contend(&holder, Mode::Intro).await.unwrap());
    let waiting = scene.queue(TTL).await;
    assert!(queued(scene.again(&waiting).await).first);
    until("the watch", || async { scene.proxy.log().contains(&Frame::Answer(Op::Exists)) }).await;
    scene.proxy.log();
    other.release(&holder, None, false).await.unwrap();
    scene.turn(&waiting).await;
    assert_eq!(scene.proxy.requests(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_contender_whose_predecessor_gives_up_waits_for_the_holder() {
    let scene = Scene::new().await;
    let (holder, _) = scene.hold(TTL).await;
    let between = scene.queue(TTL).await;
    let last = scene.queue(TTL).await;
    assert!(!queued(scene.again(&last).await).first);
    scene.release(&between).await;
    until("a look at the rank", || async { queued(scene.again(&last).await).first }).await;
    tokio::time::sleep(ms(100)).await;
    queued(scene.again(&last).await);
    scene.release(&holder).await;
    scene.turn(&last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_a_predecessor_that_goes_between_list_and_watch_is_not_waited_for() {
    let scene = Scene::new().await;
    let theirs = scene.foreign("lock-").await;
    scene.proxy.once(Frame::Request(Op::Exists), Fate::Hold);
    let waiting = scene.queue(TTL).await;
    scene.proxy.holds().await;
    scene.raw.delete(&theirs, None).await.unwrap();
    scene.proxy.open();
    scene.turn(&waiting).await;
}

/// The crate sets its watches anew by itself; here what it is told then is lost as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_after_a_reconnect_the_predecessor_is_asked_for_anew() {
    let scene = Scene::new().await;
    let theirs = scene.foreign("lock-").await;
    let waiting = scene.queue(TTL).await;
    until("the watch", || async { scene.proxy.log().contains(&Frame::Answer(Op::Exists)) }).await;
    scene.proxy.rule(|frame| match frame {
        Frame::Answer(Op::Event) => Fate::Lose,
        _ => Fate::Pass,
    });
    scene.raw.delete(&theirs, None).await.unwrap();
    until("the lost event", || async { scene.proxy.log().contains(&Frame::Answer(Op::Event)) })
        .await;
    queued(scene.again(&waiting).await);
    scene.proxy.cut();
    scene.turn(&waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_a_reconnect_with_the_holder_still_there_goes_on_waiting() {
    let scene = Scene::new().await;
    let theirs = scene.foreign("lock-").await;
    let waiting = scene.queue(TTL).await;
    for _ in 0..5 {
        scene.proxy.log();
        scene.proxy.cut();
        until("the new watch", || async { scene.proxy.log().contains(&Frame::Answer(Op::Exists)) })
            .await;
        queued(scene.again(&waiting).await);
    }
    scene.raw.delete(&theirs, None).await.unwrap();
    scene.turn(&waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_a_contender_whose_node_was_deleted_starts_again() {
    let scene = Scene::new().await;
    let (holder, _) = scene.hold(TTL).await;
    let between = scene.queue(TTL).await;
    let waiting = scene.queue(TTL).await;
    scene.delete_node_of(&waiting).await;
    scene.release(&between).await;
    until("the end of the place", || async { scene.again(&waiting).await == Look::Gone }).await;
    assert!(scene.node(&waiting).await.is_none());
    scene.release(&holder).await;
}
