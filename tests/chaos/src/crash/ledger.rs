//! What the processes wrote while they were inside the lock.

use anyhow::{Context, Result};
use fencelock_test_support::clock::ms_between;
use fencelock_test_support::records::{Record, disorder, overlaps};

use super::Kill;

/// One stay inside the lock.
pub(crate) struct Entry {
    pub(crate) pid: u32,
    pub(crate) token: u64,
    pub(crate) entered: u64,
    /// When it left, and to what it had raised the counter (0 = it had lost the lease).
    pub(crate) left: Option<(u64, u64)>,
}

pub(crate) struct Ledger {
    /// In the order of entering.
    pub(crate) entries: Vec<Entry>,
}

impl Ledger {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut entries: Vec<Entry> = Vec::new();
        for line in text.lines() {
            let (what, numbers) = line.split_once(' ').context("a line of one word")?;
            let numbers: Vec<u64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>()?;
            let [at, pid, token, count] = numbers[..] else { anyhow::bail!("a line: {line}") };
            if what == "enter" {
                entries.push(Entry { pid: pid as u32, token, entered: at, left: None });
            } else if let Some(entry) = entries.iter_mut().rev().find(|e| e.token == token) {
                entry.left = Some((at, count));
            }
        }
        Ok(Ledger { entries })
    }

    /// Who is inside now.
    pub(crate) fn inside(&self) -> Option<u32> {
        self.entries.last().filter(|e| e.left.is_none()).map(|e| e.pid)
    }

    /// For each kill the longest time, in ms, that nobody was inside until the next kill; and the
    /// promises that were broken.
    pub(crate) fn judge(&self, kills: &[Kill]) -> (Vec<f64>, Vec<String>) {
        let end = |e: &Entry| match e.left {
            Some((at, _)) => at,
            // Killed inside; or still there at the end of the run.
            None => kills.iter().find(|k| k.victims.contains(&e.pid)).map_or(u64::MAX, |k| k.at),
        };
        let mut records: Vec<Record> = self
            .entries
            .iter()
            .map(|e| Record {
                token: e.token,
                owner: e.pid.to_string(),
                asked: 0,
                acquired: e.entered,
                ended: end(e),
            })
            .collect();
        let mut violations = overlaps(&mut records);
        violations.extend(disorder(&mut records));

        let counts: Vec<u64> =
            self.entries.iter().filter_map(|e| e.left).map(|(_, n)| n).filter(|n| *n > 0).collect();
        if let Some(pair) = counts.windows(2).find(|pair| pair[0] >= pair[1]) {
            violations.push(format!("an update was lost: {} and then {}", pair[0], pair[1]));
        }
        let lost = self.entries.iter().filter(|e| matches!(e.left, Some((_, 0)))).count();
        if lost > 0 {
            violations.push(format!("{lost} leases were lost, and nothing had stopped them"));
        }

        let mut gaps = vec![0.0; kills.len()];
        for pair in self.entries.windows(2) {
            let gap = ms_between(end(&pair[0]), pair[1].entered);
            if let Some(kill) = kills.iter().rposition(|k| k.at <= pair[1].entered) {
                gaps[kill] = f64::max(gaps[kill], gap);
            }
        }
        (gaps, violations)
    }
}
