//! The sequence that all threads share: a file with the last code.
//!
//! It stands for a row of a database, or for a service that knows only "read" and "write". Nothing
//! here is atomic: that is what the threads need the lock for.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use time::OffsetDateTime;

use crate::Failure;

/// The way to the database and back.
const ROUND_TRIP: Duration = Duration::from_micros(100);
/// How many codes a day has: they all have six digits.
const LAST_NUMBER: u32 = 999_999;

/// An order code: the day and a number, such as `20261130-000042`. Later codes are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Code {
    day: u32,
    number: u32,
}

pub(crate) struct Sequence {
    last: PathBuf,
}

impl Sequence {
    /// A new sequence in an empty folder. Nothing was drawn yet.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let sequence = Sequence { last: folder.join("last") };
        fs::write(&sequence.last, Code { day: today(), number: 0 }.to_string())?;
        Ok(sequence)
    }

    /// Reads the last code, goes one on, and writes that back, unless `before_write` objects.
    pub(crate) fn draw(
        &self,
        before_write: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Code, Failure> {
        let last: Code = fs::read_to_string(&self.last)?.parse()?;
        thread::sleep(ROUND_TRIP);
        let next = last.next(today())?;
        before_write()?;
        // In place, because a code has always the same length.
        File::options().write(true).open(&self.last)?.write_all(next.to_string().as_bytes())?;
        Ok(next)
    }
}

impl Code {
    /// Numbers begin anew each day. A clock that was set back must not bring back old codes.
    fn next(self, today: u32) -> Result<Code, Failure> {
        if today > self.day {
            Ok(Code { day: today, number: 1 })
        } else if self.number < LAST_NUMBER {
            Ok(Code { number: self.number + 1, ..self })
        } else {
            Err("all codes of this day are drawn".into())
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08}-{:06}", self.day, self.number)
    }
}

impl FromStr for Code {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let (day, number) = text.split_once('-').ok_or("no order code")?;
        Ok(Code { day: day.parse()?, number: number.parse()? })
    }
}

/// The date as one number, such as 20261130.
fn today() -> u32 {
    let date = OffsetDateTime::now_utc().date();
    date.year().unsigned_abs() * 10_000
        + u32::from(u8::from(date.month())) * 100
        + u32::from(date.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_rise_also_over_midnight_and_when_the_clock_is_set_back() {
        let mut last: Code = "20261231-000041".parse().expect("a code");
        for (today, expected) in [
            (20_261_231, "20261231-000042"),
            (20_270_101, "20270101-000001"),
            (20_261_231, "20270101-000002"),
        ] {
            let next = last.next(today).expect("a code");
            assert_eq!(next.to_string(), expected);
            assert!(next > last);
            last = next;
        }
        let full = Code { day: 20_270_101, number: LAST_NUMBER };
        assert!(full.next(20_270_101).is_err());
    }
}
