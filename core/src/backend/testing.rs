//! What the protocol tests of every backend say: what a look must be, and that something must come.

use std::future::Future;
use std::time::{Duration, Instant};

use super::{Look, Queued};
use crate::period::Term;
use crate::token::Token;

/// Long enough for anything but a hang on a busy machine.
pub(super) const PATIENCE: Duration = ms(60_000);

pub(super) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[track_caller]
pub(super) fn granted(look: Look) -> (Token, Term) {
    match look {
        Look::Granted(token, term) => (token, term),
        other => panic!("not granted: {other:?}"),
    }
}

#[track_caller]
pub(super) fn queued(look: Look) -> Queued {
    match look {
        Look::Queued(queued) => queued,
        other => panic!("not queued: {other:?}"),
    }
}

/// Waits for the future, and fails with `what` if it does not come.
pub(super) async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

/// Waits until the condition holds.
pub(super) async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let start = Instant::now();
    while !soon(what, condition()).await {
        assert!(start.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(ms(2)).await;
    }
}
