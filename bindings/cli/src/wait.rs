//! `fencelock wait NAME`: takes its turn and gives the lock back at once.
//!
//! Watching instead would have no end where others take turns without a break, and its answer would
//! be out of date when it arrives. "All who came before are done" stays true.

use std::time::Instant;

use fencelock::{Client, LockOptions};
use fencelock_shared::duration::to_millis;
use serde::Serialize;

use crate::acquire::{Outcome, acquire, connect};
use crate::exit::{End, Failure, SUCCESS};
use crate::options::Wait;
use crate::output;
use crate::signals::Signals;

#[derive(Serialize)]
struct Waited<'a> {
    name: &'a str,
    /// "free", or "held" when the time was over.
    state: &'static str,
    waited_ms: i64,
}

pub(crate) async fn wait(url: &str, options: &Wait) -> Result<End, Failure> {
    let mut signals = Signals::listen().map_err(|e| Failure::system("signals", e))?;
    let client = match connect(url, &mut signals).await? {
        Ok(client) => client,
        Err(signal) => return Ok(End::Signal(signal)),
    };
    let end = take_turn(&client, options, signals).await;
    client.close().await;
    end
}

async fn take_turn(client: &Client, options: &Wait, mut signals: Signals) -> Result<End, Failure> {
    let (name, patience) = (&options.name, &options.patience);
    let started = Instant::now();
    let (state, code) =
        match acquire(client, name, LockOptions::new(), patience, &mut signals).await? {
            Outcome::Held(lease) => {
                lease.release().await?;
                ("free", SUCCESS)
            }
            Outcome::Busy => ("held", patience.conflict_exit_code),
            Outcome::Interrupted(signal) => return Ok(End::Signal(signal)),
        };
    if options.form.json {
        output::json(&Waited { name, state, waited_ms: to_millis(started.elapsed()) })?;
    }
    Ok(End::Code(code))
}
