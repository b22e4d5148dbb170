//! Errors of core as Python exceptions. The classes are defined in Python, because a class with
//! two bases (`LockTimeout` is a `FencelockError` and a `TimeoutError`) cannot be made from here.

use std::error::Error as _;

use fencelock::Error;
use pyo3::prelude::*;

/// An error on its way to Python; `?` makes it from either kind.
pub(crate) enum Failure {
    Ours(Error),
    Python(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Ours(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Ours(error) => Python::attach(|py| exception(py, &error)),
            Failure::Python(error) => error,
        }
    }
}

/// The Python exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let cause = error.source().map(ToString::to_string);
    let made = py
        .import("fencelock._errors")
        .and_then(|module| module.getattr("from_code"))
        .and_then(|make| make.call1((error.kind().code(), error.to_string(), cause)));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(failed) => failed,
    }
}
