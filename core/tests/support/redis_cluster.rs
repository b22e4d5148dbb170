//! A real Redis Cluster of one test, its nodes ended when it is dropped.

use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue};

use crate::redis_server::RedisServer;

const SLOTS: u16 = 16_384;

pub(crate) struct RedisCluster {
    /// The masters, in the order of their slots, then the replicas.
    pub(crate) nodes: Vec<RedisServer>,
    masters: u16,
}

impl RedisCluster {
    pub(crate) fn start() -> Self {
        Self::start_with(0, &[])
    }

    /// Three masters, the first of which has replicas.
    pub(crate) fn start_with(replicas: u16, arguments: &[&str]) -> Self {
        let arguments = [
            &["--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0"],
            &["--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0"],
            arguments,
        ]
        .concat();
        let masters = 3;
        let nodes = (0..masters + replicas).map(|_| RedisServer::start_with(&arguments)).collect();
        let cluster = RedisCluster { nodes, masters };
        for (n, node) in (0..).zip(&cluster.nodes) {
            let mut node = connection(node);
            if n < masters {
                let slots: Vec<_> = cluster.slots(n).map(|slot| slot.to_string()).collect();
                run::<()>(&mut node, redis::cmd("CLUSTER").arg("ADDSLOTS").arg(slots));
            }
            run::<()>(&mut node, redis::cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(n + 1));
            let first = cluster.nodes[0].port();
            run::<()>(&mut node, redis::cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(first));
        }
        for n in 0..cluster.nodes.len() {
            cluster.until(n, &["CLUSTER", "INFO"], |info| {
                info.contains("cluster_state:ok")
                    && info.contains(&format!("cluster_known_nodes:{}\r", masters + replicas))
            });
        }
        let id: String = cluster.ask(0, &["CLUSTER", "MYID"]);
        for replica in masters..masters + replicas {
            let replica = usize::from(replica);
            cluster.ask::<()>(replica, &["CLUSTER", "REPLICATE", &id]);
            cluster.until(replica, &["INFO", "replication"], |info| {
                info.contains("master_link_status:up")
            });
        }
        // Then all know who follows whom.
        for n in 0..cluster.nodes.len() {
            cluster.until(n, &["CLUSTER", "NODES"], |nodes| {
                nodes.matches("slave ").count() == usize::from(replicas)
            });
        }
        cluster
    }

    /// All masters as seeds.
    pub(crate) fn url(&self) -> String {
        let seeds: Vec<_> = self.nodes[..usize::from(self.masters)]
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.port()))
            .collect();
        format!("redis-cluster://{}/", seeds.join(","))
    }

    /// The master that had the slot at the start.
    pub(crate) fn master_of(&self, slot: u16) -> usize {
        (0..self.masters).find(|n| self.slots(*n).contains(&slot)).unwrap().into()
    }

    /// The slot of a key, as the server computes it.
    pub(crate) fn slot(&self, key: &str) -> u16 {
        self.ask(0, &["CLUSTER", "KEYSLOT", key])
    }

    /// A command to one node.
    pub(crate) fn ask<T: FromRedisValue>(&self, node: usize, command: &[&str]) -> T {
        run(&mut connection(&self.nodes[node]), redis::Cmd::new().arg(command))
    }

    /// Waits until the node's answer is as it should be.
    pub(crate) fn until(&self, node: usize, command: &[&str], is_so: impl Fn(&str) -> bool) {
        let start = Instant::now();
        loop {
            let answer: String = self.ask(node, command);
            if is_so(&answer) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "{command:?}: {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn slots(&self, master: u16) -> std::ops::Range<u16> {
        let share = SLOTS.div_ceil(self.masters);
        master * share..(master * share + share).min(SLOTS)
    }
}

/// To one node alone.
pub(crate) fn connection(node: &RedisServer) -> Connection {
    redis::Client::open(node.url()).unwrap().get_connection().unwrap()
}

fn run<T: FromRedisValue>(connection: &mut Connection, command: &redis::Cmd) -> T {
    command.query(connection).unwrap_or_else(|e| panic!("{e}"))
}
