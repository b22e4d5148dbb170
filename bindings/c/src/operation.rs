//! Acquiring without a thread that waits.

use std::ffi::c_void;
use std::ptr;

use fencelock::Result;
use fencelock_shared::handles::Handled;
use fencelock_shared::{Cancel, Runtime, codes, panic};

use crate::call::{call, catch, free, limit, missing};
use crate::errors::{self, FENCELOCK_OK, fencelock_code, fencelock_error};
use crate::lease::{Lease, fencelock_lease};
use crate::lock::fencelock_lock;
use crate::place::{self, Opaque, Place};

/// An acquire that was started. Made by fencelock_acquire_async(), freed by the caller with
/// fencelock_op_free(), before or after its end.
pub struct fencelock_op {
    _private: (),
}

impl Opaque for fencelock_op {
    type Value = Operation;
}

pub(crate) struct Operation(Cancel);

impl Handled for Operation {
    const WHAT: &'static str = "operation";
}

/// Receives the end of fencelock_acquire_async(). It runs exactly once, on a thread of the library,
/// possibly before fencelock_acquire_async() has returned, with all signals of the host blocked. It may
/// call the library, may block (other callbacks go on meanwhile), and must neither throw nor longjmp out.
///
/// @param code FENCELOCK_OK, or what fencelock_acquire() would have returned; FENCELOCK_CANCELLED
/// after fencelock_op_cancel().
/// @param lease The lease, from now on yours: free it with fencelock_lease_free(); NULL on failure.
/// @param err The error, from now on yours: free it with fencelock_error_free(); NULL on success.
/// @param user_data What was given to fencelock_acquire_async().
pub type fencelock_acquire_callback = Option<
    unsafe extern "C" fn(
        code: fencelock_code,
        lease: *mut fencelock_lease,
        err: *mut fencelock_error,
        user_data: *mut c_void,
    ),
>;

/// A function of the host and what belongs to it.
struct Callback {
    function: unsafe extern "C" fn(
        fencelock_code,
        *mut fencelock_lease,
        *mut fencelock_error,
        *mut c_void,
    ),
    user_data: *mut c_void,
}

// SAFETY: the header says that the function is called on another thread, and with this pointer,
// which is never followed here.
unsafe impl Send for Callback {}

impl Callback {
    fn run(self, outcome: Result<Lease>) {
        let (code, lease, err) = match outcome.and_then(place::give) {
            Ok(lease) => (FENCELOCK_OK, lease, ptr::null_mut()),
            Err(error) => (codes::number(error.kind()), ptr::null_mut(), errors::pointer(error)),
        };
        // SAFETY: the caller of `fencelock_acquire_async` gave a function of this type, which does
        // not unwind.
        unsafe { (self.function)(code, lease, err, self.user_data) }
    }
}

/// Starts waiting for the lock; the end is told to a function. Never blocks.
///
/// @param lock The lock; it may be freed before the end.
/// @param timeout_ms As in fencelock_acquire().
/// @param callback The function, see there. It runs exactly once if FENCELOCK_OK is returned here, and
/// never otherwise. If the process ends first, it may not run at all.
/// @param user_data Handed to it as it is.
/// @param[out] op The operation, to be freed with fencelock_op_free(); NULL on failure. NULL may be
/// given by a caller who will not cancel.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK = started. FENCELOCK_INVALID_ARGUMENT, FENCELOCK_FORKED; FENCELOCK_CLOSED when
/// the process is ending.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_acquire_async(
    lock: *mut fencelock_lock,
    timeout_ms: i64,
    callback: fencelock_acquire_callback,
    user_data: *mut c_void,
    op: *mut *mut fencelock_op,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on places for results.
    let (op, err) = unsafe { (Place::new(op), Place::new(err)) };
    call(err, || {
        op.put(ptr::null_mut());
        let lock = place::get(lock.cast_const())?;
        let limit = limit(timeout_ms)?;
        let function = callback.ok_or_else(|| missing("callback"))?;
        let callback = Callback { function, user_data };
        let runtime = Runtime::current()?;
        let cancel = Cancel::new();
        if op.is_given() {
            op.give(Operation(cancel.clone()))?;
        }
        drop(runtime.spawn(async move {
            let outcome = panic::catch_async(lock.acquire(limit, &cancel)).await;
            drop(lock);
            // Not here: this thread moves bytes and renews leases, and must not wait for the host.
            runtime.call_host(move || {
                let _call = runtime.enter();
                callback.run(outcome);
            });
        }));
        Ok(())
    })
}

/// Ends an acquire that was started: it withdraws and leaves nothing behind. The callback still runs,
/// with FENCELOCK_CANCELLED, or with the lease if that was obtained just before, so look at the code.
/// Never blocks. Again, or after the end, it has no effect.
///
/// @param op The operation.
/// @return FENCELOCK_OK; FENCELOCK_INVALID_ARGUMENT if it was freed; FENCELOCK_FORKED.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_op_cancel(op: *mut fencelock_op) -> fencelock_code {
    let cancelled = catch(|| {
        place::get(op.cast_const())?.0.cancel();
        Ok(())
    });
    cancelled.map_or_else(|error| codes::number(error.kind()), |()| FENCELOCK_OK)
}

/// Frees an operation, which goes on and calls its callback all the same. NULL is fine, and so is an
/// operation that was freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_op_free(op: *mut fencelock_op) {
    free(op);
}
