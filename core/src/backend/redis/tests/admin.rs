//! inspect, list and force_release.

use super::*;
use crate::backend::{Renewal, Renewed, Verdict};
use crate::info::{LockInfo, LockState};
use crate::{ErrorKind, Result};

impl Scene {
    async fn inspect(&self, name: &str) -> Result<LockInfo> {
        self.redis.inspect(&Name::new(name).unwrap()).await
    }

    async fn force_release(&self, name: &str) -> Result<bool> {
        self.redis.force_release(&Name::new(name).unwrap()).await
    }

    async fn names(&self) -> Vec<String> {
        self.redis.list().await.unwrap().into_iter().map(|info| info.name).collect()
    }
}

#[tokio::test]
async fn inspect_shows_holder_and_queue() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let [first, second] = [place("n", TTL), place("n", TTL)];
    scene.intro(&first).await;
    scene.intro(&second).await;
    tokio::time::sleep(ms(30)).await;
    let keys_before = scene.all_keys();
    let info = scene.inspect("n").await.unwrap();
    assert_eq!(info.name, "n");
    assert_eq!(info.state, LockState::Held);
    assert_eq!(info.owner, Some(holder.owner.to_string()));
    assert_eq!(info.token, Some(token));
    assert_eq!(info.metadata.as_deref(), Some("host=test pid=1 lang=rust"));
    assert!((ms(30)..ms(20_000)).contains(&info.held.unwrap()));
    assert_just_below(info.ttl_left.unwrap().as_millis() as i64, TTL);
    let owners: Vec<_> = info.queue.iter().map(|waiter| waiter.owner.clone()).collect();
    assert_eq!(owners, [first.owner.to_string(), second.owner.to_string()]);
    for waiter in &info.queue {
        assert!((ms(30)..ms(20_000)).contains(&waiter.waiting));
        assert_eq!(waiter.metadata.as_deref(), Some("host=test pid=1 lang=rust"));
    }
    assert_eq!(scene.all_keys(), keys_before, "an inspection writes nothing");
}

#[tokio::test]
async fn inspect_shows_free_and_foreign_locks() {
    let mut scene = Scene::new().await;
    let info = scene.inspect("n").await.unwrap();
    assert_eq!(info.state, LockState::Free);
    assert!(info.owner.is_none() && info.token.is_none() && info.ttl_left.is_none());
    let (place, token) = scene.hold(TTL).await;
    scene.redis.release(&place, Some(token), false).await.unwrap();
    assert_eq!(scene.inspect("n").await.unwrap().token, None, "nobody holds it");

    let value = [b"\xff", "x".repeat(5000).as_bytes()].concat();
    scene.set(keys("n").lock, value);
    let info = scene.inspect("n").await.unwrap();
    assert_eq!(info.state, LockState::Foreign);
    assert!(info.owner.unwrap().starts_with("\u{fffd}xxx"));
    assert_eq!((info.ttl_left, info.token, info.held), (None, None, None));
    let () = scene.command(&["PEXPIRE", &keys("n").lock, "9000"]);
    let left = scene.inspect("n").await.unwrap().ttl_left.unwrap();
    assert_just_below(left.as_millis() as i64, ms(9_000));

    scene.set(keys("n").lock, "fl7:x");
    assert_eq!(scene.inspect("n").await.unwrap_err().kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn list_shows_what_is_held_or_waited_for_and_nothing_else() {
    let mut scene = Scene::new().await;
    let mut expected = vec![];
    for n in 0..1200 {
        expected.push(format!("orders/{n}"));
    }
    expected.extend(["*".to_owned(), "{a}b".to_owned(), "é\n".to_owned()]);
    let looks = expected.iter().map(|n| scene.redis.contend(&place(n, TTL), Mode::Intro));
    for look in futures_util::future::join_all(looks).await {
        granted(look.unwrap());
    }
    scene.set(format!("{PREFIX}foreign"), "theirs");
    expected.push("foreign".to_owned());
    // Waited for, and free just now.
    let (_, _) = scene.hold(TTL).await;
    scene.intro(&place("n", TTL)).await;
    scene.expire_lock();
    expected.push("n".to_owned());
    // Not locks: other types, other prefixes, names that are not possible, records, tombstones.
    let () = scene.command(&["LPUSH", &format!("{PREFIX}list"), "x"]);
    scene.set("fencelockX", "x");
    scene.set("other:x", "x");
    scene.set([PREFIX.as_bytes(), b"\xff"].concat(), "x");
    scene.set(PREFIX, "x");
    scene.set(format!("{PREFIX}~fl9:x"), "x");
    scene.redis.release(&place("left", TTL), None, true).await.unwrap();
    expected.sort();
    let mut names = scene.names().await;
    names.sort();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn list_with_an_empty_prefix_shows_only_locks_of_this_library() {
    let mut scene = Scene::new().await;
    scene.redis = connect_with_prefix(&scene.server.url(), "").await;
    granted(scene.intro(&place("ours", TTL)).await);
    scene.set("session:1", "not a lock");
    scene.set("foreign", "theirs");
    scene.intro(&place("foreign", TTL)).await;
    let mut names = scene.names().await;
    names.sort();
    assert_eq!(names, ["foreign", "ours"]);
}

#[tokio::test]
async fn list_takes_the_prefix_literally() {
    let mut scene = Scene::new().await;
    for (prefix, other) in [("a*b?", "axxbxn"), ("[a-c]:", "b:n"), ("\\d", "dn"), ("^]-", "^n")] {
        let redis = connect_with_prefix(&scene.server.url(), prefix).await;
        granted(redis.contend(&place("n", TTL), Mode::Intro).await.unwrap());
        scene.set(other, "x");
        let names: Vec<_> = redis.list().await.unwrap().into_iter().map(|i| i.name).collect();
        assert_eq!(names, ["n"], "{prefix}");
    }
}

#[tokio::test]
async fn force_release_ends_the_lease_tells_its_client_and_hands_on() {
    let mut scene = Scene::new().await;
    let mut listener = raw(scene.server.port());
    let mut inbox = listener.as_pubsub();
    inbox.subscribe(scene.redis.shared.prefix.channel(scene.redis.shared.client)).unwrap();
    assert!(!scene.force_release("n").await.unwrap(), "nobody holds it");
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    scene.intro(&waiting).await;
    assert!(scene.force_release("n").await.unwrap());
    let messages: Vec<String> =
        (0..2).map(|_| inbox.get_message().unwrap().get_payload().unwrap()).collect();
    assert_eq!(messages[0], format!("lost {}", owner_value(&holder, &scene.redis)));
    assert!(messages[1].starts_with(&owner_value(&waiting, &scene.redis)));
    // Lost for its holder, whatever it does, and the next one is not touched.
    let lease = Renewal { place: holder.clone(), token };
    let renewed = scene.redis.renew(vec![lease]).await.unwrap().remove(0).unwrap();
    assert_eq!(renewed, Renewed::NotOurs);
    let verdict = scene.redis.release(&holder, Some(token), false).await.unwrap();
    assert_eq!(verdict, Verdict::Lost);
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&waiting, &scene.redis)));
    assert_eq!(scene.record().unwrap().2, token.get());
}

#[tokio::test]
async fn force_release_ends_a_foreign_lease_but_not_a_newer_layout() {
    let mut scene = Scene::new().await;
    scene.set(keys("n").lock, b"\xff\x00 any bytes".to_vec());
    assert!(scene.force_release("n").await.unwrap());
    assert!(scene.all_keys().is_empty());
    scene.set(keys("n").lock, "fl2:x");
    assert_eq!(scene.force_release("n").await.unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(scene.get(&keys("n").lock).as_deref(), Some("fl2:x"));
}

#[tokio::test]
async fn g6_force_release_never_ends_the_lease_after_the_one_it_looked_at() {
    let mut scene = Scene::new().await;
    let (holder, _) = scene.hold(TTL).await;
    let names = keys("n");
    let seen = owner_value(&holder, &scene.redis);
    scene.expire_lock();
    let (next, _) = scene.hold(TTL).await;
    let mut call = scripts::FORCE_RELEASE.call(4);
    call.arg(&names.lock).arg(&names.queue).arg(&names.alive).arg(&names.record);
    call.arg(seen).arg(&scene.redis.shared.channels);
    let reply = scene.redis.shared.run(&scripts::FORCE_RELEASE, &call, 0).await;
    assert_eq!(reply.unwrap(), redis::Value::Int(0));
    assert_eq!(scene.get(&names.lock), Some(owner_value(&next, &scene.redis)));
}
