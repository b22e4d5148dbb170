//! Who held a lock from when to when, told by several processes.

use fencelock::Lease;
use serde::{Deserialize, Serialize};

use crate::samples::Samples;

/// One lease as its holder saw it; instants of [`clock::now`](crate::clock::now).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The fencing token.
    pub token: u64,
    /// The owner id.
    pub owner: String,
    /// When acquire was called.
    pub asked: u64,
    /// When acquire had returned.
    pub acquired: u64,
    /// When it stopped to hold: release called, or found lost.
    pub ended: u64,
}

impl Record {
    /// Of a lease that was asked for, acquired and given up at these instants.
    pub fn of(lease: &Lease, asked: u64, acquired: u64, ended: u64) -> Self {
        Record { token: lease.token().get(), owner: lease.owner(), asked, acquired, ended }
    }
}

/// Names the leases that began while an earlier one was still held.
pub fn overlaps(records: &mut [Record]) -> Vec<String> {
    records.sort_by_key(|r| r.acquired);
    let mut found = Vec::new();
    let mut longest: Option<&Record> = None;
    for record in records.iter().filter(|r| r.acquired < r.ended) {
        if let Some(before) = longest.filter(|before| record.acquired < before.ended) {
            found.push(format!("held at the same time: {before:?} and {record:?}"));
        }
        if longest.is_none_or(|before| before.ended < record.ended) {
            longest = Some(record);
        }
    }
    found
}

/// Names every pair of equal tokens, and every lease that began before that of a lower token.
pub fn disorder(records: &mut [Record]) -> Vec<String> {
    records.sort_by_key(|r| r.token);
    let wrong = |a: &Record, b: &Record| a.token == b.token || a.acquired > b.acquired;
    let pairs = records.windows(2).filter(|w| wrong(&w[0], &w[1]));
    pairs.map(|w| format!("tokens do not rise: {:?} and {:?}", w[0], w[1])).collect()
}

/// Release called → next acquire returned, in microseconds, for leases that were waited for:
/// asked for before the one before them ended.
pub fn hand_overs(records: &mut [Record]) -> Samples {
    records.sort_by_key(|r| r.token);
    let waited = records.windows(2).filter(|w| w[1].asked < w[0].ended);
    waited.map(|w| (w[1].acquired as f64 - w[0].ended as f64) / 1e3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(token: u64, acquired: u64, ended: u64) -> Record {
        Record { token, owner: String::new(), asked: 0, acquired, ended }
    }

    #[test]
    fn leases_that_touch_do_not_overlap_but_those_that_cross_do() {
        assert!(overlaps(&mut [record(2, 10, 20), record(1, 0, 10)]).is_empty());
        assert_eq!(
            overlaps(&mut [record(1, 0, 30), record(2, 10, 12), record(3, 20, 40)]).len(),
            2
        );
    }

    #[test]
    fn tokens_must_rise_in_the_order_of_the_leases() {
        assert!(disorder(&mut [record(2, 10, 20), record(1, 0, 10)]).is_empty());
        assert_eq!(disorder(&mut [record(1, 10, 20), record(2, 0, 10)]).len(), 1);
        assert_eq!(disorder(&mut [record(1, 0, 5), record(1, 6, 10)]).len(), 1);
    }
}
