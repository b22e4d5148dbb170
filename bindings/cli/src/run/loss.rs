//! The end of a command whose lock is lost: TERM, and KILL for what is left after the grace.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until};

use super::child::Child;
use super::pass_on;
use crate::exit::Failure;
use crate::signals::Signals;

/// How often is looked whether all that the command started has ended: nothing tells.
const LOOK: Duration = Duration::from_millis(20);

pub(super) async fn stop(
    child: &mut Child,
    signals: &mut Signals,
    grace: Duration,
) -> Result<(), Failure> {
    // Before TERM: what loses its parent by it is not found afterwards.
    let started = child.started();
    for signal in [Signal::TERM, Signal::CONT] {
        child.tell_with(&started, signal);
    }
    let kill_at = Instant::now().checked_add(grace);
    let mut killed = false;
    loop {
        if child.ended()?.is_some() && (killed || started.has_ended()) {
            return Ok(());
        }
        let kill = async {
            match kill_at {
                Some(at) if !killed => sleep_until(at).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = kill => {
                child.tell_with(&started, Signal::KILL);
                child.tell_all(Signal::KILL);
                killed = true;
            }
            arrival = signals.next() => drop(pass_on(child, arrival)?),
            () = sleep(LOOK) => {}
        }
    }
}
