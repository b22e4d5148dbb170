//! No panic crosses into another language: it becomes an `Internal` error.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Once;

use fencelock::{Error, ErrorKind, Result};
use futures_util::FutureExt;

/// Runs `work`, a panic in it being an error.
pub fn catch<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // Unwind safety: nothing that a caught panic has touched is used again; the mutexes of core
    // and of this crate take no notice of poison.
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(error(&*panic)))
}

/// [`catch`] for a future.
pub async fn catch_async<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.unwrap_or_else(|panic| Err(error(&*panic)))
}

/// Sends panic messages to the log instead of the host's standard error. Each binding is a shared
/// library with a standard library of its own, so this concerns no Rust code but ours.
pub fn log_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| tracing::error!("a fault of fencelock: {panic}")));
    });
}

fn error(panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown");
    Error::new(ErrorKind::Internal, format!("a fault of fencelock, please report it: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_internal_error() {
        let error = catch::<()>(|| panic!("number {}", 7)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().ends_with("number 7"), "{error}");
        let work = async { panic!("later") };
        let error = futures_util::future::FutureExt::now_or_never(catch_async::<()>(work))
            .expect("ready")
            .unwrap_err();
        assert!(error.to_string().ends_with("later"), "{error}");
    }
}
