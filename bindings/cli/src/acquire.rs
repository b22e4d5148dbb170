//! Waiting for the lock, in the ways of flock(1).

use fencelock::{Client, ErrorKind, Lease, LockOptions};
use rustix::process::Signal;
use tokio::sync::oneshot;

use crate::exit::Failure;
use crate::options::Patience;
use crate::place;
use crate::signals::Signals;

/// What came of it.
pub(crate) enum Outcome {
    Held(Lease),
    /// Somebody else holds the lock.
    Busy,
    /// A signal came; nothing is left behind.
    Interrupted(Signal),
}

/// Connects, unless a signal comes.
pub(crate) async fn connect(
    url: &str,
    signals: &mut Signals,
) -> Result<Result<Client, Signal>, Failure> {
    tokio::select! {
        biased;
        signal = signals.next_end() => Ok(Err(signal)),
        client = place::connect(url) => client.map(Ok),
    }
}

pub(crate) async fn acquire(
    client: &Client,
    name: &str,
    options: LockOptions,
    patience: &Patience,
    signals: &mut Signals,
) -> Result<Outcome, Failure> {
    let lock = client.lock_with(name, options)?;
    let (told, mut interrupted) = oneshot::channel();
    let interruption = async {
        let _ = told.send(signals.next_end().await);
    };
    let acquired = lock.acquire_unless(patience.limit(), interruption).await;
    // A signal that came at the last moment counts too: the command is not started in vain.
    if let Ok(signal) = interrupted.try_recv() {
        if let Ok(lease) = acquired {
            let _ = lease.release().await;
        }
        return Ok(Outcome::Interrupted(signal));
    }
    match acquired {
        Ok(lease) => Ok(Outcome::Held(lease)),
        Err(error) if error.kind() == ErrorKind::Timeout => Ok(Outcome::Busy),
        Err(error) => Err(error.into()),
    }
}
