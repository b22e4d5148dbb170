//! One operation of the core, on the runtime that all bindings share.

use std::future::Future;

use fencelock::{Error, ErrorKind, Result};
use fencelock_shared::{Runtime, panic};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::error::FencelockError;
use crate::host;

/// Runs the work on the runtime, for as long as somebody waits for it: who drops this future drops the
/// work, as the core wants it of a wait that is cancelled.
///
/// The host is woken on a thread of its own. A coroutine may go on right there, for as long as it
/// likes, and the runtime's thread has leases to renew.
pub(crate) async fn run<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> std::result::Result<T, FencelockError> {
    let mut task = begin(work)?;
    task.end().await
}

/// [`run`], whose work goes on to its end when nobody waits any more: clean-up.
pub(crate) async fn run_to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> std::result::Result<T, FencelockError> {
    let mut task = begin(work)?;
    task.work = None;
    task.end().await
}

fn begin<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<Task<T>> {
    let runtime = Runtime::current()?;
    let (sender, outcome) = oneshot::channel();
    let work = runtime.spawn(async move {
        let outcome = panic::catch_async(work).await;
        runtime.call_host(move || match host::is_ending() {
            // Even a sender that is dropped wakes the host.
            true => std::mem::forget(sender),
            false => drop(sender.send(outcome)),
        });
    });
    Ok(Task { work: Some(work), outcome })
}

struct Task<T> {
    work: Option<JoinHandle<()>>,
    outcome: oneshot::Receiver<Result<T>>,
}

impl<T> Task<T> {
    async fn end(&mut self) -> std::result::Result<T, FencelockError> {
        let ended = |_| Err(Error::new(ErrorKind::Closed, "the process is ending"));
        Ok((&mut self.outcome).await.unwrap_or_else(ended)?)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Some(work) = &self.work {
            work.abort();
        }
    }
}
