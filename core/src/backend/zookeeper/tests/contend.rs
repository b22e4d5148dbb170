//! Asking for a place: the node, its number, its parents.

use super::proxy::{Fate, Frame, Op};
use super::*;
use crate::backend::Verdict;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_the_list_is_asked_for_after_the_node_is_created() {
    let scene = Scene::new().await;
    let (first, _) = scene.hold(TTL).await;
    scene.release(&first).await;
    scene.proxy.log();
    scene.proxy.once(Frame::Answer(Op::Create), Fate::Hold);
    let place = place(TTL);
    let asked = tokio::spawn(scene.contend(&place, Mode::Intro));
    scene.proxy.holds().await;
    // Both at once, without waiting for an answer in between.
    let mut requests = scene.proxy.requests();
    until("the list", || {
        requests.extend(scene.proxy.requests());
        std::future::ready(requests.contains(&Op::List))
    })
    .await;
    assert_eq!(requests, [Op::Create, Op::List]);
    scene.proxy.open();
    granted(soon("a grant", asked).await.unwrap().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g3_the_token_is_the_transaction_that_created_the_node() {
    for layout in ["curator", "kazoo", "plain"] {
        let scene = Scene::with_layout(layout).await;
        let (place, token) = scene.hold(TTL).await;
        let [node] = scene.nodes().await.try_into().unwrap();
        let path = format!("{}/{node}", scene.directory());
        let stat = scene.raw.check_stat(&path).await.unwrap().unwrap();
        assert_eq!(token.get(), stat.czxid as u64, "{layout}");
        scene.release(&place).await;
        let (_, next) = scene.hold(TTL).await;
        assert!(next > token);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_children_of_other_libraries_count_by_their_number() {
    let scene = Scene::new().await;
    for prefix in ["", "lock-", "x__lock__", "_c_0-lock-"] {
        let theirs = scene.foreign(prefix).await;
        let waiting = scene.queue(TTL).await;
        let attempt = place(TTL);
        let look = soon("an answer", scene.contend(&attempt, Mode::Try)).await.unwrap();
        assert_eq!(look, Look::Busy, "{prefix}");
        scene.raw.delete(&theirs, None).await.unwrap();
        scene.turn(&waiting).await;
        assert_eq!(scene.release(&waiting).await, Verdict::Released);
    }
    until("nothing left", || async { scene.nodes().await.is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_children_that_are_no_contenders_do_not_count() {
    let scene = Scene::new().await;
    let (first, _) = scene.hold(TTL).await;
    scene.release(&first).await;
    let options = zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all());
    for name in ["foo", "x-1", "0000000000x", "9999999999"] {
        scene.raw.create(&format!("{}/{name}", scene.directory()), b"", &options).await.unwrap();
    }
    let (place, _) = scene.hold(TTL).await;
    scene.queue(TTL).await;
    assert_eq!(scene.release(&place).await, Verdict::Released);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_try_that_is_not_served_leaves_no_node() {
    let scene = Scene::new().await;
    let (holder, _) = scene.hold(TTL).await;
    for _ in 0..10 {
        let attempt = place(TTL);
        let look = soon("an answer", scene.contend(&attempt, Mode::Try)).await.unwrap();
        assert_eq!(look, Look::Busy);
        assert_eq!(scene.node(&attempt).await, None);
    }
    assert_eq!(scene.nodes().await.len(), 1);
    scene.release(&holder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_twenty_creates_that_are_cancelled_in_flight_leave_no_node() {
    for layout in ["curator", "plain"] {
        let scene = Scene::with_layout(layout).await;
        let (holder, _) = scene.hold(TTL).await;
        scene.proxy.rule(|frame| match frame {
            Frame::Request(Op::Create) => Fate::Hold,
            _ => Fate::Pass,
        });
        let places: Vec<_> = (0..20).map(|_| place(TTL)).collect();
        for place in &places {
            drop(scene.contend(place, Mode::Intro));
        }
        scene.proxy.holds().await;
        let releases: Vec<_> =
            places.iter().map(|place| scene.zookeeper.release(place, None, true)).collect();
        scene.proxy.pass();
        scene.proxy.open();
        for release in releases {
            soon("the withdrawal", release).await.unwrap();
        }
        assert_eq!(scene.nodes().await.len(), 1, "{layout}");
        scene.release(&holder).await;
        assert!(scene.zookeeper.shared.seats().is_empty());
    }
}

/// The servers remove an empty container at any moment, also between its creation and its first
/// child.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_lock_whose_node_vanishes_again_and_again_is_made_anew() {
    let scene = Scene::new().await;
    let mut vanished = 0;
    let (first, token) = scene.hold(TTL).await;
    scene.release(&first).await;
    let remove = async || {
        scene.raw.delete(&scene.directory(), None).await.unwrap();
        scene.raw.delete(&scene.root, None).await.unwrap();
    };
    remove().await;
    let holds = std::sync::Arc::new(std::sync::Mutex::new(0));
    let counted = holds.clone();
    scene.proxy.rule(move |frame| match frame {
        Frame::Request(Op::Create) => {
            *counted.lock().unwrap() += 1;
            if *counted.lock().unwrap() <= 3 { Fate::Hold } else { Fate::Pass }
        }
        _ => Fate::Pass,
    });
    let place = place(TTL);
    let asked = tokio::spawn(scene.contend(&place, Mode::Intro));
    while vanished < 3 {
        scene.proxy.holds().await;
        if vanished > 0 {
            remove().await;
        }
        vanished += 1;
        scene.proxy.open();
    }
    let next = granted(soon("a grant", asked).await.unwrap().unwrap());
    assert!(next > token, "the number restarts, the token does not");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_an_ephemeral_node_in_the_place_of_the_lock_is_a_conflict() {
    let scene = Scene::new().await;
    let acls = zk::Acls::anyone_all();
    scene.raw.create(&scene.root, b"", &zk::CreateMode::Container.with_acls(acls)).await.unwrap();
    let ephemeral = zk::CreateMode::Ephemeral.with_acls(acls);
    scene.raw.create(&scene.directory(), b"", &ephemeral).await.unwrap();
    let error = soon("an answer", scene.contend(&place(TTL), Mode::Intro)).await.unwrap_err();
    assert_eq!(error.kind().code(), "CONFLICT", "{error}");
}
