//! The same lock for code without an async runtime.
//!
//! Each [`Client`] has one background thread, on which connections and renewals live. Do not call
//! these from async code: they block the thread.
//!
//! ```
//! use fencelock::blocking::Client;
//!
//! let client = Client::connect("memory:")?;
//! let lease = client.lock("orders/42")?.acquire()?;
//! println!("token {}", lease.token());
//! lease.release()?;
//! # Ok::<(), fencelock::Error>(())
//! ```

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::{ClientOptions, Error, ErrorKind, LockInfo, LockOptions, Result, Token};

/// The blocking form of [`crate::Client`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
    runtime: Arc<Background>,
}

/// The runtime. When the last reference to it goes, what was dropped before is still released.
#[derive(Debug)]
struct Background {
    runtime: Option<Runtime>,
    handle: Handle,
    /// The releases of dropped leases that are under way.
    tasks: OnceLock<TaskTracker>,
    pid: u32,
}

/// How long the end of the last reference waits for releases.
const RELEASING: Duration = Duration::from_millis(500);

impl Background {
    fn start() -> Result<Arc<Self>> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fencelock")
            .enable_all()
            .build()
            .map_err(|e| {
                Error::new(ErrorKind::Internal, "no thread could be started").with_source(e)
            })?;
        let handle = runtime.handle().clone();
        let tasks = OnceLock::new();
        Ok(Arc::new(Background { runtime: Some(runtime), handle, tasks, pid: std::process::id() }))
    }

    fn client(self: Arc<Self>, inner: crate::Client) -> Client {
        self.tasks.get_or_init(|| inner.tasks());
        Client { inner, runtime: self }
    }

    fn run<F: Future>(&self, work: F) -> F::Output {
        self.handle.block_on(work)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        if self.pid != std::process::id() {
            // The threads of this runtime are in the parent; waiting for them would never end.
            std::mem::forget(runtime);
            return;
        }
        if let Some(tasks) = self.tasks.take().filter(|tasks| !tasks.is_empty()) {
            tasks.close();
            // On a thread of its own, because this one may belong to an async runtime.
            let waiting = std::thread::spawn(move || {
                let done = runtime.block_on(async { timeout(RELEASING, tasks.wait()).await });
                runtime.shutdown_background();
                drop(done);
            });
            let _ = waiting.join();
        } else {
            runtime.shutdown_background();
        }
    }
}

impl Client {
    /// As [`crate::Client::connect`].
    pub fn connect(url: &str) -> Result<Self> {
        Self::connect_with(url, ClientOptions::new())
    }

    /// As [`crate::Client::connect_with`].
    pub fn connect_with(url: &str, options: ClientOptions) -> Result<Self> {
        let runtime = Background::start()?;
        let inner = runtime.run(crate::Client::connect_with(url, options))?;
        Ok(runtime.client(inner))
    }

    /// As [`crate::Client::from_env`].
    pub fn from_env() -> Result<Self> {
        let runtime = Background::start()?;
        let inner = runtime.run(crate::Client::from_env())?;
        Ok(runtime.client(inner))
    }

    /// As [`crate::Client::lock`].
    pub fn lock(&self, name: &str) -> Result<Lock> {
        self.lock_with(name, LockOptions::new())
    }

    /// As [`crate::Client::lock_with`].
    pub fn lock_with(&self, name: &str, options: LockOptions) -> Result<Lock> {
        let inner = self.inner.lock_with(name, options)?;
        Ok(Lock { inner, runtime: self.runtime.clone() })
    }

    /// As [`crate::Client::inspect`].
    pub fn inspect(&self, name: &str) -> Result<LockInfo> {
        self.runtime.run(self.inner.inspect(name))
    }

    /// As [`crate::Client::list`].
    pub fn list(&self) -> Result<Vec<LockInfo>> {
        self.runtime.run(self.inner.list())
    }

    /// As [`crate::Client::force_release`].
    pub fn force_release(&self, name: &str) -> Result<bool> {
        self.runtime.run(self.inner.force_release(name))
    }

    /// As [`crate::Client::close`].
    pub fn close(&self) {
        if self.runtime.pid == std::process::id() {
            self.runtime.run(self.inner.close());
        }
    }
}

/// The blocking form of [`crate::Lock`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Lock {
    inner: crate::Lock,
    runtime: Arc<Background>,
}

impl Lock {
    /// The name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// As [`crate::Lock::acquire`].
    pub fn acquire(&self) -> Result<Lease> {
        self.acquire_within(None)
    }

    /// As [`crate::Lock::acquire_timeout`].
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Lease> {
        self.acquire_within(Some(timeout))
    }

    /// As [`crate::Lock::acquire_within`].
    pub fn acquire_within(&self, timeout: Option<Duration>) -> Result<Lease> {
        self.check_process()?;
        let inner = self.runtime.run(self.inner.acquire_within(timeout))?;
        Ok(Lease { inner, runtime: self.runtime.clone() })
    }

    /// As [`crate::Lock::try_acquire`].
    pub fn try_acquire(&self) -> Result<Option<Lease>> {
        self.check_process()?;
        let lease = self.runtime.run(self.inner.try_acquire())?;
        Ok(lease.map(|inner| Lease { inner, runtime: self.runtime.clone() }))
    }

    fn check_process(&self) -> Result<()> {
        if self.runtime.pid == std::process::id() { Ok(()) } else { Err(Error::forked()) }
    }
}

/// The blocking form of [`crate::Lease`]: dropping it releases the lock in the background.
#[derive(Debug)]
#[must_use = "a lease that is dropped is released"]
pub struct Lease {
    inner: crate::Lease,
    runtime: Arc<Background>,
}

impl Lease {
    /// As [`crate::Lease::token`].
    pub fn token(&self) -> Token {
        self.inner.token()
    }

    /// As [`crate::Lease::name`].
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// As [`crate::Lease::is_held`].
    pub fn is_held(&self) -> bool {
        self.inner.is_held()
    }

    /// As [`crate::Lease::is_lost`].
    pub fn is_lost(&self) -> bool {
        self.inner.is_lost()
    }

    /// As [`crate::Lease::remaining`].
    pub fn remaining(&self) -> Duration {
        self.inner.remaining()
    }

    /// As [`crate::Lease::check`].
    pub fn check(&self) -> Result<()> {
        self.inner.check()
    }

    /// Waits until the lease is lost, at most this long; whether it is. Returns false at once
    /// when the lease was released.
    pub fn wait_lost(&self, timeout: Duration) -> bool {
        if self.runtime.pid == std::process::id() {
            let ended = async { tokio::time::timeout(timeout, self.inner.ended()).await };
            let _ = self.runtime.run(ended);
        }
        self.inner.is_lost()
    }

    /// As [`crate::Lease::renew`].
    pub fn renew(&self) -> Result<()> {
        self.runtime.run(self.inner.renew())
    }

    /// As [`crate::Lease::release`].
    pub fn release(&self) -> Result<()> {
        self.inner.check_process()?;
        self.runtime.run(self.inner.release())
    }
}
