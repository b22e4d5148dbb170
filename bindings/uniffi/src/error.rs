//! Errors: one case for each kind of the core.

use fencelock::{Error, ErrorKind};

/// What went wrong. The text is one line that names the lock and says what to do.
#[derive(Debug, thiserror::Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum FencelockError {
    /// The wait reached its limit.
    #[error("{0}")]
    Timeout(Error),
    /// The lease passed its deadline, or is not ours.
    #[error("{0}")]
    Lost(Error),
    /// The call was cancelled.
    #[error("{0}")]
    Cancelled(Error),
    /// The client was closed.
    #[error("{0}")]
    Closed(Error),
    /// Used in a forked child.
    #[error("{0}")]
    Forked(Error),
    /// A name, option, time limit or URL is not allowed.
    #[error("{0}")]
    InvalidArgument(Error),
    /// The server, scheme or layout is one that this version cannot use.
    #[error("{0}")]
    Unsupported(Error),
    /// The server does not answer, or cannot serve locks now.
    #[error("{0}")]
    Unavailable(Error),
    /// Wrong credentials, or a right is missing.
    #[error("{0}")]
    AuthFailed(Error),
    /// What stands at the place of the lock is none.
    #[error("{0}")]
    Conflict(Error),
    /// A fault of this library.
    #[error("{0}")]
    Internal(Error),
}

impl From<Error> for FencelockError {
    fn from(error: Error) -> Self {
        let case = match error.kind() {
            ErrorKind::Timeout => FencelockError::Timeout,
            ErrorKind::Lost => FencelockError::Lost,
            ErrorKind::Cancelled => FencelockError::Cancelled,
            ErrorKind::Closed => FencelockError::Closed,
            ErrorKind::Forked => FencelockError::Forked,
            ErrorKind::InvalidArgument => FencelockError::InvalidArgument,
            ErrorKind::Unsupported => FencelockError::Unsupported,
            ErrorKind::Unavailable => FencelockError::Unavailable,
            ErrorKind::AuthFailed => FencelockError::AuthFailed,
            ErrorKind::Conflict => FencelockError::Conflict,
            _ => FencelockError::Internal,
        };
        case(error)
    }
}

/// One error of each kind, with its code as the text before the colon: for the test that none falls to
/// a default.
#[uniffi::export]
pub fn fail_for_test(index: u32) -> Result<u32, FencelockError> {
    match ErrorKind::ALL.get(index as usize) {
        Some(kind) => Err(Error::new(*kind, kind.code()).into()),
        None => Ok(index),
    }
}
