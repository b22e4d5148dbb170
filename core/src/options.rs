//! Options of clients and locks, and the table of what is allowed.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};

const DAY: Duration = Duration::from_secs(24 * 3600);
const TTL: RangeInclusive<Duration> = Duration::from_millis(100)..=DAY;
const CLIENT_TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(3600);
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
const MOST_REPLICAS: u32 = 100;
const MAX_METADATA_BYTES: usize = 256;

/// Options of a lock: a cheap value, checked by
/// [`Client::lock_with`](crate::Client::lock_with) before any I/O.
///
/// | option | default | allowed |
/// |---|---|---|
/// | `ttl` | 30 s | 100 ms to 24 h, whole milliseconds (the rest is cut off) |
/// | `renew` | `true` | `false` = a fixed lease that ends at ttl |
/// | `max_hold` | none | longer than ttl |
/// | `metadata` | host, pid, language | up to 256 bytes without control characters |
#[derive(Clone, Debug)]
pub struct LockOptions {
    pub(crate) ttl: Duration,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) metadata: Option<Arc<str>>,
}

impl Default for LockOptions {
    fn default() -> Self {
        LockOptions { ttl: Duration::from_secs(30), renew: true, max_hold: None, metadata: None }
    }
}

impl LockOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the backend keeps a lease without renewal. Default 30 s; 100 ms to 24 h.
    ///
    /// After a crash of the holder, others wait this long.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Whether the watchdog renews the lease. Default `true`.
    ///
    /// With `false` the lease ends at ttl, unless [`Lease::renew`](crate::Lease::renew) sets it
    /// to a full ttl again.
    #[must_use]
    pub fn renew(mut self, renew: bool) -> Self {
        self.renew = renew;
        self
    }

    /// The longest time that a lease may be held, however often it is renewed. Default: none.
    ///
    /// The lease is lost when that time is over: the guard against a holder that hangs.
    #[must_use]
    pub fn max_hold(mut self, max_hold: impl Into<Option<Duration>>) -> Self {
        self.max_hold = max_hold.into();
        self
    }

    /// A short text that [`inspect`](crate::Client::inspect) shows with the holder.
    /// Default: host, process id and language.
    #[must_use]
    pub fn metadata(mut self, text: impl Into<Arc<str>>) -> Self {
        self.metadata = Some(text.into());
        self
    }

    pub(crate) fn checked(mut self) -> Result<Self> {
        if !TTL.contains(&self.ttl) {
            return Err(Error::invalid(format!(
                "ttl is {:?}; allowed are 100 ms to 24 h",
                self.ttl
            )));
        }
        // The backends count milliseconds; the local deadline must not count more than they do.
        self.ttl = Duration::from_millis(self.ttl.as_millis() as u64);
        if let Some(max_hold) = self.max_hold
            && max_hold <= self.ttl
        {
            return Err(Error::invalid(format!(
                "max_hold is {max_hold:?}; it must be longer than the ttl of {:?}",
                self.ttl
            )));
        }
        if let Some(text) = &self.metadata {
            check_metadata(text)?;
        }
        Ok(self)
    }
}

fn check_metadata(text: &str) -> Result<()> {
    if text.len() > MAX_METADATA_BYTES || text.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "metadata has {} bytes; allowed are up to {MAX_METADATA_BYTES} bytes of UTF-8 without control characters",
            text.len()
        )));
    }
    Ok(())
}

/// A wait: `None` = for ever, zero = one attempt, else 10 years at most.
///
/// For bindings, whose locks carry a wait of their own: it is refused when the lock is made.
#[doc(hidden)]
pub fn check_timeout(timeout: Option<Duration>) -> Result<()> {
    match timeout {
        Some(timeout) if timeout > LONGEST_WAIT => {
            Err(Error::invalid(format!("timeout is {timeout:?}; allowed are 0 to 10 years")))
        }
        _ => Ok(()),
    }
}

/// Options of a client. Options in the URL (`fl.prefix=` …) hold unless they are set here.
///
/// | option | in the URL | default | allowed |
/// |---|---|---|---|
/// | `connect_timeout` | `fl.connect_timeout_ms` | 5 s | 1 ms to 1 h |
/// | `request_timeout` | `fl.request_timeout_ms` | 2 s | 1 ms to 1 h |
/// | `prefix` (Redis) | `fl.prefix` | `fencelock:` | no NUL; no braces or one cluster hash tag |
/// | `collection` (MongoDB) | `fl.collection` | `fencelock.locks` | `database.collection` |
/// | `root` (ZooKeeper) | `fl.root` | `/fencelock` | an absolute path, below the URL's chroot |
/// | `node_layout` (ZooKeeper) | `fl.node_layout` | `curator` | `curator`, `kazoo`, `plain` |
/// | `replicas` (Redis) | `fl.replicas` | 0 | 0 to 100 |
/// | `tls_ca` (Redis, ZooKeeper) | `fl.tls_ca` | the system's authorities | a PEM file |
/// | `tls_cert`, `tls_key` (Redis, ZooKeeper) | `fl.tls_cert`, `fl.tls_key` | none | PEM files, both or neither |
/// | `sentinel_user`, `sentinel_password` (Redis) | `fl.sentinel_user`, `fl.sentinel_password` | none | |
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) prefix: Option<String>,
    pub(crate) collection: Option<String>,
    pub(crate) root: Option<String>,
    pub(crate) node_layout: Option<NodeLayout>,
    pub(crate) replicas: Option<u32>,
    pub(crate) tls: TlsFiles,
    pub(crate) sentinel: SentinelUser,
    pub(crate) language: Option<&'static str>,
}

/// How a contender's node is named in ZooKeeper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeLayout {
    /// `_c_<guid>-lock-<sequence>`: excludes Curator's `InterProcessMutex` and go-zk.
    #[default]
    Curator,
    /// `<guid>__lock__<sequence>`: excludes kazoo's `Lock`, but not Curator.
    Kazoo,
    /// `<sequence>`: excludes hand-written locks that sort the names as strings.
    Plain,
}

impl FromStr for NodeLayout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "curator" => Ok(NodeLayout::Curator),
            "kazoo" => Ok(NodeLayout::Kazoo),
            "plain" => Ok(NodeLayout::Plain),
            _ => Err(Error::invalid(format!(
                "node_layout is {name:?}; allowed are curator, kazoo and plain"
            ))),
        }
    }
}

/// The kinds of backends, each with options of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Memory,
    File,
    Redis,
    MongoDb,
    ZooKeeper,
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Family::Memory => "memory:",
            Family::File => "file:",
            Family::Redis => "Redis",
            Family::MongoDb => "MongoDB",
            Family::ZooKeeper => "ZooKeeper",
        })
    }
}

/// PEM files for TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsFiles {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl TlsFiles {
    pub(crate) fn is_empty(&self) -> bool {
        self.ca.is_none() && self.cert.is_none() && self.key.is_none()
    }

    fn or(self, other: TlsFiles) -> Self {
        TlsFiles {
            ca: self.ca.or(other.ca),
            cert: self.cert.or(other.cert),
            key: self.key.or(other.key),
        }
    }
}

/// Who we are to the sentinels.
#[derive(Clone, Default)]
pub(crate) struct SentinelUser {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl SentinelUser {
    pub(crate) fn is_empty(&self) -> bool {
        self.user.is_none() && self.password.is_none()
    }

    fn or(self, other: SentinelUser) -> Self {
        SentinelUser { user: self.user.or(other.user), password: self.password.or(other.password) }
    }
}

impl std::fmt::Debug for SentinelUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "given" })
    }
}

impl ClientOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The limit for making the first connection, and for an acquire that never gets an answer.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// The limit for one request. A request for a lock waits a third of its ttl at most.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// What stands before the name in the key (Redis). Empty is allowed: then the key is the name.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// The database and collection with the locks (MongoDB), as `database.collection`.
    #[must_use]
    pub fn collection(mut self, collection: impl Into<String>) -> Self {
        self.collection = Some(collection.into());
        self
    }

    /// The node below which the locks are (ZooKeeper), itself below the chroot of the URL.
    #[must_use]
    pub fn root(mut self, root: impl Into<String>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// How contenders name their nodes (ZooKeeper), which decides what other libraries the lock
    /// excludes.
    #[must_use]
    pub fn node_layout(mut self, layout: NodeLayout) -> Self {
        self.node_layout = Some(layout);
        self
    }

    /// How many replicas must have acknowledged a grant or a renewal before it counts (Redis).
    ///
    /// With 0 a failover to a replica that was behind loses leases early. What too few replicas
    /// acknowledge in time is undone and reported as `Unavailable`.
    #[must_use]
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// A PEM file with the authorities that may have signed the server's certificate, in place of
    /// those of the system (Redis and ZooKeeper with TLS).
    #[must_use]
    pub fn tls_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls.ca = Some(file.into());
        self
    }

    /// A PEM file with the client's certificate and those between it and its authority.
    #[must_use]
    pub fn tls_cert(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls.cert = Some(file.into());
        self
    }

    /// A PEM file with the private key of [`tls_cert`](ClientOptions::tls_cert).
    #[must_use]
    pub fn tls_key(mut self, file: impl Into<PathBuf>) -> Self {
        self.tls.key = Some(file.into());
        self
    }

    /// The user name for the sentinels. The one in the URL is for the servers they name.
    #[must_use]
    pub fn sentinel_user(mut self, user: impl Into<String>) -> Self {
        self.sentinel.user = Some(user.into());
        self
    }

    /// The password for the sentinels.
    #[must_use]
    pub fn sentinel_password(mut self, password: impl Into<String>) -> Self {
        self.sentinel.password = Some(password.into());
        self
    }

    /// The language that the default metadata names. For bindings.
    #[doc(hidden)]
    #[must_use]
    pub fn language(mut self, language: &'static str) -> Self {
        self.language = Some(language);
        self
    }

    /// Options set here win over `url`'s.
    pub(crate) fn or(self, url: ClientOptions) -> Self {
        ClientOptions {
            connect_timeout: self.connect_timeout.or(url.connect_timeout),
            request_timeout: self.request_timeout.or(url.request_timeout),
            prefix: self.prefix.or(url.prefix),
            collection: self.collection.or(url.collection),
            root: self.root.or(url.root),
            node_layout: self.node_layout.or(url.node_layout),
            replicas: self.replicas.or(url.replicas),
            tls: self.tls.or(url.tls),
            sentinel: self.sentinel.or(url.sentinel),
            language: self.language.or(url.language),
        }
    }

    /// Checked, for a backend of this family. An option that it does not have is refused: left
    /// aside it would promise what this backend does not do.
    pub(crate) fn settled(self, family: Family) -> Result<Settings> {
        use Family::{File, Memory, MongoDb, Redis, ZooKeeper};
        for (option, is_given, families) in [
            ("prefix", self.prefix.is_some(), &[Memory, File, Redis] as &[Family]),
            ("collection", self.collection.is_some(), &[MongoDb]),
            ("root", self.root.is_some(), &[ZooKeeper]),
            ("node_layout", self.node_layout.is_some(), &[ZooKeeper]),
            ("replicas", self.replicas.is_some_and(|n| n > 0), &[Redis]),
            ("tls_*", !self.tls.is_empty(), &[Redis, ZooKeeper]),
            ("sentinel_*", !self.sentinel.is_empty(), &[Redis]),
        ] {
            if is_given && !families.contains(&family) {
                return Err(Error::invalid(format!(
                    "{option} is no option of {family}, which the URL names"
                )));
            }
        }
        let settings = Settings {
            connect_timeout: self.connect_timeout.unwrap_or(Duration::from_secs(5)),
            request_timeout: self.request_timeout.unwrap_or(Duration::from_secs(2)),
            prefix: self.prefix.unwrap_or_else(|| "fencelock:".to_owned()),
            collection: self.collection.unwrap_or_else(|| "fencelock.locks".to_owned()),
            root: self.root.unwrap_or_else(|| "/fencelock".to_owned()),
            node_layout: self.node_layout.unwrap_or_default(),
            replicas: self.replicas.unwrap_or(0),
            tls: self.tls,
            sentinel: self.sentinel,
            metadata: default_metadata(self.language.unwrap_or("rust")),
        };
        for (what, value) in [
            ("connect_timeout", settings.connect_timeout),
            ("request_timeout", settings.request_timeout),
        ] {
            if !CLIENT_TIMEOUT.contains(&value) {
                return Err(Error::invalid(format!(
                    "{what} is {value:?}; allowed are 1 ms to 1 h"
                )));
            }
        }
        if settings.replicas > MOST_REPLICAS {
            return Err(Error::invalid(format!(
                "replicas is {}; allowed are 0 to {MOST_REPLICAS}",
                settings.replicas
            )));
        }
        Ok(settings)
    }
}

/// Client options after checking, with the defaults filled in.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) connect_timeout: Duration,
    pub(crate) request_timeout: Duration,
    #[cfg_attr(not(feature = "redis"), allow(dead_code))]
    pub(crate) prefix: String,
    #[cfg_attr(not(feature = "mongodb"), allow(dead_code))]
    pub(crate) collection: String,
    #[cfg_attr(not(feature = "zookeeper"), allow(dead_code))]
    pub(crate) root: String,
    #[cfg_attr(not(feature = "zookeeper"), allow(dead_code))]
    pub(crate) node_layout: NodeLayout,
    pub(crate) replicas: u32,
    pub(crate) tls: TlsFiles,
    pub(crate) sentinel: SentinelUser,
    /// What locks without metadata of their own show.
    pub(crate) metadata: Arc<str>,
}

fn default_metadata(language: &str) -> Arc<str> {
    let uname = rustix::system::uname();
    let host: String =
        uname.nodename().to_string_lossy().chars().filter(|c| !c.is_control()).take(64).collect();
    format!("host={host} pid={} lang={language}", std::process::id()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T>) -> &'static str {
        result.err().map_or("ok", |e| e.kind().code())
    }

    #[test]
    fn g10_ttl_and_max_hold_are_checked_and_cut_to_milliseconds() {
        let ms = Duration::from_millis;
        for (ttl, expected) in [
            (Duration::ZERO, "INVALID_ARGUMENT"),
            (Duration::from_nanos(1), "INVALID_ARGUMENT"),
            (ms(99), "INVALID_ARGUMENT"),
            (ms(100), "ok"),
            (ms(1500), "ok"),
            (DAY, "ok"),
            (DAY + ms(1), "INVALID_ARGUMENT"),
            (Duration::from_millis(1 << 53), "INVALID_ARGUMENT"),
            (Duration::MAX, "INVALID_ARGUMENT"),
        ] {
            assert_eq!(code(LockOptions::new().ttl(ttl).checked()), expected, "{ttl:?}");
        }
        let cut = LockOptions::new().ttl(Duration::from_micros(1_500_900)).checked().unwrap();
        assert_eq!(cut.ttl, ms(1500));
        let lock = LockOptions::new().ttl(ms(200));
        assert_eq!(code(lock.clone().max_hold(ms(200)).checked()), "INVALID_ARGUMENT");
        assert_eq!(code(lock.clone().max_hold(ms(201)).checked()), "ok");
        assert_eq!(code(lock.clone().metadata("a\nb").checked()), "INVALID_ARGUMENT");
        assert_eq!(code(lock.metadata("x".repeat(257)).checked()), "INVALID_ARGUMENT");
    }

    #[test]
    fn g10_waits_are_at_most_ten_years() {
        assert_eq!(code(check_timeout(None)), "ok");
        assert_eq!(code(check_timeout(Some(Duration::ZERO))), "ok");
        assert_eq!(code(check_timeout(Some(LONGEST_WAIT))), "ok");
        assert_eq!(code(check_timeout(Some(Duration::MAX))), "INVALID_ARGUMENT");
    }
}
