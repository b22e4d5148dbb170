//! Where a contract test runs.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use fencelock::{Client, Lease, Lock, LockOptions};

use crate::redis_cluster::RedisCluster;
use crate::redis_server::RedisServer;

/// One backend, empty at the start.
pub(crate) struct Site {
    pub(crate) url: String,
    /// How many locks its server can keep taking and giving back at once, on a slow machine, with
    /// each request answered within 100 ms.
    pub(crate) holders_at_once: u64,
    /// What ends with the site.
    _server: Option<RedisServer>,
    _cluster: Option<Arc<RedisCluster>>,
    _directory: Option<tempfile::TempDir>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

fn count() -> u32 {
    COUNT.fetch_add(1, Ordering::Relaxed)
}

impl Site {
    pub(crate) fn memory() -> Self {
        Self::at(format!("memory:site-{}", count()))
    }

    fn at(url: String) -> Self {
        Site { url, holders_at_once: 100, _server: None, _cluster: None, _directory: None }
    }

    pub(crate) fn file() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file://{}", directory.path().join("locks").display());
        Site { _directory: Some(directory), ..Self::at(url) }
    }

    pub(crate) fn redis() -> Self {
        let server = RedisServer::start();
        let url = server.url();
        Site { _server: Some(server), ..Self::at(url) }
    }

    /// A prefix of its own on a cluster that the tests of one moment share, because making one
    /// takes seconds.
    pub(crate) fn cluster() -> Self {
        static SHARED: Mutex<Weak<RedisCluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = shared.upgrade().unwrap_or_else(|| Arc::new(RedisCluster::start()));
        *shared = Arc::downgrade(&cluster);
        let url = format!("{}?fl.prefix=site-{}:", cluster.url(), count());
        Site { _cluster: Some(cluster), ..Self::at(url) }
    }

    /// A collection of its own on the replica set that all tests share.
    pub(crate) fn mongodb() -> Self {
        let url = std::env::var("FENCELOCK_TEST_MONGODB_URL").expect(
            "FENCELOCK_TEST_MONGODB_URL is not set; `tests/services/up mongodb` starts a replica set and prints it",
        );
        let sign = if url.contains('?') { '&' } else { '?' };
        let collection = format!("contract.site-{}-{}", std::process::id(), count());
        let url = format!("{url}{sign}fl.collection={collection}");
        // Each step waits for the disks of two members.
        Site { holders_at_once: 10, ..Self::at(url) }
    }

    /// A root of its own on the ensemble that all tests share.
    pub(crate) fn zookeeper() -> Self {
        let ensemble = std::env::var("FENCELOCK_TEST_ZOOKEEPER_URL")
            .expect("FENCELOCK_TEST_ZOOKEEPER_URL is set; run tests/services/up");
        let root = format!("site-{}-{}", std::process::id(), count());
        Self::at(format!("{}?fl.root=/{root}", ensemble.trim_end_matches('/')))
    }

    /// Whether sessions of the servers decide how long a lease lasts, which they end with a delay
    /// of their own, and nobody knows when a lock was granted.
    pub(crate) fn keeps_sessions(&self) -> bool {
        self.url.starts_with("zookeeper:")
    }

    /// For how long a holder that crashed may block others.
    pub(crate) fn longest_block(&self, ttl: Duration) -> Duration {
        if self.keeps_sessions() { ttl * 2 + ms(1_000) } else { ttl + ms(1_000) }
    }

    /// Where `file:` keeps its locks.
    pub(crate) fn directory(&self) -> std::path::PathBuf {
        self.url.strip_prefix("file://").unwrap().into()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.url).await.expect("the backend is up")
    }

    /// A lock of a client of its own.
    pub(crate) async fn lock(&self, name: &str, ttl: Duration) -> Lock {
        lock(&self.client().await, name, ttl)
    }
}

pub(crate) fn lock(client: &Client, name: &str, ttl: Duration) -> Lock {
    client.lock_with(name, LockOptions::new().ttl(ttl)).expect("valid options")
}

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Long enough for anything but a hang on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for the future, and fails with `what` if it does not come.
pub(crate) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

/// Waits until the condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(ms(2)).await;
    }
}

/// Starts to wait for the lock and returns when the backend has the contender in its queue.
pub(crate) async fn queue_up(client: &Client, lock: &Lock) -> tokio::task::JoinHandle<Lease> {
    let queued = |info: fencelock::LockInfo| info.queue.len();
    let before = queued(client.inspect(lock.name()).await.unwrap());
    let waiting = lock.clone();
    let task = tokio::spawn(async move { waiting.acquire().await.expect("a grant") });
    until("a place in the queue", || async {
        queued(client.inspect(lock.name()).await.unwrap()) > before
    })
    .await;
    task
}

/// Runs each test on each backend.
macro_rules! on_each_backend {
    ($($test:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() { super::$test(crate::site::Site::memory()).await })*
        }
        mod file {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() { super::$test(crate::site::Site::file()).await })*
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() { super::$test(crate::site::Site::redis()).await })*
        }
        mod cluster {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() { super::$test(crate::site::Site::cluster()).await })*
        }
        mod mongodb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() { super::$test(crate::site::Site::mongodb()).await })*
        }
        mod zookeeper {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() { super::$test(crate::site::Site::zookeeper()).await })*
        }
    };
}
pub(crate) use on_each_backend;
