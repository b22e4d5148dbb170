//! Spans of time, as people write and read them.

use std::time::Duration;

use fencelock_shared::duration::from_seconds;

/// A number with an optional unit; seconds without one, as flock(1) and sleep(1) have it.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let allowed = "a number with ms, s, m, h, d or no unit (seconds), such as 0.5, 30s or 2h";
    let split = text.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'));
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let factor = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return Err(format!("allowed is {allowed}")),
    };
    let number: f64 = number.parse().map_err(|_| format!("allowed is {allowed}"))?;
    from_seconds(number * factor, "it", allowed).map_err(|error| error.to_string())
}

/// Short, for people: three digits are enough.
pub(crate) fn show(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g10_times_are_read_as_written_and_nonsense_is_refused() {
        for (text, millis) in [
            ("0", Some(0)),
            ("1", Some(1000)),
            ("0.5", Some(500)),
            (".007", Some(7)),
            ("1e1", Some(10_000)),
            ("1.5s", Some(1500)),
            ("250ms", Some(250)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("1d", Some(86_400_000)),
            ("", None),
            ("s", None),
            ("-1", None),
            ("-1s", None),
            ("abc", None),
            ("5 s", None),
            ("5y", None),
            ("5S", None),
            ("inf", None),
            ("nan", None),
            ("1s2", None),
        ] {
            assert_eq!(parse(text).ok().map(|d| d.as_millis()), millis, "{text:?}");
        }
    }

    #[test]
    fn times_are_shown_short() {
        for (millis, text) in [
            (7, "7 ms"),
            (1500, "1.5 s"),
            (59_960, "60.0 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(show(Duration::from_millis(millis)), text);
        }
    }
}
