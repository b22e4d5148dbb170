//! How long things count: deadlines, their margin, and the pace of a contender.
//!
//! The one place where a granted period becomes a local deadline (guarantee G2).

use std::time::Duration;

use crate::clock::Instant;

/// What is taken off a period, for clocks that run at different rates.
pub(crate) fn margin(period: Duration) -> Duration {
    period / 100 + Duration::from_millis(2)
}

/// The instant until which a grant of `period` is certainly ours, when the request that was
/// answered with it was sent at `sent` (taken before it was sent).
pub(crate) fn deadline(sent: Instant, period: Duration) -> Instant {
    sent.plus(period.saturating_sub(margin(period)))
}

/// W: for how long a hand-off first grants, so that a dead contender is passed over soon.
pub(crate) fn claim_window(ttl: Duration) -> Duration {
    ttl.min(Duration::from_secs(5))
}

/// How long a grant or a renewal lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// A full ttl, counted from the instant before its request was sent.
    FullTtl,
    /// Until this instant, margin taken off: the backend keeps sessions, and knows more about
    /// them than one request tells.
    Until(Instant),
}

impl Term {
    /// Until when a lease of this ttl is certainly ours.
    pub(crate) fn deadline(self, sent: Instant, ttl: Duration) -> Instant {
        match self {
            Term::FullTtl => deadline(sent, ttl),
            Term::Until(instant) => instant,
        }
    }
}

/// The pace of a contender, which depends on what a look costs its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    longest_look_period: Duration,
    longest_sign_of_life: Duration,
}

impl Pace {
    /// A look is cheap.
    pub(crate) const BRISK: Pace = Pace {
        longest_look_period: Duration::from_secs(2),
        longest_sign_of_life: Duration::from_secs(6),
    };
    /// Each look is a write that a majority of servers has to confirm. A sign of life outlives an
    /// election between two looks.
    #[cfg(feature = "mongodb")]
    pub(crate) const SPARING: Pace = Pace {
        longest_look_period: Duration::from_secs(10),
        longest_sign_of_life: Duration::from_secs(25),
    };

    /// P: how often a contender looks, which is also its sign of life.
    pub(crate) fn look_period(self, ttl: Duration) -> Duration {
        (ttl / 3).min(self.longest_look_period)
    }

    /// D: for how long a sign of life counts. Longer than two looks, so one may be lost.
    pub(crate) fn sign_of_life(self, ttl: Duration) -> Duration {
        ttl.min(self.longest_sign_of_life)
    }

    /// How long one request for a lock of this ttl may take: two tries fit into a sign of life.
    pub(crate) fn request_limit(self, ttl: Duration, request_timeout: Duration) -> Duration {
        self.look_period(ttl).min(request_timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn g2_the_deadline_is_the_send_instant_plus_the_period_less_its_margin() {
        let sent = Instant::from_nanos(1_000_000_000);
        // 30 s - (300 ms + 2 ms)
        assert_eq!(deadline(sent, ms(30_000)), sent.plus(ms(29_698)));
        assert_eq!(deadline(sent, ms(100)), sent.plus(ms(97)));
        assert_eq!(deadline(sent, ms(1)), sent);
    }

    #[test]
    fn g4_windows_and_paces_stay_inside_their_bounds() {
        for (ttl, window, look, life) in [
            (ms(30_000), ms(5_000), ms(2_000), ms(6_000)),
            (ms(6_000), ms(5_000), ms(2_000), ms(6_000)),
            (ms(3_000), ms(3_000), ms(1_000), ms(3_000)),
        ] {
            assert_eq!(claim_window(ttl), window);
            assert_eq!(Pace::BRISK.look_period(ttl), look);
            assert_eq!(Pace::BRISK.sign_of_life(ttl), life);
            assert!(Pace::BRISK.request_limit(ttl, ms(2_000)) * 2 < life);
        }
    }

    #[test]
    #[cfg(feature = "mongodb")]
    fn g4_a_sparing_sign_of_life_outlives_an_election_between_two_looks() {
        for (ttl, look, life) in [
            (ms(60_000), ms(10_000), ms(25_000)),
            (ms(24_000), ms(8_000), ms(24_000)),
            (ms(3_000), ms(1_000), ms(3_000)),
        ] {
            assert_eq!(Pace::SPARING.look_period(ttl), look);
            assert_eq!(Pace::SPARING.sign_of_life(ttl), life);
        }
    }

    #[test]
    fn g2_a_term_counts_from_the_send_instant_unless_the_backend_says_until_when() {
        let sent = Instant::from_nanos(1_000_000_000);
        assert_eq!(Term::FullTtl.deadline(sent, ms(30_000)), sent.plus(ms(29_698)));
        let until = sent.plus(ms(700));
        assert_eq!(Term::Until(until).deadline(sent, ms(30_000)), until);
    }
}
