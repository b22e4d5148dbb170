//! Inspect, list, forced releases, closing, and what is refused when connecting.

use super::*;
use crate::info::LockState;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_inspect_shows_foreign_holders_and_waiters() {
    let scene = Scene::new().await;
    let name = Name::new("n").unwrap();
    let theirs = scene.foreign("lock-").await;
    let waiting = scene.queue(TTL).await;
    let behind = scene.foreign("x__lock__").await;
    let info = soon("an answer", scene.zookeeper.inspect(&name)).await.unwrap();
    let node = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    assert_eq!((info.state, info.owner), (LockState::Foreign, Some(node(&theirs))));
    assert_eq!((info.token, info.held, info.ttl_left), (None, None, None));
    let queue: Vec<_> = info.queue.iter().map(|waiter| waiter.owner.clone()).collect();
    assert_eq!(queue, [waiting.owner.to_string(), node(&behind)]);
    assert!(info.queue[0].waiting < ms(20_000), "{:?}", info.queue);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_list_leaves_out_what_is_no_lock() {
    let scene = Scene::new().await;
    let (holder, _) = scene.hold(TTL).await;
    let acls = zk::Acls::anyone_all();
    for name in ["empty", "%zz", "~fl-x"] {
        let path = format!("{}/{name}", scene.root);
        scene.raw.create(&path, b"", &zk::CreateMode::Persistent.with_acls(acls)).await.unwrap();
    }
    let listed = soon("an answer", scene.zookeeper.list()).await.unwrap();
    let names: Vec<_> = listed.into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["n"]);
    scene.release(&holder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_forced_release_ends_the_holder_whoever_it_is() {
    let scene = Scene::new().await;
    let name = Name::new("n").unwrap();
    let force = async || soon("an answer", scene.zookeeper.force_release(&name)).await.unwrap();
    assert!(!force().await);
    scene.foreign("lock-").await;
    let waiting = scene.queue(TTL).await;
    assert!(force().await);
    scene.turn(&waiting).await;
    assert!(force().await);
    assert!(!force().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_closing_ends_the_sessions_and_their_nodes_at_once() {
    let scene = Scene::new().await;
    let closed = scene.other().await;
    let holder = place(TTL);
    granted(closed.contend(&holder, Mode::Intro).await.unwrap());
    let waiting = scene.queue(TTL).await;
    soon("the end", closed.close()).await.unwrap();
    scene.turn(&waiting).await;
    assert_eq!(closed.contend(&holder, Mode::Again).await.unwrap(), Look::Gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_client_that_is_dropped_ends_its_sessions() {
    let scene = Scene::new().await;
    let dropped = scene.other().await;
    let holder = place(TTL);
    granted(dropped.contend(&holder, Mode::Intro).await.unwrap());
    let waiting = scene.queue(TTL).await;
    drop(dropped);
    scene.turn(&waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_connecting_says_what_is_wrong() {
    let started = Instant::now();
    for (url, code, says) in [
        ("zookeeper://127.0.0.1:1/".to_owned(), "UNAVAILABLE", "127.0.0.1:1"),
        (format!("zookeeper://{}/no/such/node", server()), "INVALID_ARGUMENT", "/no/such/node"),
    ] {
        let error = soon("an answer", try_connect(&url)).await.err().expect("an error");
        assert_eq!(error.kind().code(), code, "{url}: {error}");
        assert!(error.to_string().contains(says), "{url}: {error}");
    }
    assert!(started.elapsed() < ms(5_000), "{:?}", started.elapsed());
    // One host of several is enough.
    connect(&format!("zookeeper://127.0.0.1:1,{}/", server())).await;
}
