//! Warnings of core, on their way to `process.emitWarning`.

use std::sync::{Mutex, PoisonError, Weak};

use fencelock_shared::log::Severity;

use crate::bridge::Queue;

/// The environments of this process, oldest first: the main thread, then workers.
static LISTENERS: Mutex<Vec<Weak<Queue>>> = Mutex::new(Vec::new());

pub(crate) fn listen(queue: Weak<Queue>) {
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    listeners.retain(|listener| listener.strong_count() > 0);
    listeners.push(queue);
}

/// Gives a warning to the oldest environment that takes it. Runs on the log's own thread.
pub(crate) fn hand_over(severity: Severity, message: &str) {
    let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let fault = severity == Severity::Error;
    for listener in listeners.iter().filter_map(Weak::upgrade) {
        if listener.warn(fault, message) {
            return;
        }
    }
}
