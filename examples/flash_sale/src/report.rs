//! The figures of a sale, and whether it went as promised.

use std::fmt;

use crate::job::Options;
use crate::store::Order;
use crate::turn::{Outcome, Turn};

/// What came of a sale.
pub(crate) struct Report {
    pub(crate) workers: usize,
    pub(crate) title: String,
    pub(crate) locked: bool,
    total: u64,
    sold: u64,
    left: u64,
    lost: usize,
    refused: usize,
    orders_per_second: f64,
    /// Milliseconds.
    wait_p50: f64,
    wait_p99: f64,
    tokens_rise: bool,
    /// With --crash: what happened then; `None` if nothing did.
    crash: Option<Option<Crash>>,
}

struct Crash {
    worker: usize,
    token: u64,
    /// From the victim's grant to the next one, milliseconds.
    gap: f64,
    ttl_ms: u64,
}

impl Report {
    /// Sorts the turns by time.
    pub(crate) fn new(options: &Options, left: u64, orders: &[Order], turns: &mut [Turn]) -> Self {
        turns.sort_by_key(|turn| turn.from);
        let count = |outcome| turns.iter().filter(|turn| turn.outcome == outcome).count();
        let waits = waits(turns);
        let workers = usize::from(options.workers);
        let kind = if options.is_one_process() { "tasks" } else { "processes" };
        let lock = match options.scheme() {
            _ if options.no_lock => "no lock",
            "file" => "lock in files",
            scheme => &format!("lock in {scheme}"),
        };
        Report {
            workers,
            title: format!("Flash sale of product 123: {workers} {kind}, {lock}"),
            locked: !options.no_lock,
            total: options.stock,
            sold: orders.len() as u64,
            left,
            lost: count(Outcome::Lost),
            refused: count(Outcome::Refused),
            orders_per_second: orders.len() as f64 / seconds(turns),
            wait_p50: percentile(&waits, 50),
            wait_p99: percentile(&waits, 99),
            tokens_rise: orders.iter().all(|order| order.token.is_some())
                && orders.is_sorted_by(|a, b| a.token < b.token),
            crash: options.crash.then(|| Crash::find(turns)),
        }
    }

    fn oversold(&self) -> u64 {
        self.sold.saturating_sub(self.total)
    }

    /// The figures in one line.
    pub(crate) fn summary(&self) -> String {
        let Report { total, sold, orders_per_second, wait_p50, wait_p99, .. } = self;
        let oversold = self.oversold();
        let sales = format!(
            "{total} units, {sold} sold, {oversold} oversold, {orders_per_second:.0} orders/s"
        );
        if self.locked {
            format!("{sales}, wait p50 {wait_p50:.2} ms, p99 {wait_p99:.2} ms")
        } else {
            sales
        }
    }

    /// Without the lock nothing is promised.
    pub(crate) fn is_as_promised(&self) -> bool {
        !self.locked
            || self.sold == self.total
                && self.left == 0
                && self.tokens_rise
                && !matches!(self.crash, Some(None))
    }

    /// The last line.
    pub(crate) fn verdict(&self) -> String {
        if !self.locked {
            format!("WITHOUT THE LOCK: oversold {} of {} units", self.oversold(), self.total)
        } else if self.is_as_promised() {
            "OK: every unit was sold exactly once".to_owned()
        } else {
            "FAILED: see the figures above".to_owned()
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        writeln!(f, "total       {}", self.total)?;
        writeln!(f, "sold        {}", self.sold)?;
        writeln!(f, "left        {}", self.left)?;
        writeln!(f, "oversold    {}", self.oversold())?;
        writeln!(f, "orders/s    {:.0}", self.orders_per_second)?;
        if !self.locked {
            return write!(f, "tokens      none, so the store can refuse nothing");
        }
        writeln!(f, "wait p50    {:.2} ms", self.wait_p50)?;
        writeln!(f, "wait p99    {:.2} ms", self.wait_p99)?;
        writeln!(
            f,
            "lost        {} (leases that ended before the write: nothing written)",
            self.lost
        )?;
        writeln!(
            f,
            "refused     {} (orders with an older token than the store had seen)",
            self.refused
        )?;
        match &self.crash {
            None => {}
            Some(Some(crash)) => writeln!(f, "crash       {crash}")?,
            Some(None) => writeln!(f, "crash       nobody went on after it, or it never came")?,
        }
        let rise = if self.tokens_rise { "rise" } else { "DO NOT RISE" };
        write!(f, "tokens      {rise} in the order of the orders")
    }
}

impl Crash {
    /// The crash, if there was one and somebody got the lock after it.
    fn find(turns: &[Turn]) -> Option<Self> {
        let at = turns.iter().position(|turn| turn.outcome == Outcome::Crashed)?;
        let (victim, next) = (turns[at], turns.get(at + 1)?);
        Some(Crash {
            worker: victim.worker,
            token: victim.token,
            gap: next.from.saturating_sub(victim.from) as f64 / 1e3,
            ttl_ms: crate::TTL_MS_CRASH,
        })
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Crash { worker, token, gap, ttl_ms } = self;
        write!(f, "worker {worker} was killed holding token {token}; ")?;
        write!(f, "the others waited {gap:.0} ms and went on (ttl {ttl_ms} ms)")
    }
}

/// How long buyers waited for the lock, shortest first, in milliseconds.
fn waits(turns: &[Turn]) -> Vec<f64> {
    let sold = turns.iter().filter(|turn| turn.outcome == Outcome::Sold);
    let mut waits: Vec<_> = sold.map(|turn| turn.waited() as f64 / 1e3).collect();
    waits.sort_by(f64::total_cmp);
    waits
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// From the moment somebody first asked for the lock to the end of the last turn.
fn seconds(turns: &[Turn]) -> f64 {
    let from = turns.iter().map(|turn| turn.asked).min().unwrap_or(0);
    let until = turns.iter().map(|turn| turn.until).max().unwrap_or(0);
    (until.saturating_sub(from).max(1)) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_the_samples_at_their_rank() {
        let samples: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&samples, 50), 100.0);
        assert_eq!(percentile(&samples, 99), 198.0);
        assert_eq!(percentile(&[], 99), 0.0);
    }
}
