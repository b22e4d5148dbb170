//! The protocol, step by step, on a real ensemble: every rule that carries a guarantee has a test
//! that fails without it.
//!
//! What a client makes of the answers is tested in `core/tests/contract`, what servers do that
//! die or lose each other in `core/tests/zookeeper_deployments`.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use zookeeper_client as zk;

use self::proxy::Proxy;
use super::ZooKeeper;
use super::keeper::Keeper;
use crate::backend::{Backend, Look, Mode, Place, Queued, Request};
use crate::name::Name;
use crate::options::{ClientOptions, Family, Settings};
use crate::owner::OwnerId;
use crate::period::Term;
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;

mod admin;
mod contend;
mod deadlines;
mod lost_replies;
mod proxy;
mod release;
mod turns;

const TTL: Duration = ms(30_000);
/// Long enough for anything but a hang on a busy machine.
const PATIENCE: Duration = ms(20_000);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A client's backend behind a proxy of its own, and a session of ours to look behind the scenes.
struct Scene {
    proxy: Proxy,
    zookeeper: ZooKeeper,
    raw: zk::Client,
    root: String,
}

impl Scene {
    async fn new() -> Self {
        Self::with_layout("curator").await
    }

    async fn with_layout(layout: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = format!("/scene-{}-{count}", std::process::id());
        let proxy = Proxy::start(server()).await;
        let options = format!("?fl.root={root}&fl.node_layout={layout}");
        let zookeeper = connect(&proxy.url(&options)).await;
        let raw = zk::Client::connector()
            .with_session_timeout(ms(10_000))
            .connect(&server())
            .await
            .unwrap();
        Scene { proxy, zookeeper, raw, root }
    }

    /// Another client of the same root, past the proxy.
    async fn other(&self) -> ZooKeeper {
        connect(&format!("zookeeper://{}/?fl.root={}", server(), self.root)).await
    }

    fn directory(&self) -> String {
        format!("{}/n", self.root)
    }

    /// The children of the lock's node, in no order.
    async fn nodes(&self) -> Vec<String> {
        // Another server than the one that was written to may lag behind.
        self.raw.sync("/").await.unwrap();
        match self.raw.list_children(&self.directory()).await {
            Err(zk::Error::NoNode) => Vec::new(),
            nodes => nodes.unwrap(),
        }
    }

    /// The node of this place, if it has one.
    async fn node(&self, place: &Place) -> Option<String> {
        let owner = place.owner.to_string();
        self.nodes().await.into_iter().find(|node| node.contains(&owner))
    }

    /// Deletes the node of a place, as an administrator would.
    async fn delete_node_of(&self, place: &Place) {
        let node = self.node(place).await.expect("its node");
        self.raw.delete(&format!("{}/{node}", self.directory()), None).await.unwrap();
    }

    /// Creates a node as another library or another session would, and returns its whole path.
    async fn foreign(&self, prefix: &str) -> String {
        let directory = self.directory();
        let acls = zk::Acls::anyone_all();
        for path in [&self.root, &directory] {
            let container = zk::CreateMode::Container.with_acls(acls);
            let made = self.raw.create(path, b"", &container).await;
            assert!(matches!(made, Ok(_) | Err(zk::Error::NodeExists)), "{made:?}");
        }
        let prefix = format!("{directory}/{prefix}");
        let options = zk::CreateMode::EphemeralSequential.with_acls(acls);
        let (_, sequence) = self.raw.create(&prefix, b"foreign", &options).await.unwrap();
        format!("{prefix}{sequence}")
    }

    fn contend(&self, place: &Arc<Place>, mode: Mode) -> Request<Look> {
        self.zookeeper.contend(place, mode)
    }

    async fn intro(&self, place: &Arc<Place>) -> Look {
        soon("an answer", self.contend(place, Mode::Intro)).await.unwrap()
    }

    async fn again(&self, place: &Arc<Place>) -> Look {
        soon("an answer", self.contend(place, Mode::Again)).await.unwrap()
    }

    /// Holds the lock with a new place.
    async fn hold(&self, ttl: Duration) -> (Arc<Place>, Token) {
        let place = place(ttl);
        let token = granted(self.intro(&place).await);
        (place, token)
    }

    /// Waits behind the holder with a new place.
    async fn queue(&self, ttl: Duration) -> Arc<Place> {
        let place = place(ttl);
        queued(self.intro(&place).await);
        place
    }

    /// Looks until the lock is ours.
    async fn turn(&self, place: &Arc<Place>) -> Token {
        let start = Instant::now();
        loop {
            match self.again(place).await {
                Look::Granted(token, _) => return token,
                Look::Queued(_) if start.elapsed() < PATIENCE => tokio::time::sleep(ms(2)).await,
                look => panic!("no turn: {look:?}"),
            }
        }
    }

    /// The session of a place.
    fn keeper(&self, place: &Place) -> Arc<Keeper> {
        let seats = self.zookeeper.shared.seats();
        seats[&place.owner].keeper().expect("a session")
    }

    async fn release(&self, place: &Arc<Place>) -> crate::backend::Verdict {
        soon("a release", self.zookeeper.release(place, None, false)).await.unwrap()
    }
}

/// HOST:PORT of one server.
fn server() -> String {
    let url = std::env::var("FENCELOCK_TEST_ZOOKEEPER_URL")
        .expect("FENCELOCK_TEST_ZOOKEEPER_URL is set; run tests/services/up");
    let hosts = url.strip_prefix("zookeeper://").unwrap().trim_end_matches('/');
    hosts.split(',').next().unwrap().to_owned()
}

fn parsed(url: &str) -> (Target, Settings) {
    let (target, options) = Target::parse(url).unwrap();
    (target, ClientOptions::new().or(options).settled(Family::ZooKeeper).unwrap())
}

async fn try_connect(url: &str) -> crate::Result<ZooKeeper> {
    let (target, settings) = parsed(url);
    ZooKeeper::connect(&target, &settings, Arc::<Wakeups>::default()).await
}

async fn connect(url: &str) -> ZooKeeper {
    soon("a session", try_connect(url)).await.unwrap()
}

fn place(ttl: Duration) -> Arc<Place> {
    Arc::new(Place {
        owner: OwnerId::random(),
        name: Name::new("n").unwrap(),
        ttl,
        metadata: "host=test pid=1 lang=rust".into(),
    })
}

#[track_caller]
fn granted(look: Look) -> Token {
    match look {
        Look::Granted(token, Term::Until(_)) => token,
        other => panic!("not granted: {other:?}"),
    }
}

#[track_caller]
fn queued(look: Look) -> Queued {
    match look {
        Look::Queued(queued) => queued,
        other => panic!("not queued: {other:?}"),
    }
}

/// Waits for the future, and fails with `what` if it does not come.
async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

/// Waits until the condition holds.
async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let start = Instant::now();
    while !soon(what, condition()).await {
        assert!(start.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(ms(2)).await;
    }
}
