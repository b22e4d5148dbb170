//! Processes that stand still.

use std::process::Child;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// SIGSTOP to a child, until it has effect: on a busy machine, a server could answer in between.
pub(crate) fn freeze(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::STOP).unwrap();
    // Exited, so that one that dies is not waited for; it is left to be reaped.
    let change = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), change).unwrap();
}
