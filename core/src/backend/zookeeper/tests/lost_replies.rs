//! A create whose reply is lost: looked for, found or made anew, and never another session's.

use super::proxy::{Fate, Frame, Op};
use super::*;
use crate::backend::Verdict;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_node_whose_create_got_no_reply_is_found_again() {
    for layout in ["curator", "kazoo", "plain"] {
        let scene = Scene::with_layout(layout).await;
        let (first, _) = scene.hold(TTL).await;
        scene.release(&first).await;
        scene.proxy.once(Frame::Answer(Op::Create), Fate::Cut);
        let (place, token) = scene.hold(TTL).await;
        let [node] = scene.nodes().await.try_into().unwrap();
        let path = format!("{}/{node}", scene.directory());
        assert_eq!(token.get(), scene.raw.check_stat(&path).await.unwrap().unwrap().czxid as u64);
        assert_eq!(scene.release(&place).await, Verdict::Released);
        assert!(scene.nodes().await.is_empty(), "{layout}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_create_that_never_arrived_is_sent_again() {
    let scene = Scene::new().await;
    let (first, _) = scene.hold(TTL).await;
    scene.release(&first).await;
    scene.proxy.once(Frame::Request(Op::Create), Fate::Cut);
    scene.hold(TTL).await;
    assert_eq!(scene.nodes().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_cancelled_create_whose_reply_is_lost_leaves_no_node() {
    for layout in ["curator", "plain"] {
        let scene = Scene::with_layout(layout).await;
        let (first, _) = scene.hold(TTL).await;
        scene.release(&first).await;
        scene.proxy.once(Frame::Answer(Op::Create), Fate::Hold);
        let place = place(TTL);
        drop(scene.contend(&place, Mode::Intro));
        scene.proxy.holds().await;
        let release = scene.zookeeper.release(&place, None, true);
        scene.proxy.cut();
        soon("the withdrawal", release).await.unwrap();
        assert!(scene.nodes().await.is_empty(), "{layout}");
    }
}

/// The server that we come to may lag behind the one that created the node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_lost_create_is_looked_for_after_the_server_has_caught_up() {
    let scene = Scene::new().await;
    let (first, _) = scene.hold(TTL).await;
    scene.release(&first).await;
    scene.proxy.once(Frame::Answer(Op::Create), Fate::Cut);
    scene.proxy.log();
    scene.hold(TTL).await;
    let requests = scene.proxy.requests();
    let sync = requests.iter().position(|op| *op == Op::Sync).expect("a sync");
    let connect = requests.iter().position(|op| *op == Op::Connect).expect("a new connection");
    let list = requests.iter().rposition(|op| *op == Op::List).expect("a list");
    assert!(connect < sync && sync < list, "{requests:?}");
    assert_eq!(requests.iter().filter(|op| **op == Op::Create).count(), 1, "{requests:?}");
}

/// A node that carries our owner id but ends with another session would vanish under us.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_node_of_another_session_is_never_ours() {
    let scene = Scene::new().await;
    let (first, _) = scene.hold(TTL).await;
    scene.release(&first).await;
    let place = place(TTL);
    scene.foreign(&format!("_c_{}-lock-", place.owner)).await;
    scene.proxy.once(Frame::Request(Op::Create), Fate::Cut);
    assert_eq!(scene.intro(&place).await, Look::Gone);
    assert_eq!(scene.nodes().await.len(), 1, "theirs was deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_an_owner_id_is_not_carried_over_to_another_session() {
    let scene = Scene::new().await;
    let (holder, _) = scene.hold(TTL).await;
    let ttl = ms(1_000);
    let waiting = scene.queue(ttl).await;
    let session = scene.keeper(&waiting).session.id();
    end_session(&scene, &waiting).await;
    until("the end of the place", || async { scene.again(&waiting).await == Look::Gone }).await;
    assert_eq!(scene.again(&waiting).await, Look::Gone);
    assert_eq!(scene.node(&waiting).await, None);
    // What comes next gets a session that lives.
    let next = scene.queue(ttl).await;
    assert_ne!(scene.keeper(&next).session.id(), session);
    scene.release(&holder).await;
    scene.turn(&next).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_a_session_that_was_ended_from_outside_loses_its_leases() {
    let scene = Scene::new().await;
    let (holder, _) = scene.hold(ms(1_000)).await;
    end_session(&scene, &holder).await;
    until("the end of the lease", || async { scene.again(&holder).await == Look::Gone }).await;
    let (_, token) = scene.hold(ms(1_000)).await;
    assert!(token.get() > 0);
}

/// Ends the session as whoever knows its password can: comes in with it and closes it.
async fn end_session(scene: &Scene, place: &Place) {
    let info = scene.keeper(place).session.info();
    let client = zk::Client::connector().with_session(info).connect(&server()).await.unwrap();
    let mut states = client.state_watcher();
    drop(client);
    soon("the end of the session", async { while !states.changed().await.is_terminated() {} })
        .await;
}
