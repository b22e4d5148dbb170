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

/// P: how often a contender looks, which is also its sign of life.
pub(crate) fn look_period(ttl: Duration) -> Duration {
    (ttl / 3).min(Duration::from_secs(2))
}

/// D: for how long a sign of life counts. At most three looks, so one may be lost.
pub(crate) fn sign_of_life(ttl: Duration) -> Duration {
    ttl.min(Duration::from_secs(6))
}

/// How long one request for a lock of this ttl may take: two tries fit into a sign of life.
pub(crate) fn request_limit(ttl: Duration, request_timeout: Duration) -> Duration {
    look_period(ttl).min(request_timeout)
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
            assert_eq!(look_period(ttl), look);
            assert_eq!(sign_of_life(ttl), life);
            assert!(request_limit(ttl, ms(2_000)) * 2 < life);
        }
    }
}
