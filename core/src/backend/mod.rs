//! What a backend does: one look, renew, release, inspect. Nothing of policy.
//!
//! The wait loop, deadlines, the watchdog, clean-up and validation exist once, above this trait.
//! A backend turns each call into one request and its answer, and never retries by itself: only
//! the caller knows how much time is left. Who holds a lock is decided by no clock of a client.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::info::LockInfo;
use crate::name::Name;
use crate::options::{Family, Settings};
use crate::owner::OwnerId;
use crate::period::{Pace, Term};
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;

#[cfg(feature = "file")]
mod file;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "mongodb")]
mod mongodb;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "memory", feature = "file"))]
mod table;
#[cfg(feature = "zookeeper")]
mod zookeeper;

/// One request, running to its answer. It owns all it needs, so that a cancelled caller can hand
/// it to a task of the client; dropping it forgets the answer but does not call the request back.
pub(crate) type Request<T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'static>>;

/// Who asks: one place in the queue of one name, with an owner id of its own.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) owner: OwnerId,
    pub(crate) name: Name,
    pub(crate) ttl: Duration,
    pub(crate) metadata: Arc<str>,
}

/// How a contender looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Asks for a place in the queue; sent again with the same owner id it has the effect of one.
    Intro,
    /// Looks again; never introduces an owner id that has no place.
    Again,
    /// Takes the lock if it is free and nobody waits; never queues.
    Try,
}

/// What one look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The lock is ours.
    Granted(Token, Term),
    /// We wait.
    Queued(Queued),
    /// The lock is not free (only for [`Mode::Try`]).
    Busy,
    /// This owner id never comes back; start again with a new one.
    Gone,
    /// The queue takes nobody any more, for now.
    #[cfg(feature = "mongodb")]
    Full,
}

/// The answer to a contender that has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    /// What is left of the holder's time; `None` if it has no limit.
    pub(crate) remaining: Option<Duration>,
    /// The smallest token that a later grant can have.
    pub(crate) floor: u64,
    /// Whether nobody waits before us, as far as this answer tells.
    pub(crate) first: bool,
    /// The holder is a foreign client, which will not wake us.
    pub(crate) foreign: bool,
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// This lease was released, by this request or an earlier one.
    Released,
    /// It had ended before.
    Lost,
    /// The backend does not know any more.
    Unknown,
}

/// One lease to renew.
#[derive(Clone, Debug)]
pub(crate) struct Renewal {
    pub(crate) place: Arc<Place>,
    pub(crate) token: Token,
}

/// What a renewal found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    /// Ours.
    Ours(Term),
    /// Not ours (any more). Final.
    NotOurs,
}

/// A backend. Every method makes one request; the caller limits its time.
///
/// Grants that the backend pushes go to the [`Wakeups`] it was made with.
pub(crate) trait Backend: Send + Sync + 'static {
    /// How often contenders look, and how long that counts as a sign of life.
    fn pace(&self) -> Pace {
        Pace::BRISK
    }

    /// Whether leases live as long as a session that the backend keeps alive by itself, and tells
    /// of by [`Wakeups::extended`]. The watchdog then renews none of them.
    fn keeps_sessions(&self) -> bool {
        false
    }

    /// One look of a contender.
    fn contend(&self, place: &Arc<Place>, mode: Mode) -> Request<Look>;

    /// Ends a place: gives a lease back (`token` known) or withdraws a contender (`token` none,
    /// which also gives back a lease that it may have got meanwhile). `mark` leaves a record so
    /// that a request still under way finds this owner id ended.
    fn release(&self, place: &Arc<Place>, token: Option<Token>, mark: bool) -> Request<Verdict>;

    /// Renews leases, one result each in the same order; an outer error is the result of all.
    fn renew(&self, leases: Vec<Renewal>) -> Request<Vec<Result<Renewed>>>;

    /// Which part of the backend has this name, if it has parts that can fail each by itself.
    /// Leases of different parts are renewed by different requests.
    fn shard(&self, _name: &Name) -> usize {
        0
    }

    /// What is known of a name.
    fn inspect(&self, name: &Name) -> Request<LockInfo>;

    /// All names that are held or waited for.
    fn list(&self) -> Request<Vec<LockInfo>>;

    /// Ends the lease that holds the name now, whoever's it is; false if there was none.
    fn force_release(&self, name: &Name) -> Request<bool>;

    /// Closes connections. No request follows.
    fn close(&self) -> Request<()>;
}

/// Connects to the backend that the URL names: one handshake, within the connect timeout.
pub(crate) async fn connect(
    target: &Target,
    settings: &Settings,
    wakeups: Arc<Wakeups>,
) -> Result<Arc<dyn Backend>> {
    match target.family()? {
        #[cfg(feature = "memory")]
        Family::Memory => Ok(Arc::new(memory::Memory::open(target, &wakeups)?)),
        #[cfg(feature = "file")]
        Family::File => Ok(Arc::new(file::Files::open(target, wakeups).await?)),
        #[cfg(feature = "redis")]
        Family::Redis => Ok(Arc::new(redis::Redis::connect(target, settings, wakeups).await?)),
        #[cfg(feature = "mongodb")]
        Family::MongoDb => {
            Ok(Arc::new(mongodb::MongoDb::connect(target, settings, wakeups).await?))
        }
        #[cfg(feature = "zookeeper")]
        Family::ZooKeeper => {
            Ok(Arc::new(zookeeper::ZooKeeper::connect(target, settings, wakeups).await?))
        }
        #[allow(unreachable_patterns, reason = "reachable in a build without all features")]
        family => Err(Error::new(
            crate::ErrorKind::Unsupported,
            format!("this build of the library comes without {family}"),
        )),
    }
}
