//! The protocol, step by step, against real servers: every branch of every script, by guarantee.
//!
//! What a client makes of the answers is tested in `core/tests/contract`. `tests/chaos/mutants`
//! shows that each rule of the protocol is held by a test that fails without it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue, ToRedisArgs};

use super::{Redis, scripts, value};
use crate::backend::testing::{self, PATIENCE, ms, queued, soon, until};
use crate::backend::{Backend, Look, Mode, Place};
use crate::name::Name;
use crate::options::{ClientOptions, Family, Settings};
use crate::owner::OwnerId;
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;

#[path = "../../../../tests/support/freeze.rs"]
mod freeze;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../../../../tests/support/redis_server.rs"]
mod redis_server;

mod admin;
mod cluster;
mod contend;
mod hand_off;
mod handshake;
mod keys;
mod late;
mod link;
mod proxy;
mod refusals;
mod release;
mod renew;
mod subscription;

use redis_server::RedisServer;

const PREFIX: &str = "fencelock:";
const TTL: Duration = Duration::from_secs(30);

/// A server, a client's backend on it, and a connection of our own to look behind the scenes.
struct Scene {
    server: RedisServer,
    redis: Redis,
    wakeups: Arc<Wakeups>,
    raw: Connection,
}

impl Scene {
    async fn new() -> Self {
        Self::on(RedisServer::start()).await
    }

    async fn on(server: RedisServer) -> Self {
        let (redis, wakeups) = connect(&server.url()).await;
        let raw = raw(server.port());
        Scene { server, redis, wakeups, raw }
    }

    /// Another client of the same server.
    async fn client(&self) -> Redis {
        connect(&self.server.url()).await.0
    }

    /// A command, as an administrator or a foreign client sends it.
    fn command<T: FromRedisValue>(&mut self, command: &[&str]) -> T {
        self.try_command(command).unwrap_or_else(|e| panic!("{command:?}: {e}"))
    }

    fn try_command<T: FromRedisValue>(&mut self, command: &[&str]) -> redis::RedisResult<T> {
        let mut cmd = redis::Cmd::new();
        cmd.arg(command);
        cmd.query(&mut self.raw)
    }

    fn set(&mut self, key: impl ToRedisArgs, value: impl ToRedisArgs) {
        let () = redis::cmd("SET").arg(key).arg(value).query(&mut self.raw).unwrap();
    }

    fn get(&mut self, key: &str) -> Option<String> {
        self.command(&["GET", key])
    }

    fn pttl(&mut self, key: &str) -> i64 {
        self.command(&["PTTL", key])
    }

    /// Puts a contender in the queue that enqueued itself so long ago.
    fn enqueue(&mut self, place: &Place, redis: &Redis, ago: Duration) {
        let order = self.micros() - ago.as_micros() as u64;
        let member = owner_value(place, redis);
        let () = self.command(&["ZADD", &keys("n").queue, &order.to_string(), &member]);
    }

    /// Lets the lock end as if its time were over.
    fn expire_lock(&mut self) {
        assert_eq!(self.command::<i64>(&["DEL", &keys("n").lock]), 1);
    }

    /// Server time in microseconds.
    fn micros(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = self.command(&["TIME"]);
        seconds * 1_000_000 + micros
    }

    fn all_keys(&mut self) -> Vec<String> {
        let mut keys: Vec<String> = self.command(&["KEYS", "*"]);
        keys.sort();
        keys
    }

    fn queue(&mut self) -> Vec<String> {
        self.command(&["ZRANGE", &keys("n").queue, "0", "-1"])
    }

    /// The parts of the token record.
    fn record(&mut self) -> Option<(u64, String, u64)> {
        let text = self.get(&keys("n").record)?;
        let parts: Vec<_> = text.split(' ').collect();
        Some((parts[0].parse().unwrap(), parts[1].to_owned(), parts[2].parse().unwrap()))
    }

    async fn intro(&self, place: &Arc<Place>) -> Look {
        self.redis.contend(place, Mode::Intro).await.unwrap()
    }

    async fn again(&self, place: &Arc<Place>) -> Look {
        self.redis.contend(place, Mode::Again).await.unwrap()
    }

    async fn attempt(&self, place: &Arc<Place>) -> Look {
        self.redis.contend(place, Mode::Try).await.unwrap()
    }

    /// Holds the lock with a new place.
    async fn hold(&self, ttl: Duration) -> (Arc<Place>, Token) {
        let place = place("n", ttl);
        let token = granted(self.intro(&place).await);
        (place, token)
    }
}

fn settings(prefix: &str) -> Settings {
    ClientOptions::new().prefix(prefix).settled(Family::Redis).unwrap()
}

fn target(url: &str) -> Target {
    Target::parse(url).unwrap().0
}

async fn connect(url: &str) -> (Redis, Arc<Wakeups>) {
    let wakeups = Arc::<Wakeups>::default();
    let redis = Redis::connect(&target(url), &settings(PREFIX), wakeups.clone()).await.unwrap();
    (redis, wakeups)
}

async fn connect_with_prefix(url: &str, prefix: &str) -> Redis {
    Redis::connect(&target(url), &settings(prefix), Arc::default()).await.unwrap()
}

async fn connect_error(url: &str) -> crate::Error {
    let connected = Redis::connect(&target(url), &settings(PREFIX), Arc::default()).await;
    connected.err().unwrap_or_else(|| panic!("{url} was accepted"))
}

fn raw(port: u16) -> Connection {
    let raw = redis::Client::open(("127.0.0.1", port)).unwrap().get_connection().unwrap();
    // A message that never comes fails its test instead of holding it up.
    raw.set_read_timeout(Some(PATIENCE)).unwrap();
    raw
}

fn place(name: &str, ttl: Duration) -> Arc<Place> {
    Arc::new(Place {
        owner: OwnerId::random(),
        name: Name::new(name).unwrap(),
        ttl,
        metadata: "host=test pid=1 lang=rust".into(),
    })
}

/// Key names as plain text.
struct KeyNames {
    lock: String,
    queue: String,
    alive: String,
    record: String,
}

fn keys(name: &str) -> KeyNames {
    let prefix = super::Prefix::new(PREFIX).unwrap();
    let keys = prefix.keys(&Name::new(name).unwrap());
    KeyNames {
        lock: keys.lock.clone(),
        queue: keys.queue(),
        alive: keys.signs_of_life(),
        record: keys.record(),
    }
}

fn tombstone(place: &Place) -> String {
    super::Prefix::new(PREFIX).unwrap().keys(&place.name).tombstone(place.owner)
}

fn owner_value(place: &Place, redis: &Redis) -> String {
    value::owner_value(place, redis.shared.client)
}

#[track_caller]
fn granted(look: Look) -> Token {
    testing::granted(look).0
}

/// Whether `value` is at most `of`, and not so much less that it could be something else.
#[track_caller]
fn assert_just_below(value: i64, of: Duration) {
    let of = of.as_millis() as i64;
    assert!(value <= of && value > of - 5_000.min(of / 2), "{value} ms is not about {of} ms");
}
