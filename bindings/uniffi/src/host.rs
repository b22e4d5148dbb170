//! The host: its language, its log, and the end of its process.

use std::sync::{Once, OnceLock};

use fencelock_shared::{exit, log, panic, runtime};

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

/// Says where warnings go, and has leases released at the exit of the process. The first call counts.
#[uniffi::export]
pub fn prepare(logger: Box<dyn Logger>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = LOGGER.set(logger);
        log::install(hand_over);
        panic::log_panics();
        exit::release_at_exit();
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

/// Whether the host is going away. A call into one that has ended would wait for ever.
pub(crate) fn is_ending() -> bool {
    runtime::check_open().is_err()
}

/// The version of the library.
#[uniffi::export]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
