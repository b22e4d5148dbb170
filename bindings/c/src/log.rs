//! Warnings on their way to a function of the host.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use fencelock_shared::exit;
use fencelock_shared::log::{self, Severity};

use crate::call::value;
use crate::text;

/// Something that an operator may want to know: a lease that was lost, a release without answer.
pub const FENCELOCK_LOG_WARNING: i32 = 1;
/// A fault of this library.
pub const FENCELOCK_LOG_ERROR: i32 = 2;

/// Receives one line of the log. It runs on a thread of the library that does nothing else, may
/// block and may call the library, and must neither throw nor longjmp out.
///
/// @param level FENCELOCK_LOG_WARNING or FENCELOCK_LOG_ERROR.
/// @param message One line of UTF-8 without line break, valid during the call.
/// @param user_data What was given to fencelock_set_log().
pub type fencelock_log_callback =
    Option<unsafe extern "C" fn(level: i32, message: *const c_char, user_data: *mut c_void)>;

struct Target {
    callback: fencelock_log_callback,
    user_data: *mut c_void,
    /// Targets are never freed: the log's thread may be using one. This keeps them reachable, so
    /// that no tool takes them for a leak.
    _before: *mut Target,
}

static TARGET: AtomicPtr<Target> = AtomicPtr::new(ptr::null_mut());

/// Sends warnings of the library to a function of yours: lost leases, releases without an answer,
/// faults. Without one they are dropped. It is the same function for all clients of the process; a
/// later call replaces it, and the earlier function may still be running when that call returns.
///
/// @param callback The function; NULL = none.
/// @param user_data Handed to it as it is; has to stay valid until the process ends.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_set_log(callback: fencelock_log_callback, user_data: *mut c_void) {
    value((), || {
        exit::release_at_exit();
        let before = TARGET.load(Ordering::Acquire);
        let target = Box::new(Target { callback, user_data, _before: before });
        TARGET.store(Box::into_raw(target), Ordering::Release);
        log::install(to_host);
        Ok(())
    });
}

fn to_host(severity: Severity, message: &str) {
    // SAFETY: what is in `TARGET` came from a box that is never freed.
    let Some(target) = (unsafe { TARGET.load(Ordering::Acquire).as_ref() }) else { return };
    let Some(callback) = target.callback else { return };
    let level = match severity {
        Severity::Warning => FENCELOCK_LOG_WARNING,
        Severity::Error => FENCELOCK_LOG_ERROR,
    };
    let message = text::owned(&message.replace('\n', " "));
    // SAFETY: the caller of `fencelock_set_log` gave a function of this type, which does not
    // unwind, with what belongs to it.
    unsafe { callback(level, message.as_ptr(), target.user_data) }
}
