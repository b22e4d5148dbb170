//! Arguments: a wrong type is a TypeError, a wrong value an InvalidArgument, before any I/O (G10).

use std::time::Duration;

use fencelock::{Error, ErrorKind};
use fencelock_shared::duration;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::errors::Failure;

pub(crate) const MAX_HOLD: &str = "a time longer than ttl, or None";

/// A number of seconds. Not a bool: `acquire(timeout=False)` means something else elsewhere.
pub(crate) fn seconds(
    value: &Bound<'_, PyAny>,
    what: &str,
    allowed: &str,
) -> Result<Duration, Failure> {
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyString>() {
        return Err(wrong_type(value, what, "a number of seconds"));
    }
    let number = match value.extract::<f64>() {
        Ok(number) => number,
        // An int beyond every float is a number all the same.
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => f64::INFINITY,
        Err(_) => return Err(wrong_type(value, what, "a number of seconds")),
    };
    Ok(duration::from_seconds(number, what, allowed)?)
}

/// [`seconds`], or `None`.
pub(crate) fn maybe_seconds(
    value: &Bound<'_, PyAny>,
    what: &str,
    allowed: &str,
) -> Result<Option<Duration>, Failure> {
    if value.is_none() { Ok(None) } else { seconds(value, what, allowed).map(Some) }
}

/// The time limit of a wait; `None` = for ever.
pub(crate) fn wait(value: &Bound<'_, PyAny>) -> Result<Option<Duration>, Failure> {
    let limit = maybe_seconds(value, "timeout", "0 to 10 years, or None for ever")?;
    fencelock::check_timeout(limit)?;
    Ok(limit)
}

pub(crate) fn text(value: &Bound<'_, PyAny>, what: &str) -> Result<String, Failure> {
    let Ok(text) = value.cast::<PyString>() else { return Err(wrong_type(value, what, "str")) };
    // A Python string can hold half a surrogate pair.
    let text = text.to_cow().map_err(|_| {
        Error::new(ErrorKind::InvalidArgument, format!("{what} cannot be written as UTF-8"))
    })?;
    Ok(text.into_owned())
}

/// [`text`], or `None`.
pub(crate) fn maybe_text(value: &Bound<'_, PyAny>, what: &str) -> Result<Option<String>, Failure> {
    if value.is_none() { Ok(None) } else { text(value, what).map(Some) }
}

pub(crate) fn flag(value: &Bound<'_, PyAny>, what: &str) -> Result<bool, Failure> {
    match value.cast::<PyBool>() {
        Ok(flag) => Ok(flag.is_true()),
        Err(_) => Err(wrong_type(value, what, "bool")),
    }
}

fn wrong_type(value: &Bound<'_, PyAny>, what: &str, wanted: &str) -> Failure {
    let found = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what} must be {wanted}, not {found}")).into()
}
