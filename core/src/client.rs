//! A client: the connections to one backend, its watchdog and its wake-ups.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::backend::{self, Backend, Place, Request, Verdict};
use crate::clock::{Alarm, Instant};
use crate::error::{Error, ErrorKind, Result};
use crate::info::LockInfo;
use crate::lock::Lock;
use crate::name::Name;
use crate::options::{ClientOptions, LockOptions, Settings};
use crate::period::Pace;
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;
use crate::watchdog::{self, Watchdog};

/// For how long closing waits for releases.
const CLOSING: Duration = Duration::from_millis(450);

/// The connections to one backend, with one watchdog and one wake-up channel for all locks.
/// Cheap to clone; clones are the same client.
///
/// It lives on the tokio runtime that it was connected on: do not block that runtime's threads,
/// renewals run there. Leases keep it alive; [`close`](Client::close) releases them.
#[derive(Clone)]
pub struct Client {
    core: CoreRef,
}

impl Client {
    /// Connects to the backend that `url` names: `memory:`, `file:///dir`, `redis://…`,
    /// `mongodb://…`, `zookeeper://…` and their variants. Makes one handshake and fails fast.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`, `Unsupported`, `AuthFailed`, or `Unavailable` within the connect timeout.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_with(url, ClientOptions::new()).await
    }

    /// [`connect`](Client::connect) with options. Those set here win over options in the URL.
    pub async fn connect_with(url: &str, options: ClientOptions) -> Result<Self> {
        let (target, from_url) = Target::parse(url)?;
        let settings = options.or(from_url).settled(target.family()?)?;
        let wakeups = Arc::new(Wakeups::default());
        let connecting = backend::connect(&target, &settings, wakeups.clone());
        let backend = timeout(settings.connect_timeout, connecting)
            .await
            .unwrap_or_else(|_| Err(Error::no_answer(settings.connect_timeout)))?;
        let core = Core::start(backend, settings, wakeups)?;
        Ok(Client { core: CoreRef::new(core) })
    }

    /// [`connect`](Client::connect) to the URL in the environment variable `FENCELOCK_URL`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` when it is not set: a forgotten setting must not silently lock nothing
    /// across hosts.
    pub async fn from_env() -> Result<Self> {
        Self::from_env_with(ClientOptions::new()).await
    }

    /// [`from_env`](Client::from_env) with options.
    pub async fn from_env_with(options: ClientOptions) -> Result<Self> {
        match std::env::var("FENCELOCK_URL") {
            Ok(url) if !url.is_empty() => Self::connect_with(&url, options).await,
            _ => Err(Error::invalid(
                "no URL given and FENCELOCK_URL is not set; give one such as redis://host/ (or file:///dir for the processes of one machine, memory: for this process only)",
            )),
        }
    }

    /// A lock with the default options.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`: a name has 1 to 1024 bytes of UTF-8 without NUL and does not begin with
    /// `~fl`.
    pub fn lock(&self, name: &str) -> Result<Lock> {
        self.lock_with(name, LockOptions::new())
    }

    /// A lock with options.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`; the message says what is allowed.
    pub fn lock_with(&self, name: &str, options: LockOptions) -> Result<Lock> {
        Lock::new(self.core.clone(), name, options)
    }

    /// What the backend knows of a name. Cancel-safe.
    ///
    /// # Errors
    ///
    /// `Unavailable`, and those of [`Lock::acquire`].
    pub async fn inspect(&self, name: &str) -> Result<LockInfo> {
        let name = Name::new(name)?;
        self.core.ask(|backend| backend.inspect(&name)).await.map_err(|e| e.of_lock(&name))
    }

    /// All names of this client's backend and prefix that are held. Walks all keys: a tool for
    /// people, not for programs. Cancel-safe.
    pub async fn list(&self) -> Result<Vec<LockInfo>> {
        self.core.check_usable()?;
        // One request may be many pages, each limited by the server's own speed.
        self.core.backend.list().await
    }

    /// Ends the lease that holds `name` now, whoever's it is, and hands the lock on; false if
    /// nobody held it. The former holder is told Lost at its next renewal at the latest, so for
    /// that long two may believe to hold the lock: for emergencies only.
    pub async fn force_release(&self, name: &str) -> Result<bool> {
        let name = Name::new(name)?;
        self.core.ask(|backend| backend.force_release(&name)).await.map_err(|e| e.of_lock(&name))
    }

    /// Releases all leases, ends all waits with `Closed` and closes the connections, within
    /// 500 ms. Closing twice is fine. Cancel-safe: what was begun goes on in the background.
    pub async fn close(&self) {
        if !self.core.is_forked() {
            self.core.close().await;
        }
    }

    /// Whether no release or withdrawal is under way. What was dropped is released in the background.
    pub fn is_settled(&self) -> bool {
        self.core.tasks.is_empty()
    }

    /// Waits until no release or withdrawal is under way, however long the server takes. Cancel-safe.
    pub async fn settled(&self) {
        self.core.tasks.close();
        self.core.tasks.wait().await;
    }

    /// The releases and withdrawals that are under way.
    pub(crate) fn tasks(&self) -> TaskTracker {
        self.core.tasks.clone()
    }

    /// Whether [`close`](Client::close) was called.
    pub fn is_closed(&self) -> bool {
        self.core.closed.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

/// What a client's locks and leases share.
pub(crate) struct Core {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) settings: Settings,
    pub(crate) wakeups: Arc<Wakeups>,
    pub(crate) watchdog: Arc<Watchdog>,
    runtime: tokio::runtime::Handle,
    tasks: TaskTracker,
    closed: AtomicBool,
    /// Cancelled when closing is done.
    shut: CancellationToken,
    /// A forked child has none of our threads, so it must not touch what they may hold (G9).
    pid: u32,
}

impl Core {
    fn start(
        backend: Arc<dyn Backend>,
        settings: Settings,
        wakeups: Arc<Wakeups>,
    ) -> Result<Arc<Self>> {
        let runtime = tokio::runtime::Handle::current();
        let watchdog = Arc::new(Watchdog::new(&*backend, settings.request_timeout));
        let alarm = Alarm::new().map_err(|e| {
            Error::new(ErrorKind::Internal, "no timer could be made").with_source(e)
        })?;
        runtime.spawn(watchdog::run(watchdog.clone(), backend.clone(), wakeups.clone(), alarm));
        Ok(Arc::new(Core {
            backend,
            settings,
            wakeups,
            watchdog,
            runtime,
            tasks: TaskTracker::new(),
            closed: AtomicBool::new(false),
            shut: CancellationToken::new(),
            pid: std::process::id(),
        }))
    }

    pub(crate) fn pace(&self) -> Pace {
        self.backend.pace()
    }

    /// How long one request for a lock of this ttl may take.
    pub(crate) fn request_limit(&self, ttl: Duration) -> Duration {
        self.pace().request_limit(ttl, self.settings.request_timeout)
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.pid != std::process::id()
    }

    pub(crate) fn check_fork(&self) -> Result<()> {
        if self.is_forked() { Err(Error::forked()) } else { Ok(()) }
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        self.check_fork()?;
        if self.closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }

    /// Runs in the background; [`Client::close`] waits for it.
    pub(crate) fn spawn<F>(&self, work: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn_on(work, &self.runtime)
    }

    /// [`Client::close`] waits until this is dropped.
    pub(crate) fn track(&self) -> TaskTrackerToken {
        self.tasks.token()
    }

    /// One request of an administrator, within the request timeout.
    async fn ask<T>(&self, request: impl FnOnce(&dyn Backend) -> Request<T>) -> Result<T> {
        self.check_usable()?;
        let limit = self.settings.request_timeout;
        timeout(limit, request(&*self.backend))
            .await
            .unwrap_or_else(|_| Err(Error::no_answer(limit)))
    }

    /// Releases or withdraws a place, again and again until the backend answers or `until`.
    pub(crate) async fn release_until(
        &self,
        place: &Arc<Place>,
        token: Option<Token>,
        mark: bool,
        until: Instant,
    ) -> Option<Verdict> {
        let limit = self.request_limit(place.ttl);
        let mut pause = Duration::from_millis(20);
        loop {
            match timeout(limit, self.backend.release(place, token, mark)).await {
                Ok(Ok(verdict)) => return Some(verdict),
                // There is no time left for it: the client is being closed.
                Ok(Err(error)) if error.kind() == ErrorKind::Closed => return None,
                Ok(Err(error)) if !error.is_passing() => {
                    tracing::warn!(lock = %place.name, %error, "clean-up was refused");
                    return None;
                }
                _ => {}
            }
            if Instant::now().plus(pause) >= until {
                return None;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(limit);
        }
    }

    /// Runs in a task of its own, so that it is done wholly, whoever waits for it.
    async fn close(self: &Arc<Self>) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            let core = self.clone();
            // Dropped with the task, also where its runtime has ended.
            let done = self.shut.clone().drop_guard();
            self.runtime.spawn(async move {
                core.shut_down().await;
                drop(done);
            });
        }
        self.shut.cancelled().await;
    }

    async fn shut_down(self: &Arc<Self>) {
        self.wakeups.wake_all();
        for held in self.wakeups.held() {
            crate::lease::release_in_background(self, &held);
        }
        self.tasks.close();
        let _ = timeout(CLOSING, self.tasks.wait()).await;
        let _ = timeout(Duration::from_millis(20), self.backend.close()).await;
        self.watchdog.stop();
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.watchdog.stop();
    }
}

/// A counted reference to a client. In a forked child it is never dropped: the last one would
/// close connections that the parent still uses, and could wait for a lock that a thread of the
/// parent held when it forked.
#[derive(Clone)]
pub(crate) struct CoreRef(Arc<Core>);

impl CoreRef {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        CoreRef(core)
    }
}

impl Deref for CoreRef {
    type Target = Arc<Core>;

    fn deref(&self) -> &Arc<Core> {
        &self.0
    }
}

impl Drop for CoreRef {
    fn drop(&mut self) {
        if self.0.is_forked() {
            std::mem::forget(self.0.clone());
        }
    }
}
