//! Numbers of other languages as durations. Refuses what is not a time before anything is done
//! with it (G10); the limits of each option are core's.

use std::time::Duration;

use fencelock::{Error, ErrorKind, Result};

/// No option takes more, so a larger number is refused here, where it cannot overflow yet.
const LONGEST_SECONDS: f64 = 10.0 * 365.0 * 24.0 * 3600.0;

/// Seconds as a duration, exact to the microsecond: 1.1 is 1100 ms although no `f64` is 1.1.
///
/// A positive number never becomes zero, because a wait of zero means something else.
///
/// # Errors
///
/// `InvalidArgument` for NaN, infinite, negative and more than ten years; `what` is the name of the
/// option and `allowed` what it takes.
pub fn from_seconds(seconds: f64, what: &str, allowed: &str) -> Result<Duration> {
    if !(0.0..=LONGEST_SECONDS).contains(&seconds) {
        return Err(invalid(&format!("{seconds:?} s"), what, allowed));
    }
    let micros = (seconds * 1e6).round() as u64;
    Ok(Duration::from_micros(if seconds > 0.0 { micros.max(1) } else { 0 }))
}

/// Milliseconds as a duration. Errors as [`from_seconds`].
pub fn from_millis(millis: i64, what: &str, allowed: &str) -> Result<Duration> {
    match u64::try_from(millis) {
        Ok(count) if count <= LONGEST_SECONDS as u64 * 1000 => Ok(Duration::from_millis(count)),
        _ => Err(invalid(&format!("{millis} ms"), what, allowed)),
    }
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
            (LONGEST_SECONDS, Some(315_360_000_000_000)),
            (LONGEST_SECONDS + 1.0, None),
            (9_007_199_254_740_992.0, None),
            (1e300, None),
            (-1e-9, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (f64::NEG_INFINITY, None),
        ] {
            let found = from_seconds(seconds, "ttl", "100 ms to 24 h");
            assert_eq!(found.as_ref().ok().map(Duration::as_micros), expected, "{seconds:?}");
            if let Err(error) = found {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                assert!(error.to_string().ends_with("allowed are 100 ms to 24 h"), "{error}");
            }
        }
    }

    #[test]
    fn g10_milliseconds_are_checked() {
        for (millis, expected) in [
            (0, Some(0)),
            (1500, Some(1500)),
            (315_360_000_000, Some(315_360_000_000)),
            (315_360_000_001, None),
            (-1, None),
            (1 << 53, None),
            (i64::MAX, None),
            (i64::MIN, None),
        ] {
            let found = from_millis(millis, "timeout_ms", "0 to 10 years");
            assert_eq!(found.ok().map(|d| d.as_millis()), expected, "{millis}");
        }
        assert_eq!(to_millis(Duration::from_micros(1999)), 1);
        assert_eq!(to_millis(Duration::MAX), i64::MAX);
    }
}
