//! Which lease needs attention when: the decisions of the watchdog. No I/O and no clock of its own,
//! so they are tested with plain numbers.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Renewal, Renewed};
use crate::clock::Instant;
use crate::error::{Error, Result};
use crate::lease::{Held, State};
use crate::owner::OwnerId;
use crate::period::{Pace, claim_window};

/// The answers to one batch of renewals, all sent at one instant.
pub(crate) struct Answers {
    pub(crate) sent: Instant,
    pub(crate) rounds: Vec<(OwnerId, u64)>,
    pub(crate) results: Result<Vec<Result<Renewed>>>,
}

/// The leases of a client in the order of their needs.
pub(crate) struct Schedule {
    leases: HashMap<OwnerId, Entry>,
    order: BTreeSet<(Instant, OwnerId)>,
    /// What the alarm is set to.
    armed: Instant,
    pub(crate) stopped: bool,
    pace: Pace,
    /// The backend renews whole sessions by itself.
    keeps_sessions: bool,
}

struct Entry {
    held: Arc<Held>,
    next: Instant,
    /// Counts the renewals sent; an answer of an earlier round is dropped.
    round: u64,
    renewals: Renewals,
    jitter: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Renewals {
    Forever,
    /// A hand-off is raised to a full ttl even if the lease is a fixed one.
    Once,
    No,
}

/// What to do now.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) renew: Vec<(Renewal, u64)>,
    pub(crate) ended: Vec<Arc<Held>>,
}

/// A renewal that failed.
pub(crate) struct Failure {
    held: Arc<Held>,
    left: Duration,
    error: Error,
}

impl Failure {
    pub(crate) fn log(&self) {
        tracing::warn!(
            lock = %self.held.place.name, left_ms = self.left.as_millis() as u64, error = %self.error,
            "renewal failed; it is tried again until the deadline"
        );
    }
}

impl Schedule {
    pub(crate) fn new(pace: Pace, keeps_sessions: bool) -> Self {
        Schedule {
            leases: HashMap::new(),
            order: BTreeSet::new(),
            armed: Instant::from_nanos(0),
            stopped: false,
            pace,
            keeps_sessions,
        }
    }

    /// True if the alarm must be set earlier, which it then counts as.
    pub(crate) fn add(
        &mut self,
        held: &Arc<Held>,
        handed_off: bool,
        now: Instant,
        jitter: Duration,
    ) -> bool {
        let renewals = match (held.renews, handed_off) {
            _ if self.keeps_sessions => Renewals::No,
            (true, _) => Renewals::Forever,
            (false, true) => Renewals::Once,
            (false, false) => Renewals::No,
        };
        let deadline = held.deadline();
        let wait = if handed_off {
            // Not at once, so that a short hold costs no renewal.
            (claim_window(held.place.ttl) / 10).min(now.until(deadline) / 4)
        } else {
            held.place.ttl / 3 - jitter
        };
        let due =
            if renewals == Renewals::No || !held.can_extend() { deadline } else { now.plus(wait) };
        let next = due.min(deadline);
        let owner = held.place.owner;
        self.order.insert((next, owner));
        self.leases.insert(owner, Entry { held: held.clone(), next, round: 0, renewals, jitter });
        let early = next < self.armed;
        if early {
            self.armed = next;
        }
        early
    }

    pub(crate) fn remove(&mut self, owner: OwnerId) {
        if let Some(entry) = self.leases.remove(&owner) {
            self.order.remove(&(entry.next, owner));
        }
    }

    pub(crate) fn extended(&mut self, held: &Arc<Held>) {
        let owner = held.place.owner;
        if let Some(entry) = self.leases.get(&owner)
            && entry.renewals == Renewals::No
        {
            self.move_to(owner, held.deadline());
        }
    }

    /// The instant of the next attention. An alarm that is still to come stays, even when the
    /// lease that it was for is gone: most leases are short, and moving it for each would wake the
    /// watchdog each time.
    pub(crate) fn arm(&mut self, now: Instant) -> Instant {
        let first = self.order.first().map_or(Instant::NEVER, |(next, _)| *next);
        self.armed = if self.armed > now { self.armed.min(first) } else { first };
        self.armed
    }

    /// Takes out what has ended, and the renewals that are due. A lease whose renewal is under
    /// way comes back when its time for an answer is over, or at its deadline.
    pub(crate) fn collect(&mut self, now: Instant, request_timeout: Duration) -> Work {
        let mut work = Work::default();
        while let Some(&(next, owner)) = self.order.first() {
            if next > now {
                break;
            }
            let Some(entry) = self.leases.get_mut(&owner) else {
                self.order.pop_first();
                continue;
            };
            let deadline = entry.held.deadline();
            let state = entry.held.state_at(now);
            if state != State::Held {
                if state == State::Lost {
                    work.ended.push(entry.held.clone());
                }
                self.remove(owner);
            } else if entry.renewals == Renewals::No || !entry.held.can_extend() {
                self.move_to(owner, deadline);
            } else {
                entry.round += 1;
                work.renew.push((entry.held.renewal(), entry.round));
                let limit = self.pace.request_limit(entry.held.place.ttl, request_timeout);
                self.move_to(owner, now.plus(limit).min(deadline));
            }
        }
        work
    }

    /// Returns what failed, for the log: whoever reads it may need the lock on this schedule.
    pub(crate) fn judge(&mut self, answers: Answers, now: Instant) -> Vec<Failure> {
        let Answers { sent, rounds, results } = answers;
        let mut results = results.map(Vec::into_iter);
        let mut failures = Vec::new();
        for (owner, round) in rounds {
            let result = match &mut results {
                Ok(results) => results.next().unwrap_or_else(|| {
                    Err(Error::new(crate::ErrorKind::Internal, "a renewal has no result"))
                }),
                Err(error) => Err(Error::new(error.kind(), error.to_string())),
            };
            failures.extend(self.judge_one(owner, round, sent, result, now));
        }
        failures
    }

    fn judge_one(
        &mut self,
        owner: OwnerId,
        round: u64,
        sent: Instant,
        result: Result<Renewed>,
        now: Instant,
    ) -> Option<Failure> {
        let entry = self.leases.get_mut(&owner).filter(|entry| entry.round == round)?;
        let held = &entry.held;
        let mut failure = None;
        let next = match result {
            Ok(Renewed::Ours(term)) => {
                held.extend(sent, term, now);
                if entry.renewals == Renewals::Once {
                    entry.renewals = Renewals::No;
                }
                if entry.renewals == Renewals::No || !held.can_extend() {
                    held.deadline()
                } else {
                    sent.plus(held.place.ttl / 3 - entry.jitter).max(now)
                }
            }
            Ok(Renewed::NotOurs) => {
                held.lose();
                now
            }
            Err(error) => {
                let left = now.until(held.deadline());
                failure = Some(Failure { held: held.clone(), left, error });
                // Sooner when little time is left, but never in a tight loop.
                now.plus(
                    (held.place.ttl / 30)
                        .clamp(Duration::from_millis(5), Duration::from_millis(250)),
                )
            }
        };
        let next = next.min(held.deadline());
        self.move_to(owner, next);
        failure
    }

    fn move_to(&mut self, owner: OwnerId, next: Instant) {
        if let Some(entry) = self.leases.get_mut(&owner) {
            self.order.remove(&(entry.next, owner));
            entry.next = next;
            self.order.insert((next, owner));
        }
    }
}

/// Jitter only shortens the time to a renewal: up to a tenth of it.
pub(crate) fn jitter(held: &Held) -> Duration {
    held.place.owner.share_of(held.place.ttl / 30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Place;
    use crate::contender::Grant;
    use crate::name::Name;
    use crate::period::Term;
    use crate::token::Token;

    const REQUEST_TIMEOUT: Duration = ms(2_000);

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(0).plus(ms(1_000_000 + millis))
    }

    /// A lease of a 30 s lock granted at 0, so with its deadline at 29,698 ms.
    fn lease(max_hold: Option<Duration>, renews: bool, handed_off: bool) -> Arc<Held> {
        let period = if handed_off { ms(4_948) } else { ms(29_698) };
        let place = Place {
            owner: OwnerId::random(),
            name: Name::new("a").unwrap(),
            ttl: ms(30_000),
            metadata: "".into(),
        };
        let token = Token::new(1).unwrap();
        let grant = Grant { token, sent: at(0), deadline: at(0).plus(period), handed_off };
        Arc::new(Held::new(Arc::new(place), grant, max_hold, renews, false, at(0)))
    }

    fn schedule(held: &Arc<Held>, handed_off: bool) -> Schedule {
        let mut schedule = Schedule::new(Pace::BRISK, false);
        schedule.add(held, handed_off, at(0), ms(0));
        schedule
    }

    fn next(schedule: &Schedule) -> Instant {
        schedule.order.first().map_or(Instant::NEVER, |(next, _)| *next)
    }

    /// Collects at `now`, which must give exactly one renewal, and returns its round.
    fn one_renewal(schedule: &mut Schedule, now: Instant) -> u64 {
        let work = schedule.collect(now, REQUEST_TIMEOUT);
        assert_eq!((work.renew.len(), work.ended.len()), (1, 0));
        work.renew[0].1
    }

    fn answer(
        schedule: &mut Schedule,
        held: &Held,
        round: u64,
        sent: Instant,
        result: Result<Renewed>,
        now: Instant,
    ) {
        let rounds = vec![(held.place.owner, round)];
        schedule.judge(Answers { sent, rounds, results: Ok(vec![result]) }, now);
    }

    #[test]
    fn g2_a_lease_is_renewed_after_a_third_of_its_ttl_and_its_deadline_moves() {
        let held = lease(None, true, false);
        let mut schedule = schedule(&held, false);
        assert_eq!(next(&schedule), at(10_000));
        assert!(schedule.collect(at(9_999), REQUEST_TIMEOUT).renew.is_empty());
        let round = one_renewal(&mut schedule, at(10_000));
        answer(
            &mut schedule,
            &held,
            round,
            at(10_000),
            Ok(Renewed::Ours(Term::FullTtl)),
            at(10_900),
        );
        assert_eq!(held.deadline(), at(10_000 + 29_698));
        assert_eq!(next(&schedule), at(20_000));
    }

    #[test]
    fn g2_jitter_only_shortens() {
        let held = lease(None, true, false);
        let mut schedule = Schedule::new(Pace::BRISK, false);
        schedule.add(&held, false, at(0), ms(1_000));
        assert_eq!(next(&schedule), at(9_000));
        for _ in 0..100 {
            assert!(jitter(&held) < ms(1_000));
        }
    }

    #[test]
    fn g2_without_an_answer_it_tries_again_until_the_deadline_and_then_the_lease_is_lost() {
        let held = lease(None, true, false);
        let mut schedule = schedule(&held, false);
        let mut tries = 0;
        let mut now = next(&schedule);
        while now < at(29_698) {
            one_renewal(&mut schedule, now);
            tries += 1;
            now = next(&schedule);
        }
        assert_eq!((now, tries), (at(29_698), 10));
        assert_eq!(held.state_at(at(29_697)), State::Held);
        let work = schedule.collect(now, REQUEST_TIMEOUT);
        assert_eq!((work.renew.len(), work.ended.len()), (0, 1));
        assert_eq!(held.state_at(at(0)), State::Lost);
        assert_eq!(next(&schedule), Instant::NEVER);
    }

    #[test]
    fn g1_an_answer_that_comes_after_its_round_or_after_the_deadline_does_not_count() {
        let held = lease(None, true, false);
        let mut schedule = schedule(&held, false);
        let first = one_renewal(&mut schedule, at(10_000));
        let second = one_renewal(&mut schedule, at(12_000));
        answer(
            &mut schedule,
            &held,
            first,
            at(10_000),
            Ok(Renewed::Ours(Term::FullTtl)),
            at(12_100),
        );
        assert_eq!(held.deadline(), at(29_698));
        answer(
            &mut schedule,
            &held,
            second,
            at(12_000),
            Ok(Renewed::Ours(Term::FullTtl)),
            at(29_698),
        );
        assert_eq!(held.state_at(at(29_698)), State::Lost);
        assert_eq!(held.deadline(), at(29_698));
    }

    #[test]
    fn g2_one_error_does_not_end_the_renewals() {
        let held = lease(None, true, false);
        let mut schedule = schedule(&held, false);
        let round = one_renewal(&mut schedule, at(10_000));
        answer(&mut schedule, &held, round, at(10_000), Err(Error::unavailable("x")), at(10_010));
        assert_eq!(next(&schedule), at(10_260));
        let round = one_renewal(&mut schedule, at(10_260));
        answer(
            &mut schedule,
            &held,
            round,
            at(10_260),
            Ok(Renewed::Ours(Term::FullTtl)),
            at(10_261),
        );
        assert_eq!(held.deadline(), at(10_260 + 29_698));
    }

    #[test]
    fn g2_each_result_of_a_batch_is_judged_alone() {
        let (kept, gone, failed) =
            (lease(None, true, false), lease(None, true, false), lease(None, true, false));
        let mut schedule = Schedule::new(Pace::BRISK, false);
        for held in [&kept, &gone, &failed] {
            schedule.add(held, false, at(0), ms(0));
        }
        let work = schedule.collect(at(10_000), REQUEST_TIMEOUT);
        let (mut rounds, mut results) = (Vec::new(), Vec::new());
        for (renewal, round) in work.renew {
            let owner = renewal.place.owner;
            rounds.push((owner, round));
            results.push(if owner == kept.place.owner {
                Ok(Renewed::Ours(Term::FullTtl))
            } else if owner == gone.place.owner {
                Ok(Renewed::NotOurs)
            } else {
                Err(Error::unavailable("a slow shard"))
            });
        }
        schedule.judge(Answers { sent: at(10_000), rounds, results: Ok(results) }, at(10_001));
        assert_eq!(kept.deadline(), at(39_698));
        assert_eq!(gone.state_at(at(10_001)), State::Lost);
        assert_eq!((failed.state_at(at(10_001)), failed.deadline()), (State::Held, at(29_698)));
        let work = schedule.collect(at(10_001), REQUEST_TIMEOUT);
        assert_eq!(work.ended.len(), 1, "the lost lease is cleaned up at once");
    }

    #[test]
    fn g2_a_fixed_lease_is_never_renewed_and_ends_at_its_ttl() {
        let held = lease(None, false, false);
        let mut schedule = schedule(&held, false);
        assert_eq!(next(&schedule), at(29_698));
        assert_eq!(schedule.collect(at(29_698), REQUEST_TIMEOUT).ended.len(), 1);
    }

    #[test]
    fn g2_a_handed_off_lease_is_raised_to_its_full_ttl_soon_but_not_at_once() {
        for renews in [true, false] {
            let held = lease(None, renews, true);
            let mut schedule = schedule(&held, true);
            assert_eq!(next(&schedule), at(500));
            let round = one_renewal(&mut schedule, at(500));
            answer(&mut schedule, &held, round, at(500), Ok(Renewed::Ours(Term::FullTtl)), at(501));
            assert_eq!(held.deadline(), at(500 + 29_698));
            // A fixed lease gets just this one.
            assert_eq!(next(&schedule), if renews { at(10_500) } else { at(30_198) });
        }
    }

    #[test]
    fn g2_max_hold_caps_every_deadline() {
        let held = lease(Some(ms(45_000)), true, false);
        let mut schedule = schedule(&held, false);
        for sent in [10_000, 20_000] {
            let round = one_renewal(&mut schedule, at(sent));
            answer(
                &mut schedule,
                &held,
                round,
                at(sent),
                Ok(Renewed::Ours(Term::FullTtl)),
                at(sent),
            );
        }
        assert_eq!(held.deadline(), at(45_000));
        assert_eq!(next(&schedule), at(45_000), "there is nothing more to renew");
        assert_eq!(schedule.collect(at(45_000), REQUEST_TIMEOUT).ended.len(), 1);
    }

    #[test]
    fn g7_a_released_lease_is_neither_renewed_nor_cleaned_up() {
        let held = lease(None, true, false);
        let mut schedule = schedule(&held, false);
        let round = one_renewal(&mut schedule, at(10_000));
        schedule.remove(held.place.owner);
        answer(&mut schedule, &held, round, at(10_000), Ok(Renewed::NotOurs), at(10_001));
        assert_eq!(held.state_at(at(10_001)), State::Held, "a late answer says nothing of it");
        let work = schedule.collect(at(99_000), REQUEST_TIMEOUT);
        assert!(work.renew.is_empty() && work.ended.is_empty());
    }

    #[test]
    fn short_leases_do_not_move_the_alarm() {
        let mut schedule = Schedule::new(Pace::BRISK, false);
        assert_eq!(schedule.arm(at(0)), Instant::NEVER);
        for round in 0..5 {
            let held = lease(None, true, false);
            let rings = schedule.add(&held, false, at(round), ms(0));
            assert_eq!(rings, round == 0, "only the first must set the alarm");
            schedule.remove(held.place.owner);
            assert_eq!(schedule.arm(at(round)), at(10_000));
        }
        let early = lease(None, true, true);
        assert!(schedule.add(&early, true, at(5), ms(0)), "a renewal that is due before it");
        assert_eq!(schedule.arm(at(5)), at(505));
        // It has come, for nothing: the next one is set.
        schedule.remove(early.place.owner);
        assert_eq!(schedule.arm(at(505)), Instant::NEVER);
    }

    #[test]
    fn g2_a_lease_of_a_session_is_renewed_by_no_round_and_a_fixed_one_ends_at_its_ttl() {
        for (renews, end) in [(true, at(60_000)), (false, at(29_698))] {
            let held = lease(None, renews, false);
            let mut schedule = Schedule::new(Pace::BRISK, true);
            schedule.add(&held, false, at(0), ms(0));
            held.extend_to(at(60_000), at(10));
            assert_eq!(held.deadline(), end);
            let work = schedule.collect(at(29_697), REQUEST_TIMEOUT);
            assert_eq!((work.renew.len(), work.ended.len()), (0, 0));
            schedule.collect(at(29_698), REQUEST_TIMEOUT);
            let work = schedule.collect(end, REQUEST_TIMEOUT);
            assert_eq!(held.state_at(end), State::Lost);
            assert!(work.renew.is_empty());
        }
    }

    #[test]
    fn g2_renewing_a_fixed_lease_gives_it_another_full_ttl_in_its_session() {
        let held = lease(None, false, false);
        held.extend(at(10_000), Term::Until(at(20_000)), at(10_001));
        assert_eq!(held.deadline(), at(29_698));
        held.extend_to(at(60_000), at(10_002));
        assert_eq!(held.deadline(), at(39_698));
    }
}
