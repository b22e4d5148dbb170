//! The exit of the process releases what is held: for hosts that have no moment of their own for that
//! which comes after all others.
//!
//! A JVM's shutdown hooks run all at once, and another one may still want to unlock. The C library's own
//! exit comes after them, whether `main` returned, `exit` was called or a signal came.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{panic, runtime, signals};

/// Makes the exit of the process call [`runtime::close_all`]; once, however often it is called.
///
/// A library that calls this must never be unloaded (linked with `-z nodelete`).
pub fn release_at_exit() {
    // Not a `Once`: a child that is forked while a thread is inside it would wait for ever. Twice
    // would do no harm.
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::AcqRel) {
        // SAFETY: the function neither panics nor unwinds, and stays where it is for as long as the
        // process runs. Without the handler, leases end with their ttl.
        let _ = unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    // Nobody is left who could be told of a panic, nor is its text for the host's standard error.
    panic::log_panics();
    let _ = panic::catch(|| {
        // On a thread of its own: this one has no thread-locals any more, which the runtime needs.
        let closing = || {
            signals::block();
            runtime::close_all();
        };
        if let Ok(closing) = std::thread::Builder::new().spawn(closing) {
            let _ = closing.join();
        }
        Ok(())
    });
}
