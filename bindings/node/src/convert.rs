//! Numbers of JavaScript as times, checked before any I/O (G10). The types of arguments are checked
//! in JavaScript, where an error of the right class can be thrown.

use std::time::Duration;

use fencelock::Result;
use fencelock_shared::duration;

pub(crate) const MAX_HOLD: &str = "a time longer than ttl";

/// A time limit in milliseconds, if one is given.
pub(crate) fn time(value: Option<f64>, what: &str, allowed: &str) -> Result<Option<Duration>> {
    value.map(|millis| duration::from_float_millis(millis, what, allowed)).transpose()
}

/// The time limit of a wait; none = for ever.
pub(crate) fn wait(value: Option<f64>) -> Result<Option<Duration>> {
    let limit = time(value, "timeout", "0 to 10 years, or undefined for ever")?;
    fencelock::check_timeout(limit)?;
    Ok(limit)
}
