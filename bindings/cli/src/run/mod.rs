//! `fencelock run NAME -- CMD…`.

mod child;
mod loss;
mod reach;

use std::process::ExitStatus;

use fencelock::{Client, ErrorKind, Lease};
use rustix::process::Signal;

use crate::acquire::{Outcome, acquire, connect};
use crate::exit::{self, End, Failure};
use crate::options::Run;
use crate::output;
use crate::run::child::Child;
use crate::signals::{Arrival, Signals, stop};

pub(crate) async fn run(url: &str, options: Run) -> Result<End, Failure> {
    let mut signals = Signals::listen().map_err(|e| Failure::system("signals", e))?;
    let client = match connect(url, &mut signals).await? {
        Ok(client) => client,
        Err(signal) => return Ok(End::Signal(signal)),
    };
    let end = acquire_and_run(&client, &options, signals).await;
    client.close().await;
    end
}

async fn acquire_and_run(
    client: &Client,
    options: &Run,
    mut signals: Signals,
) -> Result<End, Failure> {
    let (lock, patience) = (options.lock_options(), &options.patience);
    let lease = match acquire(client, &options.name, lock, patience, &mut signals).await? {
        Outcome::Held(lease) => lease,
        // Without a word, as flock(1): the exit code says it.
        Outcome::Busy => return Ok(End::Code(patience.conflict_exit_code)),
        Outcome::Interrupted(signal) => return Ok(End::Signal(signal)),
    };
    // This process may have been stopped between the grant and now.
    lease.check()?;
    let mut child = match Child::start(&options.command, &lease) {
        Ok(child) => child,
        Err(failure) => {
            let _ = lease.release().await;
            return Err(failure);
        }
    };
    let status = match watch(&mut child, &lease, &mut signals).await? {
        Watched::Ended(status) => status,
        Watched::Lost => {
            output::complain(&format!("lock {:?} is lost; stopping the command", options.name));
            loss::stop(&mut child, &mut signals, options.grace).await?;
            return Ok(End::Code(exit::LOST));
        }
    };
    release(&lease, status).await
}

enum Watched {
    Ended(ExitStatus),
    Lost,
}

/// Passes signals on until the command ends or the lock is lost.
async fn watch(
    child: &mut Child,
    lease: &Lease,
    signals: &mut Signals,
) -> Result<Watched, Failure> {
    loop {
        tokio::select! {
            biased;
            arrival = signals.next() => {
                if let Some(status) = pass_on(child, arrival)? {
                    return Ok(Watched::Ended(status));
                }
            }
            // It may have ended before; this process may have been stopped meanwhile.
            () = lease.lost() => {
                return Ok(child.ended()?.map_or(Watched::Lost, Watched::Ended));
            }
        }
    }
}

/// One signal to the command; its exit status if that is what the signal was about.
fn pass_on(child: &mut Child, arrival: Arrival) -> Result<Option<ExitStatus>, Failure> {
    let Arrival { signal, sender } = arrival;
    if signal == Signal::CHILD {
        return child.ended();
    }
    // A terminal has told the command itself, and so has a command that signals its whole group.
    if !(sender.is_none() && child.shares_our_group()) && sender != Some(child.pid()) {
        match signal {
            Signal::TERM | Signal::INT | Signal::QUIT => child.tell_all(signal),
            _ => child.tell(signal),
        }
    }
    if signal == Signal::TSTP {
        stop();
    }
    Ok(None)
}

async fn release(lease: &Lease, status: ExitStatus) -> Result<End, Failure> {
    let end = end_of(status);
    match lease.release().await {
        Ok(()) => Ok(end),
        Err(error) if error.kind() == ErrorKind::Lost => {
            output::complain(&error.to_string());
            let succeeded = end == End::Code(exit::SUCCESS);
            Ok(if succeeded { End::Code(exit::LOST_AT_THE_END) } else { end })
        }
        // It was ours to the end, and ends with its ttl.
        Err(error) => {
            output::complain(&error.to_string());
            Ok(end)
        }
    }
}

fn end_of(status: ExitStatus) -> End {
    use std::os::unix::process::ExitStatusExt;

    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(u8::try_from(code).unwrap_or(u8::MAX)),
        // A script that waits for us goes on after a Ctrl-C unless it sees that we died of it.
        (None, Some(signal)) if signal == Signal::INT.as_raw() => End::Signal(Signal::INT),
        (None, signal) => End::Code(exit::of_signal(signal.unwrap_or_default())),
    }
}
