//! The signals that this process gets, in order, each with where it came from.

use std::io;
use std::mem::MaybeUninit;
use std::thread;

use rustix::process::{Signal, getpid, kill_process};
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
            unblock_child();
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

    /// All that have come until now.
    pub(crate) async fn arrived(&mut self) -> Vec<Arrival> {
        // Whatever is on its way is here when this one is. If another CHLD is under way too, they
        // arrive as one.
        let _ = kill_process(getpid(), Signal::CHILD);
        let mut arrived = Vec::new();
        loop {
            let arrival = self.next().await;
            arrived.push(arrival);
            if arrival.signal == Signal::CHILD {
                return arrived;
            }
        }
    }

    /// The next one that is to end this process, while there is no command that could get it.
    /// Cancel-safe.
    pub(crate) async fn next_end(&mut self) -> Signal {
        loop {
            if let Some(signal) = self.next().await.ends_us() {
                return signal;
            }
        }
    }
}

impl Arrival {
    /// What is done about it while there is no command: the signal if it is to end this process.
    pub(crate) fn ends_us(self) -> Option<Signal> {
        match self.signal {
            Signal::TSTP => stop(),
            Signal::CONT | Signal::WINCH | Signal::CHILD => {}
            signal => return Some(signal),
        }
        None
    }

    fn of(origin: &Origin) -> Option<Self> {
        let signal = Signal::from_named_raw(origin.signal)?;
        let sender = match origin.cause {
            Cause::Kernel => None,
            _ => origin.process.map(|process| process.pid),
        };
        Some(Arrival { signal, sender })
    }
}

/// Does what TSTP does to a process that has no handler for it: stops this one until somebody
/// continues it, but not where no shell is there to do that. The system knows.
pub(crate) fn stop() {
    let mut ours = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: `ours` has room for the present action, which is put back; zeroes are the default
    // action. The signal goes to this thread, so that its effect comes before the call returns.
    unsafe {
        let default = MaybeUninit::<libc::sigaction>::zeroed();
        if libc::sigaction(libc::SIGTSTP, default.as_ptr(), ours.as_mut_ptr()) == 0 {
            libc::raise(libc::SIGTSTP);
            libc::sigaction(libc::SIGTSTP, ours.as_ptr(), std::ptr::null_mut());
        }
    }
}

/// For this thread: who started us may have blocked CHLD, and a command's end would not be heard of.
fn unblock_child() {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is made before it is used, and there is no old one to be written.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
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
