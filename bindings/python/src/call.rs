//! One operation of the core, not begun yet: Python either waits for it on a thread, or starts it
//! and hears of its end in an event loop.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencelock::{Error, ErrorKind, LockInfo, Result};
use fencelock_shared::{OpenClient, Runtime, panic, runtime};
use futures_util::FutureExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::client::Client;
use crate::completions::Completions;
use crate::errors::{Failure, exception};
use crate::lease::Lease;

/// How long the main thread waits before it looks for signals: Ctrl-C must work within 0.5 s.
const SLICE: Duration = Duration::from_millis(50);

type Work = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

/// Completes when a signal handler raised while the call was waited for.
pub(crate) type Interrupted = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What an operation gives. Made into Python objects only where the GIL is held: the runtime's
/// thread never waits for it, or a busy interpreter would stop renewals.
pub(crate) enum Value {
    Nothing,
    Flag(bool),
    Client(Arc<OpenClient>),
    Lease(Arc<OpenClient>, fencelock::Lease),
    Info(LockInfo),
    Infos(Vec<LockInfo>),
}

impl Value {
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Value::Nothing => py.None(),
            Value::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any().unbind(),
            Value::Client(client) => Py::new(py, Client::new(client))?.into_any(),
            Value::Lease(client, lease) => Py::new(py, Lease::new(client, lease))?.into_any(),
            Value::Info(info) => info_tuple(py, info)?.into_any().unbind(),
            Value::Infos(infos) => infos
                .into_iter()
                .map(|info| info_tuple(py, info))
                .collect::<PyResult<Vec<_>>>()?
                .into_pyobject(py)?
                .unbind(),
        })
    }
}

/// The fields of `LockInfo` in the order of the Python class.
fn info_tuple<'py>(py: Python<'py>, info: LockInfo) -> PyResult<Bound<'py, PyTuple>> {
    let millis = |duration: Duration| duration.as_millis() as u64;
    let queue: Vec<_> = info
        .queue
        .into_iter()
        .map(|waiter| (waiter.owner, millis(waiter.waiting), waiter.metadata))
        .collect();
    (
        info.name,
        info.state.as_str(),
        info.owner,
        info.token.map(|token| token.get()),
        info.held.map(millis),
        info.ttl_left.map(millis),
        info.metadata,
        queue,
    )
        .into_pyobject(py)
}

/// One operation; see the module.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Call {
    work: Mutex<Option<Work>>,
    started: Mutex<Option<AbortHandle>>,
    interrupt: Arc<Notify>,
}

impl Call {
    pub(crate) fn new(work: impl Future<Output = Result<Value>> + Send + 'static) -> Self {
        Self::interruptible(|_| work)
    }

    /// An operation that ends by itself, soon, when the future that it is given completes.
    pub(crate) fn interruptible<F>(work: impl FnOnce(Interrupted) -> F) -> Self
    where
        F: Future<Output = Result<Value>> + Send + 'static,
    {
        let interrupt = Arc::new(Notify::new());
        let waiting = interrupt.clone();
        let work = work(Box::pin(async move { waiting.notified().await }));
        let work: Work = Box::pin(panic::catch_async(work));
        Call { work: Mutex::new(Some(work)), started: Mutex::new(None), interrupt }
    }

    fn take(&self) -> Result<Work> {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.ok_or_else(|| Error::new(ErrorKind::Internal, "a call can be made only once"))
    }
}

#[pymethods]
impl Call {
    /// Makes the call on this thread, without the GIL. A signal handler that raises ends it.
    fn wait(&self, py: Python<'_>) -> Result<Py<PyAny>, Failure> {
        let mut work = self.take()?;
        let runtime = match Runtime::current() {
            Ok(runtime) => runtime,
            // The process is ending: only what needs no waiting still has an answer, such as the
            // release of a lease that has been released.
            Err(closed) => {
                let now = async { work.now_or_never() };
                let outcome = Runtime::existing().and_then(|runtime| runtime.block_on(now));
                return finish(py, outcome.unwrap_or(Err(closed)));
            }
        };
        let call = runtime.enter();
        let sliced = async { timeout(SLICE, &mut work).await };
        let mut outcome = py.detach(|| runtime.block_on(sliced)).ok();
        if outcome.is_none() && !is_main_thread(py)? {
            outcome = Some(py.detach(|| runtime.block_on(&mut work)));
        }
        loop {
            if let Some(outcome) = outcome {
                drop(call);
                return finish(py, outcome);
            }
            if let Err(interrupt) = py.check_signals() {
                // An acquire withdraws, which it waits for a little; all else is dropped.
                self.interrupt.notify_one();
                let ended = async move { timeout(SLICE + SLICE, work).await };
                drop(py.detach(|| runtime.block_on(ended)));
                return Err(interrupt.into());
            }
            let sliced = async { timeout(SLICE, &mut work).await };
            outcome = py.detach(|| runtime.block_on(sliced)).ok();
        }
    }

    /// Starts the call; its end is queued in `completions` under the number that this returns.
    fn start(&self, py: Python<'_>, completions: &Completions) -> Result<u64, Failure> {
        let work = self.take()?;
        let runtime = match Runtime::current() {
            Ok(runtime) => runtime,
            Err(closed) => return Err(told(py, closed)?.into()),
        };
        let (number, queue) = completions.expect();
        let task = runtime.spawn(async move { queue.push(number, work.await) });
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
        Ok(number)
    }

    /// Ends a started call, unless it has ended. An acquire is withdrawn; a release goes on.
    fn cancel(&self) {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = started {
            task.abort();
        }
    }
}

fn finish(py: Python<'_>, outcome: Result<Value>) -> Result<Py<PyAny>, Failure> {
    match outcome {
        Ok(value) => Ok(value.into_python(py)?),
        Err(error) => Err(told(py, error)?.into()),
    }
}

/// Gives the error back, except to a daemon thread of a process that is ending, which never comes
/// back from its call. So it is with all calls of such threads; and what closing the client means
/// for them would be printed by a program that has done nothing wrong.
pub(crate) fn told(py: Python<'_>, error: Error) -> PyResult<Error> {
    let ending = runtime::check_open().is_err();
    if ending
        && py.import("threading")?.call_method0("current_thread")?.getattr("daemon")?.is_truthy()?
    {
        py.detach(|| {
            loop {
                std::thread::park();
            }
        })
    }
    Ok(error)
}

/// Only the main thread runs signal handlers; the others need not wake up to look for them.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    threading.call_method0("get_ident")?.eq(main)
}

/// A pair for `Completions::drain`: value or exception.
pub(crate) fn outcome_pair(py: Python<'_>, outcome: Result<Value>) -> (Py<PyAny>, Py<PyAny>) {
    let value = match outcome {
        Ok(value) => value.into_python(py),
        Err(error) => Err(exception(py, &error)),
    };
    match value {
        Ok(value) => (value, py.None()),
        Err(error) => (py.None(), error.into_value(py).into_any()),
    }
}
