//! What the mutants of the protocol survived without: from which instant a session and a write
//! count, and a session that is exchanged behind our back.

use super::proxy::{Fate, Frame, Op};
use super::*;
use crate::clock;
use crate::options::LockOptions;
use crate::period;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_a_session_counts_from_before_it_was_asked_for() {
    let proxy = Proxy::start(server()).await;
    proxy.once(Frame::Answer(Op::Connect), Fate::Hold);
    let url = proxy.url("");
    let connecting = tokio::spawn(async move { connect(&url).await });
    proxy.holds().await;
    let asked = clock::Instant::now();
    tokio::time::sleep(ms(100)).await;
    proxy.open();
    let zookeeper = soon("a session", connecting).await.unwrap();
    let session = zookeeper.shared.sessions.take(LockOptions::default().ttl);
    let keeper = session.keeper().await.unwrap();
    assert!(keeper.session.opened() <= asked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_an_answered_write_counts_from_when_it_was_sent() {
    let scene = Scene::new().await;
    let (place, _) = scene.hold(TTL).await;
    let keeper = scene.keeper(&place);
    // Far from the beats of the session itself, so that nothing comes in between.
    let first = clock::Instant::now().plus(ms(100_000));
    keeper.written(first);
    keeper.written(first.plus(TTL));
    assert_eq!(keeper.deadline(), period::deadline(first, TTL));
}

/// Some look-alikes of ZooKeeper answer a reconnect with another session, and the crate says
/// nothing. What shows it is that none of our nodes is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_session_without_our_nodes_after_a_reconnect_is_given_up() {
    let scene = Scene::new().await;
    let (place, _) = scene.hold(TTL).await;
    let keeper = scene.keeper(&place);
    scene.proxy.rule(|frame| match frame {
        Frame::Request(Op::Connect) => Fate::Cut,
        _ => Fate::Pass,
    });
    scene.proxy.cut();
    until("the end of the line", || async { !keeper.is_connected() }).await;
    scene.delete_node_of(&place).await;
    scene.proxy.pass();
    soon("the end of the session", keeper.over()).await;
    until("the end of the place", || async { scene.again(&place).await == Look::Gone }).await;
    assert!(scene.nodes().await.is_empty());
}
