//! The end of the process releases what is held.
//!
//! Not in a shutdown hook: those run all at once, and another one may still want to unlock. The C
//! library's own exit comes after all of them, whether `main` returned, `System.exit` was called or
//! a signal came.

use fencelock_shared::runtime;

extern "C" fn close_all() {
    // Nobody is left who could be told of a panic.
    let _ = std::panic::catch_unwind(runtime::close_all);
}

pub(crate) fn release_at_exit() {
    // SAFETY: the function stays where it is for as long as the process runs: the library is
    // linked so that it is never unloaded.
    unsafe { libc::atexit(close_all) };
}
