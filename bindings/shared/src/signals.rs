//! The signals of a process belong to its host: threads of ours must take none of them. A host that
//! blocks a signal in its own threads, to read it by `sigwait` or `signalfd`, would be ended by it; and a
//! write to a connection that broke would raise SIGPIPE in a host that does not ignore it.

use std::mem::MaybeUninit;

/// Those that a thread brings on itself, or that a profiler sends to each thread.
const OURS: [libc::c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGPROF,
];

/// Blocks the host's signals in this thread, and in those that it starts, for good.
pub fn block() {
    let _ = Blocked::here();
}

/// The mask that this thread had before.
pub(crate) struct Blocked(libc::sigset_t);

impl Blocked {
    pub(crate) fn here() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets are filled before they are read, and only this thread's mask is changed.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for signal in OURS {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
            libc::sigemptyset(before.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            Blocked(before.assume_init())
        }
    }

    /// As it was before.
    pub(crate) fn undo(self) {
        // SAFETY: the set was filled by the system, and only this thread's mask is changed.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(signal: libc::c_int) -> bool {
        let mut now = MaybeUninit::uninit();
        // SAFETY: without a new set, this only fills the other one.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), now.as_mut_ptr());
            libc::sigismember(now.as_ptr(), signal) == 1
        }
    }

    #[test]
    fn threads_of_the_runtime_take_no_signals_of_the_host() {
        let runtime = crate::Runtime::current().expect("a runtime");
        assert!(!blocked(libc::SIGTERM), "the caller's thread is left as it was");
        let (tell, told) = std::sync::mpsc::channel();
        let worker = tell.clone();
        drop(runtime.spawn(async move {
            worker.send(blocked(libc::SIGTERM) && blocked(libc::SIGPIPE)).expect("somebody hears");
        }));
        runtime.call_host(move || {
            tell.send(blocked(libc::SIGTERM) && !blocked(libc::SIGSEGV)).expect("somebody hears");
        });
        assert_eq!(told.iter().take(2).collect::<Vec<_>>(), [true, true]);
    }
}
