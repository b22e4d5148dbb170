//! The end of a command whose lock is lost: TERM, and KILL for what is left after the grace.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until};

use super::child::Child;
use super::pass_on;
use crate::exit::Failure;
use crate::output;
use crate::signals::Signals;

/// How often is looked whether all that the command started has ended: nothing tells.
const LOOK: Duration = Duration::from_millis(20);
/// For how long after KILL: what is left then is another user's, or stuck in the system.
const LAST: Duration = Duration::from_secs(1);

pub(super) async fn stop(
    child: &mut Child,
    signals: &mut Signals,
    grace: Duration,
) -> Result<(), Failure> {
    for signal in [Signal::TERM, Signal::CONT] {
        child.tell_all(signal);
    }
    let kill_at = Instant::now().checked_add(grace);
    let mut killed: Option<Instant> = None;
    let is_over = |killed: Option<Instant>| killed.is_some_and(|at| at.elapsed() > LAST);
    while !is_over(killed) && (child.ended()?.is_none() || child.has_left_something()) {
        let kill = async {
            match kill_at {
                Some(at) if killed.is_none() => sleep_until(at).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = kill => killed = Some(Instant::now()),
            arrival = signals.next() => {
                let has_got = child.has_got(arrival);
                pass_on(child, arrival.signal, has_got)?;
            }
            () = sleep(LOOK) => {}
        }
        // Again and again: what was just being started was not found before.
        if killed.is_some() {
            child.tell_all(Signal::KILL);
        }
    }
    if child.ended()?.is_none() {
        output::complain("the command goes on: it cannot be stopped from here");
    }
    Ok(())
}
