//! The host: its language, its log, and the end of its process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

use fencelock_shared::{log, panic, runtime};

/// Who calls. It stands in the default metadata, and decides about a lease that nothing refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Language {
    /// Collects garbage at some time: the lease is kept, since the work may still run.
    Kotlin,
    /// Counts references: the lease is released with the last one.
    Swift,
}

impl Language {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Language::Kotlin => "kotlin",
            Language::Swift => "swift",
        }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, uniffi::Enum)]
pub enum Severity {
    /// Something that somebody should look at.
    Warning,
    /// A fault.
    Error,
}

/// Where warnings go.
#[uniffi::export(callback_interface)]
pub trait Logger: Send + Sync {
    /// Takes one line. Called on a thread of its own.
    fn log(&self, severity: Severity, message: String);
}

static LOGGER: OnceLock<Box<dyn Logger>> = OnceLock::new();
/// A call into a host that has ended would wait for ever.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Says where warnings go, and has leases released at the exit of the process. The first call counts.
#[uniffi::export]
pub fn prepare(logger: Box<dyn Logger>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = LOGGER.set(logger);
        log::install(hand_over);
        panic::log_panics();
        // SAFETY: the function stays where it is for as long as the process runs: the library is
        // linked so that it is never unloaded.
        unsafe { libc::atexit(release_at_exit) };
    });
}

fn hand_over(severity: log::Severity, message: &str) {
    let severity = match severity {
        log::Severity::Warning => Severity::Warning,
        log::Severity::Error => Severity::Error,
    };
    if let Some(logger) = LOGGER.get()
        && !is_ending()
    {
        logger.log(severity, message.to_owned());
    }
}

/// Whether the host is going away: nothing may call it any more.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Acquire)
}

/// Later than all shutdown hooks of a JVM, of which one may still want to unlock.
extern "C" fn release_at_exit() {
    ENDING.store(true, Ordering::Release);
    // Nobody is left who could be told of a panic.
    let _ = std::panic::catch_unwind(runtime::close_all);
}

/// The version of the library.
#[uniffi::export]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
