//! The key layout on a real cluster of three nodes: every script runs on the node of the lock key.
//! The client for clusters comes later; the layout must be right before.

use super::super::keys::slot;
use super::*;
use crate::backend::{Renewal, Renewed, Verdict};
use crate::period::Term;
use crate::{ErrorKind, LockState};

/// Slots per node, the last one a little less.
const SHARE: u16 = 5_462;

fn start_cluster() -> Vec<RedisServer> {
    let nodes: Vec<_> =
        (0..3).map(|_| RedisServer::start_with(&["--cluster-enabled", "yes"])).collect();
    for (n, node) in (0..).zip(&nodes) {
        let mut raw = raw(node.port());
        let range = n * SHARE..(n * SHARE + SHARE).min(16_384);
        let () = redis::cmd("CLUSTER")
            .arg("ADDSLOTS")
            .arg(range.map(|slot| slot.to_string()).collect::<Vec<_>>())
            .query(&mut raw)
            .unwrap();
        let () = redis::cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(n + 1).query(&mut raw).unwrap();
        let first = nodes[0].port();
        let () =
            redis::cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(first).query(&mut raw).unwrap();
    }
    nodes
}

fn clients(nodes: &[RedisServer], prefix: &str) -> Vec<Redis> {
    let client = |node: &RedisServer| {
        Redis::new(&target(&node.url()), &settings(prefix), Arc::default()).unwrap()
    };
    nodes.iter().map(client).collect()
}

#[tokio::test]
async fn g1_every_script_runs_on_the_node_of_its_lock_key_whatever_the_name() {
    let nodes = start_cluster();
    for node in &nodes {
        let mut raw = raw(node.port());
        until("the cluster", || {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut raw).unwrap();
            std::future::ready(info.contains("cluster_state:ok"))
        })
        .await;
    }
    // One node alone cannot serve a name of another node.
    let clients = clients(&nodes, PREFIX);
    let place = place("n", TTL);
    let node = usize::from(slot(keys("n").lock.as_bytes()) / SHARE);
    let error = clients[(node + 1) % 3].contend(&place, Mode::Intro).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");

    for prefix in ["", "fencelock:", "app{7}:"] {
        let clients = self::clients(&nodes, prefix);
        // 400 over the prefixes.
        for name in super::keys::hard_names().iter().step_by(14) {
            let key = format!("{prefix}{}", name.as_str());
            let redis = &clients[usize::from(slot(key.as_bytes()) / SHARE)];
            drive(redis, name.as_str()).await;
        }
    }
}

/// Every script once, with keys of every kind.
async fn drive(redis: &Redis, name: &str) {
    let [holder, waiting, late] = [place(name, TTL), place(name, TTL), place(name, TTL)];
    let token = granted(redis.contend(&holder, Mode::Intro).await.unwrap());
    queued(redis.contend(&waiting, Mode::Intro).await.unwrap());
    queued(redis.contend(&waiting, Mode::Again).await.unwrap());
    redis.release(&late, None, true).await.unwrap();
    assert_eq!(redis.contend(&late, Mode::Intro).await.unwrap(), Look::Gone);
    let lease = Renewal { place: holder.clone(), token };
    let renewed = redis.renew(vec![lease]).await.unwrap().remove(0).unwrap();
    assert_eq!(renewed, Renewed::Ours(Term::FullTtl), "{name:?}");
    let info = redis.inspect(&holder.name).await.unwrap();
    assert_eq!((info.state, info.queue.len()), (LockState::Held, 1), "{name:?}");
    let verdict = redis.release(&holder, Some(token), true).await.unwrap();
    assert_eq!(verdict, Verdict::Released, "{name:?}");
    granted(redis.contend(&waiting, Mode::Again).await.unwrap());
    assert!(redis.force_release(&holder.name).await.unwrap(), "{name:?}");
}
