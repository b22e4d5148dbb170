//! What was drawn, and whether it went as promised.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::worker::Draw;

/// What came of a run.
pub(crate) struct Report {
    place: String,
    locked: bool,
    /// In the order in which the lock was granted; without a lock, of the codes.
    draws: Vec<Draw>,
}

impl Report {
    pub(crate) fn new(place: String, locked: bool, mut draws: Vec<Draw>) -> Self {
        draws.sort_by_key(|draw| (draw.token, draw.code));
        Report { place, locked, draws }
    }

    fn different(&self) -> usize {
        self.draws.iter().map(|draw| draw.code).collect::<BTreeSet<_>>().len()
    }

    /// Whether each grant gave a greater code than the one before.
    fn codes_rise(&self) -> bool {
        self.draws.is_sorted_by(|a, b| a.token < b.token && a.code < b.code)
    }

    /// Without the lock nothing is promised.
    pub(crate) fn is_as_promised(&self) -> bool {
        !self.locked || self.different() == self.draws.len() && self.codes_rise()
    }

    fn longest_wait(&self) -> Duration {
        self.draws.iter().map(|draw| draw.waited).max().unwrap_or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (threads, different) = (self.draws.len(), self.different());
        writeln!(f, "Order codes: {threads} threads, {}", self.place)?;
        for draw in &self.draws {
            match draw.token {
                Some(token) => writeln!(f, "{}  token {token}", draw.code)?,
                None => writeln!(f, "{}", draw.code)?,
            }
        }
        writeln!(f, "drawn       {threads}")?;
        writeln!(f, "different   {different}")?;
        if !self.locked {
            let again = threads - different;
            return write!(
                f,
                "WITHOUT THE LOCK: {again} of {threads} orders got a code that was taken"
            );
        }
        writeln!(f, "longest     {:.2} ms of waiting", self.longest_wait().as_secs_f64() * 1e3)?;
        let rise = if self.codes_rise() { "rise" } else { "DO NOT RISE" };
        writeln!(f, "codes       {rise} in the order of the grants")?;
        if self.is_as_promised() {
            write!(f, "OK: every order has a code of its own")
        } else {
            write!(f, "FAILED: see the figures above")
        }
    }
}
