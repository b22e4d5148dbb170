//! A primary and a replica of one test at an address that follows the primary, as a virtual IP
//! does: what clients see of a failover, without waiting for those who decide about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use redis::FromRedisValue;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::redis_server::RedisServer;
use crate::replication::wait_for_replicas;

pub(crate) struct RedisPair {
    pub(crate) primary: RedisServer,
    pub(crate) replica: RedisServer,
    address: Address,
}

impl RedisPair {
    pub(crate) async fn start() -> Self {
        let quick = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];
        let primary = RedisServer::start_with(&quick);
        let replica = RedisServer::start_with(&quick);
        let address = Address::new(primary.port()).await;
        let pair = RedisPair { primary, replica, address };
        pair.connect();
        pair
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.address.port)
    }

    /// The replica follows the primary, and is in step.
    pub(crate) fn connect(&self) {
        let port = self.primary.port().to_string();
        ask::<()>(&self.replica, &["REPLICAOF", "127.0.0.1", &port]);
        until("a replica in step", || {
            let info: String = ask(&self.replica, &["INFO", "replication"]);
            info.contains("master_link_status:up")
        });
        // It has acknowledged something, which for the first time takes longer.
        let client = redis::Client::open(self.primary.url()).unwrap();
        wait_for_replicas(&mut client.get_connection().unwrap(), "in step", 1);
    }

    /// The replica keeps what it has and hears of nothing more.
    pub(crate) fn cut(&self) {
        ask::<()>(&self.replica, &["REPLICAOF", "127.0.0.1", "1"]);
        until("a primary without replicas", || {
            ask::<String>(&self.primary, &["INFO", "replication"]).contains("connected_slaves:0")
        });
    }

    /// The primary dies and the replica takes its place. The dead one comes back as the replica.
    pub(crate) fn fail_over(&mut self) {
        self.primary.kill();
        ask::<()>(&self.replica, &["REPLICAOF", "NO", "ONE"]);
        self.address.lead_to(self.replica.port());
        self.primary.restart();
        std::mem::swap(&mut self.primary, &mut self.replica);
    }
}

pub(crate) fn ask<T: FromRedisValue>(server: &RedisServer, command: &[&str]) -> T {
    let client = redis::Client::open(server.url()).unwrap();
    let reply = redis::Cmd::new().arg(command).query(&mut client.get_connection().unwrap());
    reply.unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "never came: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An address that leads to one server after the other; connections to an earlier one are cut.
struct Address {
    port: u16,
    target: Arc<AtomicU16>,
    generation: tokio::sync::watch::Sender<u64>,
}

impl Address {
    async fn new(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Arc::new(AtomicU16::new(target));
        let (generation, changes) = tokio::sync::watch::channel(0);
        let to = target.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (to, mut changes) = (to.clone(), changes.clone());
                changes.mark_unchanged();
                tokio::spawn(async move {
                    let port = to.load(Ordering::Acquire);
                    if let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await {
                        tokio::select! {
                            _ = copy_bidirectional(&mut near, &mut far) => {}
                            _ = changes.changed() => {}
                        }
                    }
                });
            }
        });
        Address { port, target, generation }
    }

    fn lead_to(&self, port: u16) {
        self.target.store(port, Ordering::Release);
        self.generation.send_modify(|generation| *generation += 1);
    }
}
