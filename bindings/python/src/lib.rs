//! The native module of the Python package: it translates types, errors and cancellation between
//! Python and the core, and decides nothing. The public, typed classes are Python (`python/`).

mod call;
mod client;
mod completions;
mod convert;
mod errors;
mod lease;
mod lock;

use fencelock::ErrorKind;
use fencelock_shared::log::Severity;
use fencelock_shared::{log, panic, runtime};
use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::call::Call;
    #[pymodule_export]
    use super::client::Client;
    #[pymodule_export]
    use super::completions::Completions;
    #[pymodule_export]
    use super::lease::{Lease, Watch};
    #[pymodule_export]
    use super::lock::Lock;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        log::install(to_logging);
        panic::log_panics();
        runtime::reopen();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Releases all leases, ends all waits and refuses new work: what the exit of the process does.
    #[pyfunction]
    fn close_all(py: Python<'_>) {
        py.detach(runtime::close_all);
    }

    /// The codes of all kinds of errors, so that a test can compare them with the classes.
    #[pyfunction]
    fn error_codes() -> Vec<&'static str> {
        ErrorKind::ALL.iter().map(|kind| kind.code()).collect()
    }

    /// A call that panics, for the test that this ends as an error.
    #[pyfunction]
    fn panic_for_test() -> Call {
        Call::new(async { panic!("asked for by a test") })
    }
}

/// Runs on the log's own thread, which may wait for the GIL.
fn to_logging(severity: Severity, message: &str) {
    let level = match severity {
        Severity::Warning => 30,
        Severity::Error => 40,
    };
    // Not `attach`: the interpreter may be going away.
    Python::try_attach(|py| {
        let logged = py
            .import("logging")
            .and_then(|logging| logging.call_method1("getLogger", ("fencelock",)))
            .and_then(|logger| logger.call_method1("log", (level, "%s", message)));
        if let Err(error) = logged {
            error.write_unraisable(py, None);
        }
    });
}
