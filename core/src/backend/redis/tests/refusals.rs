//! A server that refuses to write: a clear error when the lock is taken, never first when it is
//! given back.

use super::*;
use crate::ErrorKind;
use crate::backend::{Renewal, Renewed, Verdict};
use crate::period::Term;

#[tokio::test]
async fn g7_out_of_memory_refuses_new_leases_and_nothing_else() {
    let mut scene = Scene::new().await;
    let (first, first_token) = scene.hold(TTL).await;
    let [waiting, leaving] = [place("n", TTL), place("n", TTL)];
    scene.intro(&waiting).await;
    scene.intro(&leaving).await;
    let other = place("other", TTL);
    let other_token = granted(scene.intro(&other).await);
    let () = scene.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let () = scene.command(&["CONFIG", "SET", "maxmemory", "1"]);

    for mode in [Mode::Intro, Mode::Try] {
        let error = scene.redis.contend(&place("new", TTL), mode).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(!error.is_passing(), "raised at once");
        assert!(error.to_string().contains("out of memory"), "{error}");
    }
    let error = scene.redis.contend(&place("n", TTL), Mode::Intro).await.unwrap_err();
    assert!(error.to_string().contains("out of memory"), "{error}");

    // Who has a lease or a place keeps it, and can give it back.
    queued(scene.again(&waiting).await);
    scene.redis.release(&leaving, None, true).await.unwrap();
    for (place, token) in [(&first, first_token), (&other, other_token)] {
        let lease = Renewal { place: place.clone(), token };
        let renewed = scene.redis.renew(vec![lease]).await.unwrap().remove(0).unwrap();
        assert_eq!(renewed, Renewed::Ours(Term::FullTtl));
        let verdict = scene.redis.release(place, Some(token), true).await.unwrap();
        assert_eq!(verdict, Verdict::Released);
    }
    let handed = granted(scene.again(&waiting).await);
    let verdict = scene.redis.release(&waiting, Some(handed), false).await.unwrap();
    assert_eq!(verdict, Verdict::Released);
}

#[tokio::test]
async fn g10_a_read_only_replica_is_named_as_such() {
    let primary = RedisServer::start();
    let port = primary.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
    let scene = Scene::on(replica).await;
    for mode in [Mode::Intro, Mode::Try] {
        let error = scene.redis.contend(&place("n", TTL), mode).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(!error.is_passing());
        assert!(error.to_string().contains("read-only replica"), "{error}");
    }
    // Looking is allowed there.
    let info = scene.redis.inspect(&Name::new("n").unwrap()).await.unwrap();
    assert_eq!(info.state, crate::LockState::Free);
    assert!(scene.redis.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn g10_a_primary_without_its_replicas_is_unavailable_for_a_while() {
    let mut scene = Scene::new().await;
    let () = scene.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let error = scene.redis.contend(&place("n", TTL), Mode::Intro).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.is_passing() && error.to_string().contains("replicas"), "{error}");
}

#[tokio::test]
async fn g10_a_server_that_cannot_save_is_named_as_such() {
    let mut scene = Scene::new().await;
    let (_, dir): (String, String) = scene.command(&["CONFIG", "GET", "dir"]);
    std::fs::create_dir(std::path::Path::new(&dir).join("dump.rdb")).unwrap();
    let () = scene.command(&["CONFIG", "SET", "save", "3600 1"]);
    let () = scene.command(&["BGSAVE"]);
    until("the failed save", || {
        let info: String = scene.command(&["INFO", "persistence"]);
        std::future::ready(info.contains("rdb_last_bgsave_status:err"))
    })
    .await;
    let error = scene.redis.contend(&place("n", TTL), Mode::Intro).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(!error.is_passing() && error.to_string().contains("save"), "{error}");
}

#[tokio::test]
async fn g10_a_server_that_runs_a_long_script_is_unavailable_for_a_while() {
    let mut scene = Scene::new().await;
    let (_, token) = scene.hold(TTL).await;
    let () = scene.command(&["CONFIG", "SET", "lua-time-limit", "50"]);
    let port = scene.server.port();
    let script = std::thread::spawn(move || {
        let mut raw = raw(port);
        redis::cmd("EVAL").arg("while true do end").arg(0).query::<()>(&mut raw)
    });
    let place = place("n", TTL);
    until("the script", || async {
        matches!(scene.redis.contend(&place, Mode::Intro).await, Err(error) if {
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.is_passing() && error.to_string().contains("busy"), "{error}");
            true
        })
    })
    .await;
    let () = scene.command(&["SCRIPT", "KILL"]);
    assert!(script.join().unwrap().is_err());
    assert!(queued(scene.intro(&place).await).floor > token.get());
}
