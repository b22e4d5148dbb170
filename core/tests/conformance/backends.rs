//! The backends that the cases run on, and an empty space of one for each run.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

/// A backend, as the README of the cases names it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Backend {
    Memory,
    File,
    Redis,
    MongoDb,
    ZooKeeper,
}

/// An empty space of a backend, shared by all clients of one run.
#[derive(Default)]
pub(crate) struct Space {
    pub(crate) url: String,
    /// Of a server that has keys: where raw commands go, and what its keys begin with.
    pub(crate) server: Option<(String, String)>,
    /// What `inspect` cannot show there.
    pub(crate) unknown: &'static [&'static str],
    /// Of `file:`; it goes when the run has ended.
    directory: Option<TempDir>,
}

impl Backend {
    /// The one list of them.
    pub(crate) const ALL: &[Backend] =
        &[Backend::Memory, Backend::File, Backend::Redis, Backend::MongoDb, Backend::ZooKeeper];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Backend::Memory => "memory",
            Backend::File => "file",
            Backend::Redis => "redis",
            Backend::MongoDb => "mongodb",
            Backend::ZooKeeper => "zookeeper",
        }
    }

    pub(crate) fn space(self) -> Result<Space, String> {
        let name = unique_name();
        let mut space = Space::default();
        match self {
            Backend::Memory => space.url = format!("memory:{name}"),
            Backend::File => {
                let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
                space.url = format!("file://{}", directory.path().join("locks").display());
                space.directory = Some(directory);
            }
            Backend::Redis => {
                let server = server_url("FENCELOCK_TEST_REDIS_URL")?;
                let prefix = format!("{name}:");
                space.url = with_query(&server, &format!("fl.prefix={prefix}"));
                space.server = Some((server, prefix));
            }
            Backend::MongoDb => {
                let server = server_url("FENCELOCK_TEST_MONGODB_URL")?;
                space.url = with_query(&server, &format!("fl.collection=fencelock.{name}"));
            }
            Backend::ZooKeeper => {
                let server = server_url("FENCELOCK_TEST_ZOOKEEPER_URL")?;
                space.url = with_query(&server, &format!("fl.root=/{name}"));
                space.unknown = &["held_ms", "ttl_left_ms"];
            }
        }
        Ok(space)
    }
}

/// Not a skip: a run without servers must not look like a good one.
fn server_url(variable: &str) -> Result<String, String> {
    std::env::var(variable)
        .map_err(|_| format!("{variable} is not set: run the tests with tests/services/run"))
}

/// The server outlives this process, so the process is a part of the name.
fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("conformance-{}-{now}-{count}", std::process::id())
}

/// The URL with one more query option.
pub(crate) fn with_query(url: &str, query: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{query}")
}
