//! What a contender concludes from answers and pushes. No I/O and no clock of its own: the rules
//! that carry exclusion (G1, G2, G5) are decided here and tested with plain numbers.

use std::time::Duration;

use crate::backend::{Look, Queued};
use crate::clock::Instant;
use crate::period::{Pace, claim_window, deadline};
use crate::token::Token;

/// How often the first in line looks behind a foreign holder, which will not wake it.
const FOREIGN_POLL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// How often a contender asks for a place in a queue that is full.
#[cfg(feature = "mongodb")]
const FULL_QUEUE: Duration = Duration::from_secs(2);

/// One contender, from its first request until it holds, ends or starts again.
pub(crate) struct Contender {
    ttl: Duration,
    pace: Pace,
    /// The last answer "queued" and the instant before its request was sent.
    heard: Option<(Instant, Queued)>,
    /// The highest token that was pushed.
    pushed: u64,
    foreign_poll: Duration,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The lock is ours.
    Hold(Grant),
    /// Look at once.
    Look,
    /// Look at this instant, unless something arrives before.
    Wait(Instant),
    /// This place has ended: begin again with a new owner id.
    StartAgain,
    /// The lock is not free, and we do not queue.
    Busy,
}

/// A lease that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) token: Token,
    /// The instant before the request was sent from whose answer the grant counts.
    pub(crate) sent: Instant,
    pub(crate) deadline: Instant,
    /// Granted by a hand-off, so only for the claim window.
    pub(crate) handed_off: bool,
}

impl Contender {
    pub(crate) fn new(ttl: Duration, pace: Pace) -> Self {
        Contender { ttl, pace, heard: None, pushed: 0, foreign_poll: FOREIGN_POLL.0 }
    }

    /// The request sent at `sent` was answered. Only for the one outstanding request: the answer
    /// of a request that was given up is dropped before it gets here.
    ///
    /// `jitter` lengthens the next look, so that contenders do not march in step.
    pub(crate) fn answered(
        &mut self,
        sent: Instant,
        look: Look,
        now: Instant,
        jitter: Duration,
    ) -> Step {
        match look {
            Look::Granted(token, term) => {
                let deadline = term.deadline(sent, self.ttl);
                if now < deadline {
                    Step::Hold(Grant { token, sent, deadline, handed_off: false })
                } else {
                    Step::StartAgain
                }
            }
            Look::Queued(queued) => {
                self.heard = Some((sent, queued));
                self.claim(now).unwrap_or_else(|| self.next_look(queued, now, jitter))
            }
            Look::Busy => Step::Busy,
            Look::Gone => Step::StartAgain,
            #[cfg(feature = "mongodb")]
            Look::Full => Step::Wait(now.plus(FULL_QUEUE + jitter)),
        }
    }

    /// A grant was pushed. `None`: it does not count, or not yet.
    pub(crate) fn pushed(&mut self, token: u64, now: Instant) -> Option<Step> {
        self.pushed = self.pushed.max(token);
        self.claim(now)
    }

    /// Whether an answer has said that we have a place, so that from now on we only look.
    pub(crate) fn was_queued(&self) -> bool {
        self.heard.is_some()
    }

    /// A push counts only after an answer "queued" and with a token that a grant after that
    /// answer can have; an older one may have lapsed and been given to somebody else. Its period
    /// counts from that answer's request, never from the push: the grant came after the answer,
    /// but how long the push was under way nobody knows.
    fn claim(&self, now: Instant) -> Option<Step> {
        let (sent, queued) = self.heard?;
        let token = Token::new(self.pushed).filter(|t| t.get() >= queued.floor)?;
        let window = claim_window(self.ttl);
        let deadline = deadline(sent, window);
        Some(if now.until(deadline) < window / 3 {
            Step::Look
        } else {
            Step::Hold(Grant { token, sent, deadline, handed_off: true })
        })
    }

    fn next_look(&mut self, queued: Queued, now: Instant, jitter: Duration) -> Step {
        let period = self.pace.look_period(self.ttl);
        let wait = if queued.first && queued.foreign {
            let poll = self.foreign_poll;
            self.foreign_poll = (poll * 2).min(FOREIGN_POLL.1);
            poll.min(period)
        } else if queued.first && queued.remaining.is_some_and(|left| left < period) {
            // A holder that died is not going to wake us.
            queued.remaining.unwrap_or_default() + Duration::from_millis(1)
        } else if queued.remaining == Some(Duration::ZERO) {
            // The server stopped in the middle of a long row of dead contenders.
            FOREIGN_POLL.0.min(period)
        } else {
            period + jitter
        };
        Step::Wait(now.plus(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::period::Term;

    const TTL: Duration = ms(30_000);
    /// W of this ttl less its margin: 5 s - (50 ms + 2 ms).
    const WINDOW: Duration = ms(4_948);

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(0).plus(ms(1_000_000 + millis))
    }

    fn token(n: u64) -> Token {
        Token::new(n).unwrap()
    }

    fn granted(n: u64) -> Look {
        Look::Granted(token(n), Term::FullTtl)
    }

    fn queued(floor: u64) -> Look {
        Look::Queued(Queued { remaining: Some(TTL), floor, first: false, foreign: false })
    }

    fn handed_off(n: u64, sent: Instant) -> Step {
        Step::Hold(Grant { token: token(n), sent, deadline: sent.plus(WINDOW), handed_off: true })
    }

    #[test]
    fn g2_a_granted_answer_counts_from_the_send_instant_of_its_request() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        let step = contender.answered(at(0), granted(7), at(900), ms(0));
        let grant = Grant { token: token(7), sent: at(0), deadline: at(29_698), handed_off: false };
        assert_eq!(step, Step::Hold(grant));
    }

    #[test]
    fn g1_a_granted_answer_that_comes_after_its_deadline_is_not_a_lease() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        let step = contender.answered(at(0), granted(7), at(29_698), ms(0));
        assert_eq!(step, Step::StartAgain);
    }

    #[test]
    fn g1_a_push_counts_from_the_last_answered_look_and_for_the_claim_window() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        contender.answered(at(0), queued(5), at(1), ms(0));
        assert_eq!(contender.pushed(5, at(1_500)), Some(handed_off(5, at(0))));
    }

    #[test]
    fn g1_a_push_before_any_answer_waits_for_it() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        assert_eq!(contender.pushed(5, at(1)), None);
        let step = contender.answered(at(0), queued(5), at(2), ms(0));
        assert_eq!(step, handed_off(5, at(0)));
    }

    #[test]
    fn g1_a_push_with_a_token_below_the_floor_is_an_old_grant() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        assert_eq!(contender.pushed(5, at(1)), None);
        let step = contender.answered(at(2), queued(6), at(3), ms(0));
        assert_eq!(step, Step::Wait(at(2_003)));
        assert_eq!(contender.pushed(5, at(4)), None);
        assert_eq!(contender.pushed(6, at(5)), Some(handed_off(6, at(2))));
    }

    #[test]
    fn g1_a_claim_with_less_than_a_third_of_the_window_left_looks_again() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        contender.answered(at(0), queued(5), at(1), ms(0));
        assert_eq!(contender.pushed(5, at(3_282)), Some(Step::Look));
        // It finds the lease ours, for a full ttl from that look on.
        let step = contender.answered(at(3_282), granted(5), at(3_283), ms(0));
        let sent = at(3_282);
        let grant =
            Grant { token: token(5), sent, deadline: sent.plus(ms(29_698)), handed_off: false };
        assert_eq!(step, Step::Hold(grant));
    }

    #[test]
    fn g1_a_short_ttl_bounds_the_claim_window() {
        let mut contender = Contender::new(ms(1_000), Pace::BRISK);
        contender.answered(at(0), queued(5), at(1), ms(0));
        let grant = Grant { token: token(5), sent: at(0), deadline: at(988), handed_off: true };
        assert_eq!(contender.pushed(5, at(2)), Some(Step::Hold(grant)));
    }

    #[test]
    fn g4_contenders_look_every_two_seconds_and_jitter_only_lengthens() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        assert_eq!(contender.answered(at(0), queued(1), at(1), ms(150)), Step::Wait(at(2_151)));
    }

    #[test]
    fn g4_the_first_in_line_also_looks_when_the_holders_time_is_over() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        let first = |left| {
            Look::Queued(Queued { remaining: Some(left), floor: 1, first: true, foreign: false })
        };
        assert_eq!(contender.answered(at(0), first(ms(400)), at(1), ms(9)), Step::Wait(at(402)));
        assert_eq!(
            contender.answered(at(0), first(ms(9_000)), at(1), ms(0)),
            Step::Wait(at(2_001))
        );
    }

    #[test]
    fn g4_the_first_behind_a_foreign_holder_polls_ever_more_slowly() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        let foreign =
            Look::Queued(Queued { remaining: None, floor: 1, first: true, foreign: true });
        let waits: Vec<_> =
            (0..7).map(|_| contender.answered(at(0), foreign, at(0), ms(99))).collect();
        let expected: Vec<_> = [10, 20, 40, 80, 160, 200, 200].map(|n| Step::Wait(at(n))).to_vec();
        assert_eq!(waits, expected);
    }

    #[test]
    fn g5_a_place_that_is_gone_starts_again() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        contender.answered(at(0), queued(1), at(1), ms(0));
        assert_eq!(contender.answered(at(2), Look::Gone, at(3), ms(0)), Step::StartAgain);
        assert_eq!(
            Contender::new(TTL, Pace::BRISK).answered(at(0), Look::Busy, at(1), ms(0)),
            Step::Busy
        );
    }

    #[test]
    fn g2_a_granted_answer_may_say_until_when_the_lease_lasts() {
        let mut contender = Contender::new(TTL, Pace::BRISK);
        let look = Look::Granted(token(7), Term::Until(at(500)));
        assert_eq!(contender.answered(at(0), look, at(500), ms(0)), Step::StartAgain);
        let grant = Grant { token: token(7), sent: at(0), deadline: at(500), handed_off: false };
        assert_eq!(contender.answered(at(0), look, at(499), ms(0)), Step::Hold(grant));
    }

    #[test]
    #[cfg(feature = "mongodb")]
    fn g4_a_full_queue_is_asked_again_after_two_seconds_without_a_place() {
        let mut contender = Contender::new(TTL, Pace::SPARING);
        assert_eq!(contender.answered(at(0), Look::Full, at(1), ms(9)), Step::Wait(at(2_010)));
        assert!(!contender.was_queued());
    }
}
