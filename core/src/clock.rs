//! The clock that deadlines are counted on. It counts time spent suspended and is never set.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_BOOTTIME counts time spent suspended; macOS' CLOCK_MONOTONIC does the same there.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// An instant in nanoseconds since boot.
#[cfg_attr(feature = "file", derive(serde::Serialize, serde::Deserialize))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    pub(crate) const NEVER: Instant = Instant(u64::MAX);

    pub(crate) fn now() -> Self {
        let now = clock_gettime(CLOCK);
        Instant(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Saturates: an instant beyond the range is never reached.
    pub(crate) fn plus(self, span: Duration) -> Self {
        Instant(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The time from `self` until `later`; zero when `later` has passed.
    pub(crate) fn until(self, later: Instant) -> Duration {
        Duration::from_nanos(later.0.saturating_sub(self.0))
    }
}

/// Wakes one task at an [`Instant`], also when the machine was suspended meanwhile: tokio's own
/// timers stand still then, and a lost lease would be reported late by the time slept.
pub(crate) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: tokio::io::unix::AsyncFd<rustix::fd::OwnedFd>,
    #[cfg(target_os = "linux")]
    armed: Instant,
}

#[cfg(target_os = "linux")]
impl Alarm {
    /// Must be called inside a tokio runtime with I/O enabled.
    pub(crate) fn new() -> std::io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Boottime, flags)?;
        // Deprecated for types whose descriptor can change under the reactor. An OwnedFd cannot,
        // and the replacement needs unsafe code, which this crate forbids.
        #[expect(deprecated)]
        let timer = tokio::io::unix::AsyncFd::new(fd)?;
        Ok(Alarm { timer, armed: Instant::NEVER })
    }

    /// Returns at or after `when`; [`Instant::NEVER`] never returns. Cancel-safe.
    pub(crate) async fn until(&mut self, when: Instant) -> std::io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        if self.armed != when {
            let nanos = if when == Instant::NEVER { 0 } else { when.0.max(1) };
            let value = Timespec {
                tv_sec: (nanos / 1_000_000_000) as i64,
                tv_nsec: (nanos % 1_000_000_000) as i64,
            };
            let once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let spec = Itimerspec { it_interval: once, it_value: value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
            self.armed = when;
        }
        while Instant::now() < when {
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0; 8];
            if rustix::io::read(&self.timer, &mut expirations).is_err() {
                ready.clear_ready();
            }
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Alarm {})
    }

    /// Sleeps in slices, so that a suspended machine wakes at most one slice late.
    pub(crate) async fn until(&mut self, when: Instant) -> std::io::Result<()> {
        loop {
            let left = Instant::now().until(when);
            if left.is_zero() {
                return Ok(());
            }
            tokio::time::sleep(left.min(Duration::from_millis(100))).await;
        }
    }
}

/// Microseconds since 1970: for tokens of backends without a server, never for a deadline.
#[cfg(any(feature = "memory", feature = "file"))]
pub(crate) fn unix_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g2_an_instant_saturates_instead_of_wrapping() {
        let now = Instant::now();
        assert_eq!(now.plus(Duration::MAX), Instant::NEVER);
        assert_eq!(Instant::NEVER.until(now), Duration::ZERO);
        assert_eq!(now.until(now.plus(Duration::from_millis(7))), Duration::from_millis(7));
    }

    #[tokio::test]
    async fn g2_the_alarm_wakes_at_its_instant_and_can_be_moved_earlier() {
        let mut alarm = Alarm::new().unwrap();
        let start = Instant::now();
        let far = tokio::time::timeout(
            Duration::from_millis(5),
            alarm.until(start.plus(Duration::from_secs(3600))),
        );
        assert!(far.await.is_err());
        alarm.until(start.plus(Duration::from_millis(20))).await.unwrap();
        assert!(start.until(Instant::now()) >= Duration::from_millis(20));
        alarm.until(start).await.unwrap();
    }
}
