//! Numbers of other languages as durations. Refuses what is not a time before anything is done
//! with it (G10); the limits of each option are core's.

use std::time::Duration;

use fencelock::{Error, ErrorKind, Result};

/// What core allows as a ttl, for messages.
pub const TTL: &str = "100 ms to 24 h";
/// What core allows as a limit of a wait, but for the word that a language has for "none".
pub const WAIT: &str = "0 to 10 years";
/// What core allows as the timeouts of a client.
pub const CLIENT_TIMEOUT: &str = "1 ms to 1 h";

/// Seconds as a duration, exact to the microsecond: 1.1 is 1100 ms although no `f64` is 1.1.
///
/// A positive number never becomes zero, because a wait of zero means something else.
///
/// # Errors
///
/// `InvalidArgument` for NaN, infinite and negative; `what` is the name of the option and `allowed`
/// what it takes.
pub fn from_seconds(seconds: f64, what: &str, allowed: &str) -> Result<Duration> {
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(invalid(&format!("{seconds:?} s"), what, allowed));
    }
    // Saturates: what no duration holds is more than any limit of core's.
    let micros = (seconds * 1e6).round() as u64;
    Ok(Duration::from_micros(if seconds > 0.0 { micros.max(1) } else { 0 }))
}

/// Milliseconds with a fraction as a duration, as [`from_seconds`].
pub fn from_float_millis(millis: f64, what: &str, allowed: &str) -> Result<Duration> {
    if !millis.is_finite() || millis < 0.0 {
        return Err(invalid(&format!("{millis:?} ms"), what, allowed));
    }
    let micros = (millis * 1e3).round() as u64;
    Ok(Duration::from_micros(if millis > 0.0 { micros.max(1) } else { 0 }))
}

/// Milliseconds as a duration. Errors as [`from_seconds`].
pub fn from_millis(millis: i64, what: &str, allowed: &str) -> Result<Duration> {
    u64::try_from(millis)
        .map(Duration::from_millis)
        .map_err(|_| invalid(&format!("{millis} ms"), what, allowed))
}

/// Whole milliseconds of a duration; more than an `i64` holds counts as its maximum.
pub fn to_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn invalid(value: &str, what: &str, allowed: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("{what} is {value}; allowed are {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g10_seconds_are_exact_and_never_overflow() {
        for (seconds, expected) in [
            (0.0, Some(0)),
            (-0.0, Some(0)),
            (1e-9, Some(1)),
            (5e-324, Some(1)),
            (0.1 + 0.2, Some(300_000)),
            (1.1, Some(1_100_000)),
            (1.5, Some(1_500_000)),
            (0.0996, Some(99_600)),
            (9_007_199_254.75, Some(9_007_199_254_750_000)),
            (1e300, Some(u64::MAX.into())),
            (-1e-9, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (f64::NEG_INFINITY, None),
        ] {
            let found = from_seconds(seconds, "ttl", TTL);
            assert_eq!(found.as_ref().ok().map(Duration::as_micros), expected, "{seconds:?}");
            if let Err(error) = found {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                assert!(error.to_string().ends_with("allowed are 100 ms to 24 h"), "{error}");
            }
        }
    }

    #[test]
    fn g10_milliseconds_with_a_fraction_are_exact_and_never_overflow() {
        for (millis, expected) in [
            (0.0, Some(0)),
            (-0.0, Some(0)),
            (5e-324, Some(1)),
            (1500.9, Some(1_500_900)),
            (f64::MAX, Some(u64::MAX.into())),
            (-1e-9, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            let found = from_float_millis(millis, "ttl", TTL);
            assert_eq!(found.ok().map(|d| d.as_micros()), expected, "{millis:?}");
        }
    }

    #[test]
    fn g10_milliseconds_are_checked() {
        for (millis, expected) in [
            (0, Some(0)),
            (1500, Some(1500)),
            (1 << 53, Some(1 << 53)),
            (i64::MAX, Some(i64::MAX as u128)),
            (-1, None),
            (i64::MIN, None),
        ] {
            let found = from_millis(millis, "timeout_ms", WAIT);
            assert_eq!(found.ok().map(|d| d.as_millis()), expected, "{millis}");
        }
        assert_eq!(to_millis(Duration::from_micros(1999)), 1);
        assert_eq!(to_millis(Duration::MAX), i64::MAX);
    }
}
