//! What every function of the library does around its work: no panic crosses, and an error becomes
//! a code and an object.

use std::future::Future;

use fencelock::{Error, ErrorKind, Result};
use fencelock_shared::{Runtime, codes, panic};
use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::errors::{self, FENCELOCK_OK, fencelock_code, fencelock_error};
use crate::place::{self, Opaque, Place};

/// Does the work; an error goes to `err` if the caller wants it.
pub(crate) fn call(
    err: Place<*mut fencelock_error>,
    work: impl FnOnce() -> Result<()>,
) -> fencelock_code {
    err.put(std::ptr::null_mut());
    match catch(work) {
        Ok(()) => FENCELOCK_OK,
        Err(error) => fail(&err, error),
    }
}

pub(crate) fn fail(err: &Place<*mut fencelock_error>, error: Error) -> fencelock_code {
    let code = codes::number(error.kind());
    // An object that nobody would free is not made.
    if err.is_given() {
        err.put(errors::pointer(error));
    }
    code
}

/// A value that needs no error: `otherwise` stands for what cannot be told.
pub(crate) fn value<T>(otherwise: T, work: impl FnOnce() -> Result<T>) -> T {
    catch(work).unwrap_or(otherwise)
}

/// No panic crosses, nor does its message go to the host's standard error.
pub(crate) fn catch<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::log_panics();
    panic::catch(work)
}

/// Frees what a pointer stands for. NULL, a pointer that was freed and one of the parent's in a
/// forked child are left alone.
pub(crate) fn free<T: Opaque>(pointer: *const T) {
    // The drop is code of ours too.
    let _ = catch(|| place::take(pointer).map(drop));
}

/// Waits for work on the thread of the caller.
pub(crate) fn wait<T: Send>(work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let closed = match Runtime::current() {
        Ok(runtime) => {
            let _call = runtime.enter();
            return block_on(runtime, work);
        }
        Err(closed) => closed,
    };
    // The process is ending: only what needs no waiting still has an answer, such as the release of
    // a lease that has been released.
    let now = async { work.now_or_never() };
    Runtime::existing().and_then(|runtime| block_on(runtime, now)).unwrap_or(Err(closed))
}

/// Waits for work that is done on the runtime's thread.
pub(crate) fn wait_for_ours<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let (tell, told) = oneshot::channel();
    drop(Runtime::current()?.spawn(async move {
        let _ = tell.send(panic::catch_async(work).await);
    }));
    wait(async { told.await.unwrap_or_else(|_| Err(missing_end())) })
}

fn missing_end() -> Error {
    Error::new(ErrorKind::Internal, "the work has ended without a result")
}

/// A handler of the host's that `exit` runs finds its thread without thread-locals, which the
/// runtime needs: then another thread does the work.
fn block_on<F: Future<Output: Send> + Send>(runtime: &Runtime, work: F) -> F::Output {
    match Handle::try_current() {
        Err(error) if error.is_thread_local_destroyed() => std::thread::scope(|scope| {
            let waiting = scope.spawn(|| runtime.block_on(work));
            waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }),
        _ => runtime.block_on(work),
    }
}

/// A time limit of the caller's; -1 = none.
pub(crate) fn limit(millis: i64) -> Result<Option<std::time::Duration>> {
    let allowed = "0 to 10 years, or -1 = for ever";
    let limit = match millis {
        -1 => None,
        _ => Some(fencelock_shared::duration::from_millis(millis, "timeout_ms", allowed)?),
    };
    fencelock::check_timeout(limit)?;
    Ok(limit)
}

/// An argument that must not be null.
pub(crate) fn missing(what: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("{what} is NULL"))
}
