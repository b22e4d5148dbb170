//! What this library needs of the process: set up with the first client, taken down at its exit.

use std::sync::atomic::{AtomicBool, Ordering};

use fencelock_shared::{runtime, signals};

use crate::call::catch;

/// Makes the exit of the process release what is held.
pub(crate) fn prepare() {
    // Not a `Once`: a child that is forked while a thread is inside it would wait for ever. Twice
    // would do no harm.
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::AcqRel) {
        // SAFETY: the function neither panics nor unwinds, and the library is never unloaded
        // (`-z nodelete`). Without the handler, leases end with their ttl.
        let _ = unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    let _ = catch(|| {
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
