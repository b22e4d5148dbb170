//! One session, and all that is used of the client crate. Its traps end here, so that another wire
//! layer could take its place:
//!
//! - A request is sent when its method is *called*; dropping the future calls nothing back. So the
//!   methods here are plain functions, and whoever calls one has to see it through.
//! - What is asked while the connection is down waits and goes out later: ask
//!   [`connected`](Session::connected) first.
//! - Its timers and sockets live on a thread of the process, which a forked child does not have.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use zookeeper_client as zk;

use super::address::Address;
use super::fault::Fault;
use super::tls;
use crate::clock::Instant;
use crate::options::TlsFiles;

/// The process whose reactor thread the crate uses; 0 = none yet.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Less than this no ensemble grants with usual settings; to ask for less only hurries the crate,
/// which gives up connecting after as long as it asked for.
const SHORTEST_SESSION: Duration = Duration::from_millis(400);
/// A longer one would let the crate wait for minutes where a server does not answer.
const LONGEST_SESSION: Duration = Duration::from_secs(60);
const CONNECTION_TIMEOUTS: (Duration, Duration) =
    (Duration::from_millis(200), Duration::from_secs(2));

/// How to come in.
pub(super) struct Approach {
    address: Address,
    tls: Option<zk::TlsOptions>,
}

/// A session, from its creation on.
pub(super) struct Session {
    client: zk::Client,
    opened: Instant,
    acls: zk::Acls<'static>,
}

/// What the server says of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The transaction that created it.
    pub(super) created: i64,
    /// The session that it ends with; 0 for a lasting one.
    pub(super) owner: i64,
    /// When it was created, in milliseconds of the leader's wall clock.
    pub(super) created_at: i64,
}

impl From<zk::Stat> for Node {
    fn from(stat: zk::Stat) -> Self {
        Node { created: stat.czxid, owner: stat.ephemeral_owner, created_at: stat.ctime }
    }
}

/// Whether a session can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Up,
    Down,
    /// For good.
    Ended,
}

impl From<zk::SessionState> for Line {
    fn from(state: zk::SessionState) -> Self {
        match state {
            zk::SessionState::SyncConnected => Line::Up,
            zk::SessionState::Disconnected => Line::Down,
            _ => Line::Ended,
        }
    }
}

/// The changes of a session's line. It does not keep the session open.
pub(super) struct Lines(zk::StateWatcher);

impl Lines {
    /// The next change. Of several at once only the last is seen.
    pub(super) async fn next(&mut self) -> Line {
        self.0.changed().await.into()
    }

    /// Returns when the session has ended, and what was to be said to the server has been said.
    pub(super) async fn ended(mut self) {
        while Line::from(self.0.peek_state()) != Line::Ended {
            self.next().await;
        }
    }
}

/// Watches one node. Dropped, it asks the server to forget the watch.
pub(super) struct Watch(zk::OneshotWatcher);

impl Watch {
    /// Returns at the first change: whether the node has gone.
    pub(super) async fn gone(self) -> bool {
        match self.0.changed().await.event_type {
            zk::EventType::NodeDeleted => true,
            // The session is over, which its keeper tells.
            zk::EventType::Session => std::future::pending().await,
            _ => false,
        }
    }
}

impl Approach {
    /// Reads the files. No network I/O.
    pub(super) fn new(address: Address, files: &TlsFiles) -> crate::Result<Self> {
        let tls = if files.is_empty() { None } else { Some(tls::options(files)?) };
        Ok(Approach { address, tls })
    }

    /// Makes a session that ends after about `ttl` without us. Tries each host once.
    pub(super) async fn open(&self, ttl: Duration) -> Result<Session, Fault> {
        let here = std::process::id();
        let first = PROCESS.compare_exchange(0, here, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err_and(|process| process != here) {
            return Err(Fault::Forked);
        }
        let timeout = ttl.clamp(SHORTEST_SESSION, LONGEST_SESSION);
        let (least, most) = CONNECTION_TIMEOUTS;
        let mut connector = zk::Client::connector()
            .with_fail_eagerly()
            .with_session_timeout(timeout)
            .with_connection_timeout((timeout * 2 / 5).clamp(least, most));
        if let Some(digest) = &self.address.digest {
            connector = connector.with_auth("digest", digest.as_bytes());
        }
        let hosts = self.address.hosts.join(",");
        let opened = Instant::now();
        let client = match &self.tls {
            Some(tls) => connector.with_tls(tls.clone()).secure_connect(&hosts).await,
            None => connector.connect(&hosts).await,
        };
        let mut client = client.map_err(|error| match error {
            zk::Error::NoHosts => Fault::Unreachable("no server made a session".to_owned()),
            error => Fault::from(error),
        })?;
        let granted = client.session_timeout();
        if granted != timeout {
            tracing::warn!(
                asked_ms = timeout.as_millis() as u64,
                granted_ms = granted.as_millis() as u64,
                "the ensemble keeps sessions for another time than the ttl of the lock (see its minSessionTimeout and maxSessionTimeout): after a crash of the holder others wait for that long"
            );
        }
        if !self.address.chroot.is_empty() {
            client = client
                .chroot(self.address.chroot.as_str())
                .map_err(|_| Fault::Invalid("the chroot of the URL is refused".to_owned()))?;
        }
        let acls = match self.address.digest {
            Some(_) => zk::Acls::creator_all(),
            None => zk::Acls::anyone_all(),
        };
        let session = Session { client, opened, acls };
        if !self.address.chroot.is_empty() && session.exists("/").await?.is_none() {
            return Err(Fault::NoChroot(self.address.chroot.clone()));
        }
        Ok(session)
    }
}

type Answer<'a, T> = futures_util::future::BoxFuture<'a, Result<T, Fault>>;

impl Session {
    pub(super) fn id(&self) -> i64 {
        self.client.session_id().0
    }

    /// What it takes to come in as this session.
    #[cfg(test)]
    pub(super) fn info(&self) -> zk::SessionInfo {
        self.client.session().clone()
    }

    /// The instant before the session was asked for.
    pub(super) fn opened(&self) -> Instant {
        self.opened
    }

    /// How long the ensemble keeps the session without hearing of it.
    pub(super) fn timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    pub(super) fn lines(&self) -> Lines {
        Lines(self.client.state_watcher())
    }

    pub(super) fn line(&self) -> Line {
        self.client.state().into()
    }

    /// Returns when requests can be sent; an error when never again.
    pub(super) async fn connected(&self) -> Result<(), Fault> {
        if self.line() == Line::Up {
            return Ok(());
        }
        let mut lines = self.lines();
        loop {
            match self.line() {
                Line::Up => return Ok(()),
                Line::Ended => return Err(Fault::Ended),
                Line::Down => {
                    lines.next().await;
                }
            }
        }
    }

    /// Creates a node of this session's, to whose name the server appends a number. Returns its
    /// whole path.
    pub(super) fn create<'a>(&'a self, prefix: &'a str, data: &[u8]) -> Answer<'a, (String, Node)> {
        let options = zk::CreateMode::EphemeralSequential.with_acls(self.acls);
        let created = self.client.create(prefix, data, &options);
        created
            .map(move |result| {
                let (stat, sequence) = result?;
                Ok((format!("{prefix}{sequence}"), stat.into()))
            })
            .boxed()
    }

    /// Creates a node that the servers remove some time after its last child.
    pub(super) fn create_container<'a>(&'a self, path: &'a str) -> Answer<'a, ()> {
        let options = zk::CreateMode::Container.with_acls(self.acls);
        self.client.create(path, b"", &options).map(|result| Ok(result.map(drop)?)).boxed()
    }

    pub(super) fn delete(&self, path: &str) -> Answer<'_, ()> {
        self.client.delete(path, None).map(|result| Ok(result?)).boxed()
    }

    pub(super) fn list<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<String>> {
        self.client.list_children(path).map(|result| Ok(result?)).boxed()
    }

    pub(super) fn exists(&self, path: &str) -> Answer<'_, Option<Node>> {
        self.client.check_stat(path).map(|result| Ok(result?.map(Node::from))).boxed()
    }

    /// Whether the node is there, and a watch either way.
    pub(super) fn watch<'a>(&'a self, path: &'a str) -> Answer<'a, (bool, Watch)> {
        let watched = self.client.check_and_watch_stat(path);
        watched
            .map(|result| {
                let (stat, watcher) = result?;
                Ok((stat.is_some(), Watch(watcher)))
            })
            .boxed()
    }

    pub(super) fn read(&self, path: &str) -> Answer<'_, (Vec<u8>, Node)> {
        self.client
            .get_data(path)
            .map(|result| {
                let (data, stat) = result?;
                Ok((data, stat.into()))
            })
            .boxed()
    }

    /// Makes the server that we are connected to catch up with the leader. The leader answers this
    /// without asking anybody, so it says nothing of the session.
    pub(super) fn sync<'a>(&'a self, path: &'a str) -> Answer<'a, ()> {
        self.client.sync(path).map(|result| Ok(result?)).boxed()
    }

    /// A write that succeeds if all these nodes are there. An error names the first that is not.
    pub(super) fn check<'a>(
        &'a self,
        paths: &[&str],
    ) -> impl Future<Output = Result<(), (Option<usize>, Fault)>> + Send + 'a {
        let mut multi = self.client.new_multi_writer();
        let added = paths.iter().try_for_each(|path| multi.add_check_version(path, -1));
        let commit = multi.commit();
        async move {
            added.map_err(|error| (None, Fault::from(error)))?;
            match commit.await {
                Ok(_) => Ok(()),
                Err(zk::MultiWriteError::RequestFailed { source }) => Err((None, source.into())),
                Err(zk::MultiWriteError::OperationFailed { index, source }) => {
                    Err((Some(index), source.into()))
                }
            }
        }
    }

    /// The nodes of this session, below `path`.
    pub(super) fn ephemerals<'a>(&'a self, path: &'a str) -> Answer<'a, Vec<String>> {
        self.client.list_ephemerals(path).map(|result| Ok(result?)).boxed()
    }
}

impl From<zk::Error> for Fault {
    fn from(error: zk::Error) -> Self {
        use zk::Error as E;
        match error {
            E::NoNode => Fault::NoNode,
            E::NodeExists => Fault::NodeExists,
            E::NoAuth => Fault::NoAuth,
            E::NoChildrenForEphemerals => Fault::EphemeralParent,
            E::ConnectionLoss => Fault::ReplyLost,
            E::SessionExpired | E::SessionMoved | E::ClientClosed => Fault::Ended,
            // Without valid credentials "creator" names nobody.
            E::AuthFailed | E::InvalidAcl => Fault::AuthFailed,
            E::Unimplemented => Fault::Unimplemented,
            E::BadArguments(what) => Fault::Invalid(format!("ZooKeeper refuses this: {what}")),
            E::NoHosts | E::Timeout => Fault::Unreachable(error.to_string()),
            E::NotReadOnly | E::QuotaExceeded | E::Throttled => Fault::Busy(error.to_string()),
            // What ended the connection is told to all that waited for an answer on it.
            E::Custom(_) | E::UnexpectedError(_) | E::UnmarshalError { .. } => Fault::ReplyLost,
            error => Fault::Unexpected(error.to_string()),
        }
    }
}
