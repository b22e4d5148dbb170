//! One small tokio runtime per process, in a slot that belongs to one process id.
//!
//! A plain `static` runtime does not survive `fork`: the child inherits the memory of a runtime
//! whose threads exist only in the parent, and every call in the child then waits for ever. Nor
//! does it survive the end of the process: work in flight meets an interpreter that is going away.
//! So the slot remembers the process that filled it. A forked child finds it foreign, leaves it
//! alone (it neither drops it nor joins its threads) and fills it anew; and [`close_all`] ends all
//! work and refuses more.
//!
//! The runtime itself is never shut down: a thread that still waits inside would panic, and idle
//! threads end with the process.

use std::future::Future;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fencelock::{Error, ErrorKind, Result};
use tokio::runtime::Builder;

use crate::clients::Clients;
use crate::log::Log;
use crate::panic;
use crate::signals::{self, Blocked};

/// As many calls of the host's functions may block at once; then others wait.
const HOSTS: usize = 10_000;

/// How long [`close_all`] takes at most, whatever the servers do.
pub const CLOSING: Duration = Duration::from_millis(500);

/// One thread moves bytes between sockets and waiters; the waiters are threads of the host. With a
/// second one, an uncontended acquire + release from Python took 9.3 context switches instead of
/// 6.1, and 153 µs instead of 132 at best; only 64 tasks at once were faster (80 µs, not 100).
const WORKERS: usize = 1;

static SLOT: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());

/// The process in which [`close_all`] was called; 0 is no process of ours.
static CLOSED_IN: AtomicU32 = AtomicU32::new(0);

/// The runtime of this process.
pub struct Runtime {
    pid: u32,
    tokio: tokio::runtime::Runtime,
    /// Threads for functions of the host, which may block as long as they like. Not those of `tokio`,
    /// of which there are 512: it looks names of servers up on them.
    hosts: tokio::runtime::Runtime,
    calls: AtomicUsize,
    pub(crate) clients: Clients,
    pub(crate) log: Log,
}

impl Runtime {
    /// The runtime of this process, started if there is none yet.
    ///
    /// # Errors
    ///
    /// `Closed` after [`close_all`]; `Internal` when no thread can be started.
    pub fn current() -> Result<&'static Runtime> {
        check_open()?;
        let seen = SLOT.load(Ordering::Acquire);
        if let Some(runtime) = of_this_process(seen) {
            return Ok(runtime);
        }
        let new = Box::into_raw(Box::new(Runtime::start()?));
        match SLOT.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: `new` came from a box and is never freed from here on.
            Ok(_) => Ok(unsafe { &*new }),
            Err(_) => {
                // SAFETY: another thread of this process was faster; nobody else has seen `new`.
                drop(unsafe { Box::from_raw(new) });
                Runtime::current()
            }
        }
    }

    /// The runtime of this process, if one was started.
    pub fn existing() -> Option<&'static Runtime> {
        of_this_process(SLOT.load(Ordering::Acquire))
    }

    fn start() -> Result<Runtime> {
        let blocked = Blocked::here();
        // tokio panics when it can start no thread at all.
        let made = panic::catch(|| {
            let tokio = Builder::new_multi_thread()
                .worker_threads(WORKERS)
                .thread_name("fencelock")
                .on_thread_start(signals::block)
                .enable_all()
                .build();
            let hosts = Builder::new_current_thread()
                .max_blocking_threads(HOSTS)
                .thread_name("fencelock-host")
                .on_thread_start(signals::block)
                .build();
            let failed =
                |e| Error::new(ErrorKind::Internal, "no thread could be started").with_source(e);
            Ok((tokio.map_err(failed)?, hosts.map_err(failed)?))
        });
        blocked.undo();
        let (tokio, hosts) = made?;
        Ok(Runtime {
            pid: std::process::id(),
            tokio,
            hosts,
            calls: AtomicUsize::new(0),
            clients: Clients::default(),
            log: Log::default(),
        })
    }

    /// Runs work to its end on the calling thread.
    pub fn block_on<F: Future>(&self, work: F) -> F::Output {
        self.tokio.block_on(work)
    }

    /// Runs work on the runtime's own thread.
    pub fn spawn<F>(&self, work: F) -> tokio::task::JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tokio.spawn(work)
    }

    /// Runs a function of the host, which may block and may call us, once, on a thread that nothing
    /// else waits for; where no such thread is to be had, on the thread of the caller.
    pub fn call_host(&self, work: impl FnOnce() + Send + 'static) {
        let here = Arc::new(Mutex::new(Some(work)));
        let there = here.clone();
        let begun = panic::catch(|| {
            drop(self.hosts.spawn_blocking(move || take_and_run(&there)));
            Ok(())
        });
        if begun.is_err() {
            take_and_run(&here);
        }
    }

    /// Counts a blocking call for as long as the guard lives; [`close_all`] waits for those, so
    /// that their threads are back in the host's own code before the host goes away.
    pub fn enter(&self) -> Call<'_> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        Call(self)
    }
}

/// A blocking call under way; see [`Runtime::enter`].
pub struct Call<'a>(&'a Runtime);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

fn take_and_run(work: &Mutex<Option<impl FnOnce()>>) {
    let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(work) = work {
        work();
    }
}

fn of_this_process(slot: *mut Runtime) -> Option<&'static Runtime> {
    // SAFETY: what is in the slot came from a box that is never freed, in this process or in the
    // one that this was forked from. `pid` is never written again.
    let runtime = unsafe { slot.as_ref() }?;
    (runtime.pid == std::process::id()).then_some(runtime)
}

/// An error after [`close_all`].
pub fn check_open() -> Result<()> {
    if CLOSED_IN.load(Ordering::Acquire) == std::process::id() {
        return Err(Error::new(ErrorKind::Closed, "the process is ending; no new work is taken"));
    }
    Ok(())
}

/// Closes all clients of this process, which releases their leases and ends their waits, writes
/// out the log, and refuses new work. Returns within [`CLOSING`]. For the exit of the process.
pub fn close_all() {
    let end = Instant::now() + CLOSING;
    CLOSED_IN.store(std::process::id(), Ordering::Release);
    let Some(runtime) = Runtime::existing() else { return };
    runtime.block_on(runtime.clients.close_all(CLOSING));
    // Threads that we cannot wake (a connect to a server that is silent) are not waited for long.
    while runtime.calls.load(Ordering::Acquire) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    runtime.log.close(end.saturating_duration_since(Instant::now()));
}

/// Takes work again after [`close_all`]: for hosts that start anew in the same process.
pub fn reopen() {
    if CLOSED_IN.swap(0, Ordering::AcqRel) == std::process::id()
        && let Some(runtime) = Runtime::existing()
    {
        runtime.log.reopen();
    }
}
