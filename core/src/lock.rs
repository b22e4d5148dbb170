//! A name plus options.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire;
use crate::client::CoreRef;
use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::name::Name;
use crate::options::{LockOptions, check_timeout};

/// A lock: a name plus options. A stateless handle, cheap to clone and to share; it holds nothing.
///
/// Every acquire of the same handle is a place of its own: two tasks that share one lock object
/// exclude each other.
#[derive(Clone)]
pub struct Lock {
    core: CoreRef,
    spec: Arc<Spec>,
}

/// What one acquire needs to know.
pub(crate) struct Spec {
    pub(crate) name: Name,
    pub(crate) options: LockOptions,
    pub(crate) metadata: Arc<str>,
}

impl Lock {
    pub(crate) fn new(core: CoreRef, name: &str, options: LockOptions) -> Result<Self> {
        let name = Name::new(name)?;
        let options = options.checked().map_err(|e| e.of_lock(&name))?;
        let metadata = options.metadata.clone().unwrap_or_else(|| core.settings.metadata.clone());
        Ok(Lock { core, spec: Arc::new(Spec { name, options, metadata }) })
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.spec.name.as_str()
    }

    /// Waits for the lock, for ever if need be.
    ///
    /// Cancel-safe: an acquire that is dropped leaves nothing behind; a request already sent runs
    /// to its reply in a task of the client, and is then undone.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the backend never answered within the connect timeout, or, once queued,
    /// not for 30 s; `AuthFailed`, `Conflict`, `Unsupported` as the backend says; `Closed` and
    /// `Forked` when this client is of no use any more.
    pub async fn acquire(&self) -> Result<Lease> {
        self.acquire_within(None).await
    }

    /// Waits for the lock at most this long. Zero is one attempt, which can succeed but neither
    /// queues nor overtakes anybody who waits.
    ///
    /// Returns by `timeout` + 50 ms, whatever the server does; a zero timeout by the request
    /// timeout + 50 ms. Cancel-safe as [`acquire`](Lock::acquire).
    ///
    /// # Errors
    ///
    /// `Timeout`, and those of [`acquire`](Lock::acquire). `InvalidArgument` above 10 years.
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Lease> {
        self.acquire_within(Some(timeout)).await
    }

    /// [`acquire_timeout`](Lock::acquire_timeout), with `None` for ever.
    pub async fn acquire_within(&self, timeout: Option<Duration>) -> Result<Lease> {
        self.acquire_unless(timeout, std::future::pending()).await
    }

    /// [`acquire_within`](Lock::acquire_within), given up when `cancelled` completes: for hosts
    /// that interrupt a call and want it to return by itself. Then it waits up to 50 ms until it
    /// has withdrawn; dropping the future withdraws as well, but in the background.
    ///
    /// # Errors
    ///
    /// `Cancelled`, and those of [`acquire_timeout`](Lock::acquire_timeout).
    pub async fn acquire_unless(
        &self,
        timeout: Option<Duration>,
        cancelled: impl Future<Output = ()> + Send,
    ) -> Result<Lease> {
        check_timeout(timeout)?;
        if timeout.is_some_and(|t| t.is_zero()) {
            // Dropped, the attempt withdraws in the background.
            let lease = tokio::select! {
                biased;
                lease = self.try_acquire() => lease?,
                () = cancelled => return Err(Error::cancelled(&self.spec.name)),
            };
            return lease.ok_or_else(|| Error::timeout(&self.spec.name, Duration::ZERO));
        }
        acquire::wait(&self.core, &self.spec, timeout, cancelled).await
    }

    /// Takes the lock if it is free and nobody waits for it. One request; never queues.
    ///
    /// Returns by the request timeout + 50 ms. Cancel-safe as [`acquire`](Lock::acquire).
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Lock::acquire); `Unavailable` when that one request got no answer.
    pub async fn try_acquire(&self) -> Result<Option<Lease>> {
        acquire::attempt(&self.core, &self.spec).await
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", &self.spec.name).finish_non_exhaustive()
    }
}
