//! The places of this client that wait, and when each of their names is worth a read.
//!
//! A place is entered when it is told that it waits. It leaves when it is granted or released;
//! one that was overlooked then is found by [`Waiting::sweep`].

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Instant;
use crate::name::Name;
use crate::owner::OwnerId;

/// How long a lock stays free before others than the first in line look, which may be dead.
const STALE: Duration = Duration::from_secs(1);
/// How long one that was sent to look is not sent again.
const LOOKING: Duration = Duration::from_millis(250);

#[derive(Default)]
pub(super) struct Waiting {
    places: Mutex<HashMap<OwnerId, Waiter>>,
}

struct Waiter {
    name: Name,
    /// The smallest token that a grant can have from here on.
    floor: u64,
    first: bool,
    /// When a read may find that the holder's time is over.
    check_at: Instant,
    /// It was sent to look, and is not sent again before.
    looks_until: Instant,
}

/// What a read says of one name. It may be out of date, or be undone: a hint, never a grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Peeked {
    pub(super) holder: Option<OwnerId>,
    /// The first in line, if it is of this client.
    pub(super) first: Option<OwnerId>,
    /// What is left of the holder's time, in milliseconds; negative when it is over.
    pub(super) left: i64,
}

impl Waiting {
    /// A look was answered "queued", just now.
    pub(super) fn enter(
        &self,
        owner: OwnerId,
        name: &Name,
        floor: u64,
        first: bool,
        left: Duration,
        now: Instant,
    ) {
        let check_at = due(first, left, now);
        let looks_until = Instant::from_nanos(0);
        let waiter = Waiter { name: name.clone(), floor, first, check_at, looks_until };
        self.places().insert(owner, waiter);
    }

    pub(super) fn leave(&self, owner: OwnerId) {
        self.places().remove(&owner);
    }

    /// A hand-off was pushed. One that is older than the last answer leaves the place waiting.
    pub(super) fn granted(&self, owner: OwnerId, token: u64) {
        let mut places = self.places();
        if places.get(&owner).is_some_and(|waiter| token >= waiter.floor) {
            places.remove(&owner);
        }
    }

    /// This place is the first in line now; `left` unknown = find out.
    pub(super) fn first_now(&self, owner: OwnerId, left: Option<Duration>, now: Instant) {
        if let Some(waiter) = self.places().get_mut(&owner) {
            waiter.first = true;
            waiter.check_at = left.map_or(now, |left| due(true, left, now));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places().is_empty()
    }

    /// Forgets the places of which nobody waits any more.
    pub(super) fn sweep(&self, waits: impl Fn(OwnerId) -> bool) {
        self.places().retain(|owner, _| waits(*owner));
    }

    /// When the next read is due.
    pub(super) fn next_check(&self) -> Instant {
        self.places().values().map(|waiter| waiter.check_at).min().unwrap_or(Instant::NEVER)
    }

    /// The names to read, each once: those that are due, or all.
    pub(super) fn names(&self, due_by: Option<Instant>) -> Vec<Name> {
        let places = self.places();
        let due = |waiter: &&Waiter| due_by.is_none_or(|now| waiter.check_at <= now);
        let names: HashSet<&Name> = places.values().filter(due).map(|w| &w.name).collect();
        names.into_iter().cloned().collect()
    }

    /// The read failed; nothing is known until then.
    pub(super) fn postpone(&self, names: &[Name], until: Instant) {
        for waiter in self.places().values_mut().filter(|waiter| names.contains(&waiter.name)) {
            waiter.check_at = waiter.check_at.max(until);
        }
    }

    /// Who shall look, after these names were read. Of the contenders of one name just one, so
    /// that a lock that became free does not cost a write for each of them.
    pub(super) fn judge(
        &self,
        names: &[Name],
        peeked: &HashMap<String, Peeked>,
        now: Instant,
    ) -> Vec<OwnerId> {
        let asked: HashSet<&Name> = names.iter().collect();
        let mut sent: HashMap<Name, OwnerId> = HashMap::new();
        let mut looks = Vec::new();
        for (&owner, waiter) in self.places().iter_mut() {
            if !asked.contains(&waiter.name) {
                continue;
            }
            let peeked = peeked.get(waiter.name.as_str());
            let left = peeked.map_or(0, |peeked| peeked.left);
            waiter.first = peeked.is_some_and(|peeked| peeked.first == Some(owner));
            // Without a document the place is gone too.
            let at_once = peeked.is_none_or(|peeked| {
                peeked.holder == Some(owner) || (waiter.first && peeked.left <= 0)
            });
            if !at_once && left > -(STALE.as_millis() as i64) {
                let over_for = Duration::from_millis(u64::try_from(-left).unwrap_or(0));
                let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
                waiter.check_at = due(waiter.first, left, now);
                if !over_for.is_zero() {
                    waiter.check_at = now.plus(STALE - over_for);
                }
            } else if waiter.looks_until > now {
                waiter.check_at = waiter.looks_until;
            } else if at_once {
                waiter.look(now);
                looks.push(owner);
            } else {
                waiter.check_at = now.plus(STALE);
                sent.entry(waiter.name.clone()).or_insert(owner);
            }
        }
        for &owner in sent.values() {
            if let Some(waiter) = self.places().get_mut(&owner) {
                waiter.look(now);
            }
            looks.push(owner);
        }
        looks
    }

    fn places(&self) -> MutexGuard<'_, HashMap<OwnerId, Waiter>> {
        // Nothing panics under this lock.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    fn look(&mut self, now: Instant) {
        self.looks_until = now.plus(LOOKING);
        self.check_at = self.looks_until;
    }
}

/// When it is worth a read whether the holder's time is over.
fn due(first: bool, left: Duration, now: Instant) -> Instant {
    // The server counts in whole milliseconds.
    let left = left + Duration::from_millis(1);
    now.plus(if first { left } else { left + STALE })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: u64) -> Instant {
        NOW.plus(ms(n))
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn peeked(holder: Option<OwnerId>, first: Option<OwnerId>, left: i64) -> Peeked {
        Peeked { holder, first, left }
    }

    fn judge(waiting: &Waiting, row: Option<Peeked>, now: Instant) -> Vec<OwnerId> {
        let rows = row.map(|row| ("n".to_owned(), row)).into_iter().collect();
        waiting.judge(&[name("n")], &rows, now)
    }

    #[test]
    fn g4_the_first_in_line_reads_when_the_holders_time_is_over_and_others_a_second_later() {
        let waiting = Waiting::default();
        let [first, second] = [OwnerId::random(), OwnerId::random()];
        waiting.enter(second, &name("n"), 5, false, ms(100), NOW);
        assert_eq!(waiting.next_check(), at(1_101));
        waiting.enter(first, &name("n"), 5, true, ms(100), NOW);
        assert_eq!(waiting.next_check(), at(101));
        assert!(waiting.names(Some(at(100))).is_empty());
        assert_eq!(waiting.names(Some(at(101))), [name("n")]);
        // It was renewed meanwhile.
        let row = peeked(Some(OwnerId::random()), Some(first), 70);
        assert!(judge(&waiting, Some(row.clone()), at(101)).is_empty());
        assert_eq!(waiting.next_check(), at(172));
        assert_eq!(judge(&waiting, Some(Peeked { left: 0, ..row }), at(172)), [first]);
        // The first is dead: another looks, but just one of them.
        let third = OwnerId::random();
        waiting.leave(first);
        waiting.enter(third, &name("n"), 5, false, ms(0), NOW);
        let row = peeked(None, None, -999);
        assert!(judge(&waiting, Some(row.clone()), at(2_000)).is_empty());
        assert_eq!(waiting.next_check(), at(2_001));
        let looks = judge(&waiting, Some(Peeked { left: -1_000, ..row }), at(2_001));
        assert!(looks == [second] || looks == [third], "{looks:?}");
    }

    #[test]
    fn g4_a_grant_found_by_a_read_and_a_vanished_document_lead_to_a_look() {
        let waiting = Waiting::default();
        let owner = OwnerId::random();
        waiting.enter(owner, &name("n"), 5, false, ms(9_000), NOW);
        assert_eq!(judge(&waiting, Some(peeked(Some(owner), None, 4_000)), NOW), [owner]);
        assert!(judge(&waiting, None, at(249)).is_empty(), "it looks already");
        assert_eq!(judge(&waiting, None, at(250)), [owner]);
        waiting.sweep(|_| false);
        assert!(waiting.is_empty() && waiting.next_check() == Instant::NEVER);
    }

    #[test]
    fn g1_an_old_hand_off_leaves_the_place_waiting() {
        let waiting = Waiting::default();
        let owner = OwnerId::random();
        waiting.enter(owner, &name("n"), 5, false, ms(9_000), NOW);
        waiting.granted(owner, 4);
        waiting.first_now(owner, None, NOW);
        assert_eq!(waiting.next_check(), NOW);
        waiting.granted(owner, 5);
        assert!(waiting.is_empty());
    }
}
