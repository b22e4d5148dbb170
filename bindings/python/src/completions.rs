//! The ends of calls, on their way into one event loop.
//!
//! The loop is woken through a socket of which it is a reader, not by `call_soon_threadsafe`: that
//! needs the GIL, and a thread of the runtime that waits for a busy interpreter renews nothing.

use std::io::{ErrorKind as Io, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fencelock::Result;
use fencelock_shared::runtime;
use pyo3::prelude::*;

use crate::call::{Value, outcome_pair};

/// The queue of one event loop.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Completions {
    queue: Arc<Queue>,
    bell: UnixStream,
    next: AtomicU64,
}

/// The part that calls under way refer to.
pub(crate) struct Queue {
    ended: Mutex<Vec<(u64, Result<Value>)>>,
    ring: UnixStream,
}

impl Queue {
    pub(crate) fn push(&self, number: u64, outcome: Result<Value>) {
        // A loop that still runs when the process ends is a daemon thread's: no exception there.
        if outcome.is_err() && runtime::check_open().is_err() {
            return;
        }
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push((number, outcome));
        let first = ended.len() == 1;
        drop(ended);
        if first {
            // It fails when the loop is gone, where nobody waits, or when the socket is full of
            // bytes that will wake the loop anyway.
            let _ = (&self.ring).write(&[0]);
        }
    }
}

impl Completions {
    /// The number of the next call, and where its end goes.
    pub(crate) fn expect(&self) -> (u64, Arc<Queue>) {
        (self.next.fetch_add(1, Ordering::Relaxed), self.queue.clone())
    }
}

#[pymethods]
impl Completions {
    #[new]
    fn new() -> PyResult<Self> {
        let (ring, bell) = UnixStream::pair()?;
        ring.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let queue = Arc::new(Queue { ended: Mutex::default(), ring });
        Ok(Completions { queue, bell, next: AtomicU64::new(1) })
    }

    /// The descriptor that is readable when `drain` has something.
    fn fileno(&self) -> i32 {
        self.bell.as_raw_fd()
    }

    /// The calls that have ended since the last time: number, value, exception (one is None).
    fn drain(&self, py: Python<'_>) -> Vec<(u64, Py<PyAny>, Py<PyAny>)> {
        // The bell first: what is queued after this rings again.
        let mut bytes = [0; 64];
        while match (&self.bell).read(&mut bytes) {
            Ok(count) => count == bytes.len(),
            Err(error) => error.kind() == Io::Interrupted,
        } {}
        let ended =
            std::mem::take(&mut *self.queue.ended.lock().unwrap_or_else(PoisonError::into_inner));
        ended
            .into_iter()
            .map(|(number, outcome)| {
                let (value, error) = outcome_pair(py, outcome);
                (number, value, error)
            })
            .collect()
    }
}
