//! Until when a session, and with it each of its leases, certainly lives.
//!
//! The leader ends sessions, by its own table. A follower tells it of a session's requests only
//! when the leader asks, every half tick; a write that is forwarded to the leader does not count
//! there. So an answered write proves only this: when the leader took it, the session had not
//! ended, and what the follower had told before counts. Of two answered writes that are far enough
//! apart for the follower to have told in between, the earlier one is what the session lives on.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Instant;
use crate::period::deadline;

/// How many marks are kept in one gap: one that is left out only makes the deadline earlier.
const MARKS_PER_GAP: u32 = 16;

/// The send instants of answered writes, and what follows from them.
#[derive(Debug)]
pub(super) struct Stamps {
    /// What the session was granted.
    timeout: Duration,
    /// What the locks of this session ask for.
    ttl: Duration,
    /// The session lives for its timeout from here.
    base: Instant,
    last: Instant,
    /// Ascending: those that are too new to be a base yet, and the newest one before them.
    marks: VecDeque<Instant>,
}

impl Stamps {
    /// A session that was asked for at `opened`. Making it is a write, and reaches the leader's
    /// table directly.
    pub(super) fn new(opened: Instant, timeout: Duration, ttl: Duration) -> Self {
        Stamps { timeout, ttl, base: opened, last: opened, marks: VecDeque::from([opened]) }
    }

    /// How far two writes must be apart.
    fn gap(&self) -> Duration {
        self.timeout / 4
    }

    /// A write that was sent at `sent` has been answered, whatever the answer: it went through the
    /// leader's log. Reads, pings and sync are no writes.
    pub(super) fn answered(&mut self, sent: Instant) {
        self.last = self.last.max(sent);
        while let Some(&mark) = self.marks.front()
            && mark.plus(self.gap()) <= sent
        {
            self.base = self.base.max(mark);
            if self.marks.get(1).is_none_or(|next| next.plus(self.gap()) > sent) {
                break;
            }
            self.marks.pop_front();
        }
        let is_apart =
            |mark: &Instant| mark.plus(self.gap() / MARKS_PER_GAP) <= sent && *mark < sent;
        if self.marks.back().is_none_or(is_apart) {
            self.marks.push_back(sent);
        }
    }

    /// Until when every lease of this session is certainly ours.
    pub(super) fn deadline(&self) -> Instant {
        deadline(self.base, self.timeout).min(deadline(self.last, self.ttl))
    }

    /// How often to write.
    pub(super) fn beat_period(&self) -> Duration {
        self.timeout.min(self.ttl) / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: Duration = ms(4_000);

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(0).plus(ms(1_000_000 + millis))
    }

    /// The deadline of a session that lives from `base`: 4 s less 42 ms.
    fn from(base: u64) -> Instant {
        at(base + 3_958)
    }

    fn stamps(ttl: Duration) -> Stamps {
        Stamps::new(at(0), P, ttl)
    }

    #[test]
    fn g2_a_fresh_session_lives_from_before_it_was_asked_for() {
        assert_eq!(stamps(P).deadline(), from(0));
    }

    #[test]
    fn g1_a_session_lives_on_the_earlier_of_two_answered_writes_and_not_on_the_last() {
        let mut stamps = stamps(P);
        stamps.answered(at(1_000));
        assert_eq!(stamps.deadline(), from(0));
        stamps.answered(at(2_000));
        assert_eq!(stamps.deadline(), from(1_000));
        stamps.answered(at(3_000));
        assert_eq!(stamps.deadline(), from(2_000));
    }

    #[test]
    fn g1_two_writes_that_are_close_together_prove_nothing() {
        let mut stamps = stamps(P);
        stamps.answered(at(1_500));
        stamps.answered(at(2_499));
        assert_eq!(stamps.deadline(), from(0));
        stamps.answered(at(2_500));
        assert_eq!(stamps.deadline(), from(1_500));
    }

    #[test]
    fn g1_a_long_silence_between_two_writes_makes_only_the_earlier_one_count() {
        let mut stamps = stamps(P);
        stamps.answered(at(1_000));
        stamps.answered(at(60_000));
        assert_eq!(stamps.deadline(), from(1_000));
        stamps.answered(at(61_000));
        assert_eq!(stamps.deadline(), from(60_000));
    }

    #[test]
    fn g2_answers_out_of_order_never_move_the_deadline_back() {
        let mut stamps = stamps(P);
        stamps.answered(at(1_000));
        stamps.answered(at(3_000));
        let deadline = stamps.deadline();
        assert_eq!(deadline, from(1_000));
        stamps.answered(at(2_000));
        assert_eq!(stamps.deadline(), deadline);
        stamps.answered(at(4_000));
        assert_eq!(stamps.deadline(), from(3_000));
    }

    #[test]
    fn g2_where_the_ensemble_grants_more_than_the_ttl_the_ttl_counts_from_the_last_write() {
        let mut stamps = stamps(ms(1_000));
        // 1 s less 12 ms.
        assert_eq!(stamps.deadline(), at(988));
        stamps.answered(at(250));
        assert_eq!(stamps.deadline(), at(1_238));
        assert_eq!(stamps.beat_period(), ms(250));
    }

    #[test]
    fn g2_where_the_ensemble_grants_less_than_the_ttl_its_own_timeout_counts() {
        let mut stamps = stamps(ms(30_000));
        stamps.answered(at(1_000));
        assert_eq!(stamps.deadline(), from(0));
        assert_eq!(stamps.beat_period(), ms(1_000));
    }

    #[test]
    fn g2_steady_beats_keep_half_the_timeout_at_least_and_few_marks() {
        for beat in [1, 7, 250, 999, 1_000] {
            let mut stamps = stamps(P);
            let mut now = 0;
            while now < 40_000 {
                now += beat;
                stamps.answered(at(now));
                // Just before the next beat, and with a mark left out.
                let left = at(now + beat).until(stamps.deadline());
                assert!(
                    left >= ms(4_000 - 42 - 1_000 - 1_000 - 2 * 63 - beat.min(1_000)),
                    "{beat} {now} {left:?}"
                );
                assert!(stamps.marks.len() <= MARKS_PER_GAP as usize + 3, "{}", stamps.marks.len());
            }
        }
    }
}
