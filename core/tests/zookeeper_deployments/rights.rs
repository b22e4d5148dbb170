//! Credentials, the rights of nodes, and a chroot, on the ensemble that all tests share.

use std::sync::atomic::{AtomicU32, Ordering};

use fencelock::{Client, LockState};
use zookeeper_client as zk;

use crate::site::{lock, ms, queue_up, soon};

fn hosts() -> String {
    let url = std::env::var("FENCELOCK_TEST_ZOOKEEPER_URL")
        .expect("FENCELOCK_TEST_ZOOKEEPER_URL is set; run tests/services/up");
    url.strip_prefix("zookeeper://").unwrap().trim_end_matches('/').to_owned()
}

/// A node of a test of its own, with these rights for everybody.
async fn node(rights: &[zk::Permission]) -> (zk::Client, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let raw = zk::Client::connect(&hosts()).await.unwrap();
    let path = format!("/rights-{}-{count}", std::process::id());
    let acls: Vec<_> =
        rights.iter().map(|right| zk::Acl::new(*right, zk::AuthId::anyone())).collect();
    let options = zk::CreateMode::Persistent.with_acls(zk::Acls::new(&acls));
    raw.create(&path, b"", &options).await.unwrap();
    // Clients may come to a server that lags behind.
    raw.sync("/").await.unwrap();
    (raw, path)
}

async fn client(user: &str, path: &str) -> Client {
    Client::connect(&format!("zookeeper://{user}{}{path}", hosts())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_rights_are_told_at_acquire_and_never_first_at_release() {
    use zk::Permission as P;
    for rights in [
        &[P::READ][..],
        // Without DELETE no lease could be given back.
        &[P::READ, P::CREATE],
        &[P::CREATE, P::DELETE],
    ] {
        let (raw, path) = node(rights).await;
        // The node is the lock's own: its parent is the root.
        let name = path.trim_start_matches('/');
        let client = client("", "/?fl.root=/").await;
        for result in [
            lock(&client, name, ms(30_000)).acquire().await,
            lock(&client, name, ms(30_000)).try_acquire().await.map(Option::unwrap),
        ] {
            let error = result.unwrap_err();
            assert_eq!(error.kind().code(), "AUTH_FAILED", "{rights:?}: {error}");
        }
        if rights.contains(&P::READ) {
            assert!(raw.list_children(&path).await.unwrap().is_empty(), "{rights:?}");
        }
        client.close().await;
    }
}

/// User, root and rights as the page for users has them.
fn documented() -> (&'static str, &'static str, &'static str) {
    let page = include_str!("../../src/backend/zookeeper/RIGHTS.md");
    let after = |command| page.lines().find_map(|line| line.strip_prefix(command)).unwrap();
    let (root, rights) = after("create ").split_once(" \"\" auth::").unwrap();
    (after("addauth digest "), root, rights)
}

/// Makes the root as the page says, but with these rights, in a chroot of its own.
async fn root_with(rights: &str) -> String {
    let (_raw, chroot) = node(&[zk::Permission::CREATE]).await;
    let (user, root, _) = documented();
    let maker = zk::Client::connector().with_auth("digest", user.as_bytes());
    let maker = maker.connect(&hosts()).await.unwrap();
    let permission = |letter| match letter {
        'c' => zk::Permission::CREATE,
        'r' => zk::Permission::READ,
        _ => panic!("{letter} is for none of our requests"),
    };
    let rights = rights.chars().map(permission).fold(zk::Permission::NONE, |all, one| all | one);
    let acls = [zk::Acl::new_const(rights, "auth", "")];
    let options = zk::CreateMode::Persistent.with_acls(zk::Acls::new(&acls));
    maker.create(&format!("{chroot}{root}"), b"", &options).await.unwrap();
    chroot
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_smallest_rights_on_the_root_are_enough_and_each_is_needed() {
    let (user, _, rights) = documented();
    let user = format!("{user}@");
    let chroot = root_with(rights).await;
    let ours = client(&user, &chroot).await;
    let name = lock(&ours, "a", ms(2_000));
    let lease = name.acquire().await.unwrap();
    lease.renew().await.unwrap();
    let waiting = queue_up(&ours, &name).await;
    assert_eq!(ours.inspect("a").await.unwrap().queue.len(), 1);
    lease.release().await.unwrap();
    let next = soon("the hand-off", waiting).await.unwrap();
    assert_eq!(ours.list().await.unwrap().len(), 1);
    for stranger in ["", "bob:secret@"] {
        let theirs = client(stranger, &chroot).await;
        for error in [
            lock(&theirs, "a", ms(2_000)).acquire().await.unwrap_err(),
            lock(&theirs, "b", ms(2_000)).acquire().await.unwrap_err(),
            theirs.force_release("a").await.unwrap_err(),
            theirs.inspect("a").await.unwrap_err(),
            theirs.list().await.unwrap_err(),
        ] {
            assert_eq!(error.kind().code(), "AUTH_FAILED", "{stranger}: {error}");
        }
    }
    assert!(ours.force_release("a").await.unwrap());
    drop(next);

    let without_create = client(&user, &root_with(&rights.replace('c', "")).await).await;
    let error = lock(&without_create, "a", ms(2_000)).acquire().await.unwrap_err();
    assert_eq!(error.kind().code(), "AUTH_FAILED", "{error}");
    let without_read = client(&user, &root_with(&rights.replace('r', "")).await).await;
    let lease = lock(&without_read, "a", ms(2_000)).acquire().await.unwrap();
    let error = without_read.list().await.unwrap_err();
    assert_eq!(error.kind().code(), "AUTH_FAILED", "{error}");
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_credentials_all_nodes_are_for_that_user_alone() {
    let (_raw, path) = node(&[zk::Permission::ALL]).await;
    let ours = client("anna:se%3Acret@", &path).await;
    let lease = lock(&ours, "a", ms(30_000)).acquire().await.unwrap();
    let same = client("anna:se%3Acret@", &path).await;
    assert!(lock(&same, "a", ms(30_000)).try_acquire().await.unwrap().is_none());
    for user in ["", "anna:hunter2@", "bob:se%3Acret@"] {
        let theirs = client(user, &path).await;
        let error = lock(&theirs, "a", ms(30_000)).acquire().await.unwrap_err();
        assert_eq!(error.kind().code(), "AUTH_FAILED", "{user}: {error}");
        let error = theirs.force_release("a").await.unwrap_err();
        assert_eq!(error.kind().code(), "AUTH_FAILED", "{user}: {error}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
    assert!(lease.is_held());
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chroot_keeps_locks_apart_and_must_exist() {
    let (_, one) = node(&[zk::Permission::ALL]).await;
    let (_, two) = node(&[zk::Permission::ALL]).await;
    let (one, two) = (client("", &one).await, client("", &two).await);
    let first = lock(&one, "a", ms(30_000)).acquire().await.unwrap();
    let second = soon("the other", lock(&two, "a", ms(30_000)).acquire()).await.unwrap();
    assert_eq!(one.inspect("a").await.unwrap().owner, Some(first.owner()));
    assert_eq!(two.inspect("a").await.unwrap().state, LockState::Held);
    first.release().await.unwrap();
    second.release().await.unwrap();
    let missing = Client::connect(&format!("zookeeper://{}/no/such/node", hosts())).await;
    assert_eq!(missing.unwrap_err().kind().code(), "INVALID_ARGUMENT");
}
