//! What every function of the library does around its work: no panic crosses, and an error becomes
//! a code and an object.

use std::future::Future;

use fencelock::{Error, ErrorKind, Result};
use fencelock_shared::{Runtime, codes, panic};
use futures_util::FutureExt;

use crate::errors::{self, FENCELOCK_OK, fencelock_code, fencelock_error};
use crate::place::{self, Opaque, Place};

/// Does the work; an error goes to `err` if the caller wants it.
pub(crate) fn call(
    err: Place<*mut fencelock_error>,
    work: impl FnOnce() -> Result<()>,
) -> fencelock_code {
    err.put(std::ptr::null_mut());
    match panic::catch(work) {
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
    panic::catch(work).unwrap_or(otherwise)
}

/// Frees what a pointer stands for. NULL, a pointer that was freed and one of the parent's in a
/// forked child are left alone.
pub(crate) fn free<T: Opaque>(pointer: *const T) {
    let taken = panic::catch(|| place::take(pointer));
    // Its drop is code too.
    let _ = panic::catch(|| taken.map(drop));
}

/// Waits for work on the thread of the caller.
pub(crate) fn wait<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match Runtime::current() {
        Ok(runtime) => {
            let _call = runtime.enter();
            runtime.block_on(work)
        }
        // The process is ending: only what needs no waiting still has an answer, such as the
        // release of a lease that has been released.
        Err(closed) => {
            let now = async { work.now_or_never() };
            Runtime::existing().and_then(|runtime| runtime.block_on(now)).unwrap_or(Err(closed))
        }
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
