//! Errors of core on their way to JavaScript, where the classes are defined: a native module cannot
//! make a class that extends `Error`.

use std::error::Error as _;

use fencelock::Error;
use napi_derive::napi;

/// What a native function throws: an `Error` whose `code` is ours.
pub(crate) type Thrown = napi::Error<&'static str>;

/// An error as data, for a promise that is to be rejected.
#[napi(object, object_from_js = false)]
pub struct Failure {
    /// The stable code.
    pub code: &'static str,
    /// One line.
    pub message: String,
    /// The message of what caused it.
    pub cause: Option<String>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Failure {
            code: error.kind().code(),
            message: error.to_string(),
            cause: error.source().map(ToString::to_string),
        }
    }
}

/// The same, to be thrown.
pub(crate) fn thrown(error: &Error) -> Thrown {
    let mut thrown = napi::Error::new(error.kind().code(), error.to_string());
    if let Some(cause) = error.source() {
        thrown.set_cause(napi::Error::from_reason(cause.to_string()));
    }
    thrown
}

/// A fault of Node-API as an error of this module.
pub(crate) fn internal(error: &napi::Error) -> Thrown {
    napi::Error::new("INTERNAL", error.reason.clone())
}
