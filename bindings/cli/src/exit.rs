//! Exit codes: all of them, and how this process ends.

use std::process::ExitCode;

use fencelock::{Error, ErrorKind};
use rustix::process::Signal;

pub(crate) const SUCCESS: u8 = 0;
/// Somebody else holds the lock; `-E` sets another one.
pub(crate) const CONFLICT: u8 = 1;
/// From here to `CONFIG` the codes are those of sysexits.h, as flock(1) uses them.
pub(crate) const USAGE: u8 = 64;
pub(crate) const NOT_A_LOCK: u8 = 65;
pub(crate) const UNAVAILABLE: u8 = 69;
pub(crate) const INTERNAL: u8 = 70;
pub(crate) const SYSTEM: u8 = 71;
pub(crate) const LOST: u8 = 75;
pub(crate) const LOST_AT_THE_END: u8 = 76;
pub(crate) const REFUSED: u8 = 77;
pub(crate) const UNSUPPORTED: u8 = 78;
/// These two as the shell, env(1), nohup(1) and timeout(1) have them.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;
const SIGNALLED: u8 = 128;

/// For `--help` and the manual. Codes of `run` alone come first.
pub(crate) const RUN_CODES: &[(&str, &str)] = &[
    ("0 to 255", "that of the command; 128 + n if signal n ended it"),
    ("75", "the lock was lost while the command ran, and the command was stopped"),
    ("76", "the command succeeded, but the lock turned out to be lost when it was to be released"),
    ("126", "the command was found but cannot be executed"),
    ("127", "the command was not found"),
];
pub(crate) const CODES: &[(&str, &str)] = &[
    (
        "1",
        "somebody else holds the lock: with -n, or after -w SECS (-E sets another code); break: nothing was broken",
    ),
    ("64", "an option, a name or the URL is not allowed"),
    ("65", "what stands at the place of the lock is not a lock; it was left untouched"),
    ("69", "the server does not answer, or cannot serve locks now"),
    ("70", "a fault of fencelock"),
    ("71", "the system refused something, such as a new process"),
    ("77", "the server refused the credentials, or they lack a right"),
    ("78", "a server, URL scheme or stored layout that this version cannot use"),
    ("128 + n", "signal n ended fencelock while it waited; nothing was left behind"),
];

/// How the process is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Code(u8),
    /// By this signal, so that a shell sees that its script was interrupted.
    Signal(Signal),
}

/// What went wrong, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }

    pub(crate) fn system(what: &str, error: impl std::fmt::Display) -> Self {
        Failure::new(SYSTEM, format!("{what}: {error}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { code: code_of(error.kind()), message: error.to_string() }
    }
}

/// A time-out is judged before this: its code is an option.
fn code_of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Timeout => CONFLICT,
        ErrorKind::Lost => LOST,
        ErrorKind::InvalidArgument => USAGE,
        ErrorKind::Unsupported => UNSUPPORTED,
        ErrorKind::Unavailable => UNAVAILABLE,
        ErrorKind::AuthFailed => REFUSED,
        ErrorKind::Conflict => NOT_A_LOCK,
        ErrorKind::Cancelled | ErrorKind::Closed | ErrorKind::Forked | ErrorKind::Internal => {
            INTERNAL
        }
        _ => INTERNAL,
    }
}

/// As a shell says it of a process that a signal ended.
pub(crate) fn of_signal(signal: i32) -> u8 {
    SIGNALLED.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX))
}

/// The last call.
pub(crate) fn leave(end: End) -> ExitCode {
    match end {
        End::Code(code) => ExitCode::from(code),
        End::Signal(signal) => {
            // The first process of a container cannot die of a signal. QUIT would leave a core.
            if signal != Signal::QUIT && std::process::id() != 1 {
                let _ = signal_hook::low_level::emulate_default_handler(signal.as_raw());
            }
            ExitCode::from(of_signal(signal.as_raw()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_a_code_and_each_is_documented() {
        for kind in ErrorKind::ALL {
            let code = code_of(*kind);
            let faults = ["CANCELLED", "CLOSED", "FORKED", "INTERNAL"];
            assert_eq!(code == INTERNAL, faults.contains(&kind.code()), "{kind}");
            let mut documented = RUN_CODES.iter().chain(CODES);
            assert!(documented.any(|(known, _)| *known == code.to_string()), "{kind}");
        }
    }

    #[test]
    fn no_code_of_ours_can_be_taken_for_a_signal_or_a_conflict() {
        let ours = [
            USAGE,
            NOT_A_LOCK,
            UNAVAILABLE,
            INTERNAL,
            SYSTEM,
            LOST,
            LOST_AT_THE_END,
            REFUSED,
            UNSUPPORTED,
            NOT_EXECUTABLE,
            NOT_FOUND,
        ];
        for (i, code) in ours.iter().enumerate() {
            assert!(*code > CONFLICT && *code < SIGNALLED && !ours[..i].contains(code), "{code}");
        }
        assert_eq!(of_signal(15), 143);
    }
}
