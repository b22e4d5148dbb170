//! The one error type, and the stable codes that every language shows.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::name::Name;

/// What went wrong, as a stable code that is the same in every language.
///
/// Codes are only ever added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The wait for the lock reached its time limit.
    Timeout,
    /// The lease passed its deadline, or the backend says that it is not ours. Final.
    Lost,
    /// The call was cancelled.
    Cancelled,
    /// The client has been closed.
    Closed,
    /// The client or lease belongs to the process that this one was forked from.
    Forked,
    /// An argument, option or URL is not allowed; the message says what is.
    InvalidArgument,
    /// The server, the URL scheme or the stored layout is not one that this version can use.
    Unsupported,
    /// The backend did not answer, or cannot serve locks now.
    Unavailable,
    /// The backend refused the credentials, or they lack a right that the lock needs.
    AuthFailed,
    /// Something that is not a lock stands where the lock should be; it was left untouched.
    Conflict,
    /// A fault of this library.
    Internal,
}

impl ErrorKind {
    /// Every kind, for bindings that must map each one.
    pub const ALL: &[ErrorKind] = &[
        ErrorKind::Timeout,
        ErrorKind::Lost,
        ErrorKind::Cancelled,
        ErrorKind::Closed,
        ErrorKind::Forked,
        ErrorKind::InvalidArgument,
        ErrorKind::Unsupported,
        ErrorKind::Unavailable,
        ErrorKind::AuthFailed,
        ErrorKind::Conflict,
        ErrorKind::Internal,
    ];

    /// The stable code, such as `"TIMEOUT"`.
    pub const fn code(self) -> &'static str {
        match self {
            ErrorKind::Timeout => "TIMEOUT",
            ErrorKind::Lost => "LOST",
            ErrorKind::Cancelled => "CANCELLED",
            ErrorKind::Closed => "CLOSED",
            ErrorKind::Forked => "FORKED",
            ErrorKind::InvalidArgument => "INVALID_ARGUMENT",
            ErrorKind::Unsupported => "UNSUPPORTED",
            ErrorKind::Unavailable => "UNAVAILABLE",
            ErrorKind::AuthFailed => "AUTH_FAILED",
            ErrorKind::Conflict => "CONFLICT",
            ErrorKind::Internal => "INTERNAL",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn StdError + Send + Sync + 'static>;

/// An error: its [kind](ErrorKind), one line that names the lock and says what to do, and the
/// cause as [`source`](StdError::source).
///
/// Passwords never appear in it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Source>,
    lasting: bool,
    to_be_undone: bool,
}

impl Error {
    /// An error of `kind` with a message of one line.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), source: None, lasting: false, to_be_undone: false }
    }

    /// The same error with its cause attached.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The same error, its message saying which lock it is about.
    pub(crate) fn of_lock(mut self, name: &Name) -> Self {
        self.message = format!("lock {name}: {}", self.message);
        self
    }

    /// The same error, marked as one that trying again a moment later does not help.
    #[cfg(any(feature = "redis", feature = "mongodb"))]
    pub(crate) fn lasting(mut self) -> Self {
        self.lasting = true;
        self
    }

    /// The same error, marked as one of a request that was carried out all the same.
    #[cfg(feature = "redis")]
    pub(crate) fn undo(mut self) -> Self {
        self.lasting = true;
        self.to_be_undone = true;
        self
    }

    /// Whether the same request may succeed a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        self.kind == ErrorKind::Unavailable && !self.lasting
    }

    /// Whether the backend did what it was asked, although it does not count.
    pub(crate) fn is_to_be_undone(&self) -> bool {
        self.to_be_undone
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Unavailable, message)
    }

    pub(crate) fn closed() -> Self {
        Error::new(ErrorKind::Closed, "the client is closed; connect again to take locks")
    }

    pub(crate) fn forked() -> Self {
        Error::new(
            ErrorKind::Forked,
            "this client or lease belongs to the parent of this forked process; connect a new client here",
        )
    }

    pub(crate) fn lost(name: &Name) -> Self {
        Error::new(
            ErrorKind::Lost,
            "the lease is lost; others may hold the lock now, so stop what it protects",
        )
        .of_lock(name)
    }

    pub(crate) fn timeout(name: &Name, waited: Duration) -> Self {
        Error::new(ErrorKind::Timeout, format!("not obtained within {} ms", waited.as_millis()))
            .of_lock(name)
    }

    pub(crate) fn cancelled(name: &Name) -> Self {
        Error::new(ErrorKind::Cancelled, "the wait was cancelled").of_lock(name)
    }

    pub(crate) fn no_answer(within: Duration) -> Self {
        Error::unavailable(format!("the server did not answer within {} ms", within.as_millis()))
    }
}
