//! The signals that this process gets, in order, each with where it came from.

use std::io;
use std::mem::MaybeUninit;
use std::thread;

use rustix::process::Signal;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Besides CHLD. The default of all but the last three is to end the process.
const TAKEN: [Signal; 10] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::WINCH,
    Signal::TSTP,
    Signal::CONT,
];

/// One signal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) signal: Signal,
    /// The process that sent it; none if the kernel did, for a terminal above all.
    pub(crate) sender: Option<i32>,
}

/// All signals of this process from now on.
pub(crate) struct Signals(UnboundedReceiver<Arrival>);

impl Signals {
    /// Those that are ignored stay so, here and in what is started: nohup(1) and the background
    /// jobs of a script rely on it.
    pub(crate) fn listen() -> io::Result<Self> {
        let taken = TAKEN.iter().map(|signal| signal.as_raw()).filter(|&raw| !is_ignored(raw));
        // CHLD even if it was ignored, which would take the child's exit code away.
        let taken = taken.chain([Signal::CHILD.as_raw()]);
        let mut signals = SignalsInfo::<WithOrigin>::new(taken)?;
        let (sender, receiver) = unbounded_channel();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for origin in signals.forever() {
                if let Some(arrival) = Arrival::of(&origin)
                    && sender.send(arrival).is_err()
                {
                    return;
                }
            }
        })?;
        Ok(Signals(receiver))
    }

    /// The next one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Arrival {
        match self.0.recv().await {
            Some(arrival) => arrival,
            None => std::future::pending().await,
        }
    }

    /// The next one that is to end this process, while there is no command that could get it.
    /// Cancel-safe.
    pub(crate) async fn next_end(&mut self) -> Signal {
        loop {
            match self.next().await.signal {
                Signal::TSTP => stop(),
                Signal::CONT | Signal::WINCH | Signal::CHILD => {}
                signal => return signal,
            }
        }
    }
}

impl Arrival {
    fn of(origin: &Origin) -> Option<Self> {
        let signal = Signal::from_named_raw(origin.signal)?;
        let sender = match origin.cause {
            Cause::Kernel => None,
            _ => origin.process.map(|process| process.pid),
        };
        Some(Arrival { signal, sender })
    }
}

/// Stops this process until somebody continues it.
pub(crate) fn stop() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the present action and changes nothing; `action` has room for it, and zeroes
    // are a valid one where the call fails.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
