//! `fencelock run NAME -- CMD…`.

mod child;
mod loss;
mod tree;

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
    options.words()?;
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
    // With the grant a signal may have come: there is no command yet that could get it.
    if let Some(signal) = signals.arrived().await.into_iter().find_map(Arrival::ends_us) {
        let _ = lease.release().await;
        return Ok(End::Signal(signal));
    }
    // This process may have been stopped between the grant and now.
    lease.check()?;
    let mut child = match Child::start(options.words()?, &lease) {
        Ok(child) => child,
        Err(failure) => {
            let _ = lease.release().await;
            return Err(failure);
        }
    };
    let status = match watch(&mut child, &lease, &mut signals).await? {
        Watched::Ended(status) => status,
        Watched::Lost => {
            let text = format!("lock {:?} is lost; stopping the command", options.name);
            let complaint = output::begin_to_complain(&text);
            loss::stop(&mut child, &mut signals, options.grace).await?;
            complaint.wait();
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
    // Until it was executed, the command was a copy of us, with our handlers: whoever sent these,
    // it has not heard them.
    for arrival in signals.arrived().await {
        pass_on(child, arrival.signal, false)?;
    }
    if let Some(status) = child.ended()? {
        return Ok(Watched::Ended(status));
    }
    loop {
        tokio::select! {
            biased;
            arrival = signals.next() => {
                let has_got = child.has_got(arrival);
                if let Some(status) = pass_on(child, arrival.signal, has_got)? {
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

/// One signal to the command, unless it has got it already; its exit status if it has ended.
fn pass_on(
    child: &mut Child,
    signal: Signal,
    has_got: bool,
) -> Result<Option<ExitStatus>, Failure> {
    match signal {
        Signal::CHILD => {}
        _ if has_got => {}
        Signal::TERM | Signal::INT | Signal::QUIT | Signal::TSTP | Signal::CONT => {
            child.tell_all(signal);
        }
        _ => child.tell(signal),
    }
    if signal == Signal::TSTP {
        child.stop_is_asked_for();
    }
    let status = child.ended()?;
    // A shell that has stopped its job waits for all of it.
    if child.has_stopped_as_asked() {
        stop();
    }
    Ok(status)
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
