//! What a worker reports of each of its turns, as a line of text between processes.

use std::fmt;
use std::str::FromStr;

use crate::Failure;

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// One unit was sold.
    Sold,
    /// There was nothing left.
    SoldOut,
    /// The lease was lost before the write, so nothing was written.
    Lost,
    /// The store refused the order: it has seen a higher token.
    Refused,
    /// The worker died while it held the lock.
    Crashed,
}

const OUTCOMES: [(Outcome, &str); 5] = [
    (Outcome::Sold, "sold"),
    (Outcome::SoldOut, "sold-out"),
    (Outcome::Lost, "lost"),
    (Outcome::Refused, "refused"),
    (Outcome::Crashed, "crashed"),
];

/// One turn with the lock. Times are microseconds since the sale opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) worker: usize,
    pub(crate) outcome: Outcome,
    /// The fencing token; zero without a lock.
    pub(crate) token: u64,
    /// When the worker asked for the lock,
    pub(crate) asked: u64,
    /// got it,
    pub(crate) from: u64,
    /// and gave it back.
    pub(crate) until: u64,
}

impl Turn {
    /// How long the worker waited for the lock, in microseconds.
    pub(crate) fn waited(&self) -> u64 {
        self.from.saturating_sub(self.asked) // the wall clock may be set back meanwhile
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = OUTCOMES.iter().find(|(o, _)| *o == self.outcome).map_or("?", |(_, name)| name);
        let Turn { worker, token, asked, from, until, .. } = self;
        write!(f, "{worker} {name} {token} {asked} {from} {until}")
    }
}

impl FromStr for Turn {
    type Err = Failure;

    fn from_str(line: &str) -> Result<Self, Failure> {
        let fields: Vec<&str> = line.split(' ').collect();
        let [worker, name, token, asked, from, until] = fields[..] else {
            return Err(format!("a worker reported {line:?}").into());
        };
        let outcome = OUTCOMES.iter().find(|(_, n)| *n == name).map(|(outcome, _)| *outcome);
        Ok(Turn {
            worker: worker.parse()?,
            outcome: outcome.ok_or("a worker reported an unknown outcome")?,
            token: token.parse()?,
            asked: asked.parse()?,
            from: from.parse()?,
            until: until.parse()?,
        })
    }
}
