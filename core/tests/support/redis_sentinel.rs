//! A real primary with replicas and three sentinels, all ended when this is dropped.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::FromRedisValue;

use crate::redis_server::{RedisServer, free_port, unique_dir};

pub(crate) const SERVICE: &str = "orders";
const SENTINELS: usize = 3;

pub(crate) struct RedisService {
    /// The first is the primary at the start.
    pub(crate) servers: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
}

/// The password that the sentinels ask for, if [`RedisService::start_locked`] made them.
pub(crate) const PASSWORD: &str = "sesame";

struct Sentinel {
    process: Child,
    port: u16,
    dir: PathBuf,
}

impl RedisService {
    pub(crate) fn start(replicas: usize) -> Self {
        Self::start_with(replicas, "")
    }

    /// A primary alone, and sentinels that ask for a password.
    pub(crate) fn start_locked() -> Self {
        Self::start_with(0, &format!("requirepass {PASSWORD}"))
    }

    fn start_with(replicas: usize, lines: &str) -> Self {
        let quick = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];
        let primary = RedisServer::start_with(&quick);
        let port = primary.port();
        let mut servers = vec![primary];
        for _ in 0..replicas {
            let following = ["--replicaof".to_owned(), format!("127.0.0.1 {port}")];
            let arguments: Vec<&str> =
                quick.into_iter().chain(following.iter().map(String::as_str)).collect();
            servers.push(RedisServer::start_with(&arguments));
        }
        for replica in &servers[1..] {
            until("a replica in step", || {
                let info: String = ask(replica.port(), &["INFO", "replication"]).unwrap();
                info.contains("master_link_status:up")
            });
        }
        let sentinels = (0..SENTINELS).map(|_| Sentinel::start(port, lines)).collect();
        let service = RedisService { servers, sentinels };
        for sentinel in &service.sentinels {
            until("sentinels that know each other and the replicas", || {
                let known: Result<std::collections::HashMap<String, String>, _> =
                    ask(sentinel.port, &["SENTINEL", "MASTER", SERVICE]);
                known.is_ok_and(|known| {
                    known["num-other-sentinels"] == (SENTINELS - 1).to_string()
                        && known["num-slaves"] == replicas.to_string()
                })
            });
        }
        service
    }

    pub(crate) fn url(&self) -> String {
        let sentinels: Vec<_> =
            self.sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port)).collect();
        format!("redis-sentinel://{}/{SERVICE}", sentinels.join(","))
    }

    /// The port of the primary, as the first sentinel that answers knows it.
    pub(crate) fn primary(&self) -> u16 {
        let address = self.sentinels.iter().find_map(|sentinel| {
            ask::<(String, u16)>(sentinel.port, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE])
                .ok()
        });
        address.unwrap().1
    }

    /// A command to the first sentinel.
    pub(crate) fn sentinel<T: FromRedisValue>(&self, command: &[&str]) -> T {
        ask(self.sentinels[0].port, command).unwrap_or_else(|e| panic!("{command:?}: {e}"))
    }
}

impl Sentinel {
    fn start(primary: u16, lines: &str) -> Self {
        loop {
            let (port, dir) = (free_port(), unique_dir());
            let config = dir.join("sentinel.conf");
            let text = format!(
                "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {SERVICE} 127.0.0.1 {primary} 2\n\
                 sentinel down-after-milliseconds {SERVICE} 700\n\
                 sentinel failover-timeout {SERVICE} 3000\n{lines}\n",
                dir.display()
            );
            std::fs::write(&config, text).unwrap();
            let program = std::env::var("FENCELOCK_TEST_REDIS_SERVER")
                .unwrap_or_else(|_| "redis-server".into());
            let process = Command::new(program)
                .arg(&config)
                .arg("--sentinel")
                .stdout(Stdio::null())
                .stdin(Stdio::null())
                .spawn()
                .unwrap();
            let mut sentinel = Sentinel { process, port, dir };
            let start = Instant::now();
            // Else somebody took the port meanwhile.
            while sentinel.process.try_wait().unwrap().is_none() {
                if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return sentinel;
                }
                assert!(start.elapsed() < Duration::from_secs(20), "a sentinel does not answer");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A command to the server or sentinel at this port.
pub(crate) fn ask<T: FromRedisValue>(port: u16, command: &[&str]) -> redis::RedisResult<T> {
    redis::Cmd::new().arg(command).query(&mut connection(port)?)
}

/// A connection to it, with the password if it asks for one.
pub(crate) fn connection(port: u16) -> redis::RedisResult<redis::Connection> {
    let open = |user: &str| {
        redis::Client::open(format!("redis://{user}127.0.0.1:{port}/"))?.get_connection()
    };
    let mut connection = open("")?;
    match redis::cmd("PING").query::<String>(&mut connection) {
        Err(error) if error.code() == Some("NOAUTH") => open(&format!(":{PASSWORD}@")),
        _ => Ok(connection),
    }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "never came: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
