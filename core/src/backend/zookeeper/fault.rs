//! What went wrong at the servers, and what that means to a caller.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// How a request ended without a result. Cheap to clone: many may wait for one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    NoNode,
    NodeExists,
    NoAuth,
    /// The parent is an ephemeral node, which can have no children.
    EphemeralParent,
    /// The request may have been carried out, or not.
    ReplyLost,
    /// The session has ended, or this client was closed.
    Ended,
    /// The servers refused the credentials.
    AuthFailed,
    /// The server is too old for this request.
    Unimplemented,
    /// No server could be reached, or none made a session.
    Unreachable(String),
    /// A client in a child of a process that had one.
    Forked,
    /// The node that the URL names as chroot is not there.
    NoChroot(String),
    /// Something of the caller's own settings.
    Invalid(String),
    /// The server cannot serve this now.
    Busy(String),
    Unexpected(String),
}

impl Fault {
    /// Whether a write that ended so went through the leader's log, as one that succeeded did.
    pub(super) fn is_answer_to_a_write(&self) -> bool {
        matches!(self, Fault::NoNode | Fault::NodeExists | Fault::NoAuth)
    }
}

/// The ensemble, as messages name it: without credentials.
#[derive(Clone, Debug)]
pub(super) struct Ensemble {
    name: String,
}

impl Ensemble {
    pub(super) fn new(hosts: &[String]) -> Self {
        Ensemble { name: format!("ZooKeeper at {}", hosts.join(",")) }
    }

    /// What the fault means, in one line.
    pub(super) fn explain(&self, fault: &Fault) -> Error {
        match fault {
            Fault::NoAuth => Error::new(
                ErrorKind::AuthFailed,
                format!(
                    "{self} refuses a right that locks need: READ, CREATE and DELETE on the lock's node, and CREATE where it must be made"
                ),
            ),
            Fault::AuthFailed => Error::new(
                ErrorKind::AuthFailed,
                format!("{self} refused the credentials; check the user and password in the URL"),
            ),
            Fault::EphemeralParent => Error::new(
                ErrorKind::Conflict,
                format!("an ephemeral node of {self} stands where the lock's node should be"),
            ),
            Fault::Forked => Error::new(
                ErrorKind::Unsupported,
                "this process was forked from one that had a ZooKeeper client, whose threads do not exist here; start the process anew (exec), or connect only after forking",
            ),
            Fault::NoChroot(path) => Error::invalid(format!(
                "{self} has no node {path}, which the URL names as chroot; create it first"
            )),
            Fault::Invalid(what) => Error::invalid(what.clone()),
            Fault::ReplyLost => Error::unavailable(format!("{self} closed the connection")),
            Fault::Ended => Error::unavailable(format!("the session at {self} has ended")),
            Fault::Unreachable(why) => {
                Error::unavailable(format!("{self} cannot be reached: {why}"))
            }
            Fault::Busy(why) => Error::unavailable(format!("{self}: {why}")),
            Fault::NoNode | Fault::NodeExists => Error::unavailable(format!(
                "the nodes of {self} changed all the time while the lock's node was made"
            )),
            Fault::Unimplemented => Error::new(
                ErrorKind::Unsupported,
                format!("{self} is too old; 3.5 or later is needed"),
            ),
            Fault::Unexpected(what) => {
                Error::new(ErrorKind::Internal, format!("{self} gave an unexpected answer: {what}"))
            }
        }
    }
}

impl fmt::Display for Ensemble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g8_only_what_passed_the_leaders_log_counts_as_an_answered_write() {
        for fault in [Fault::NoNode, Fault::NodeExists, Fault::NoAuth] {
            assert!(fault.is_answer_to_a_write());
        }
        for fault in [Fault::ReplyLost, Fault::Ended, Fault::AuthFailed, Fault::Unimplemented] {
            assert!(!fault.is_answer_to_a_write());
        }
    }
}
