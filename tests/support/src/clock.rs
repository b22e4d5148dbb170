//! Clocks that several processes of one machine can compare.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since boot, the clock that leases count on; the same in every process.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Microseconds since 1970, the clock of a server on this machine.
pub fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_micros() as u64)
}

/// From one instant of [`now`] to another, in milliseconds; negative when `to` comes first.
pub fn ms_between(from: u64, to: u64) -> f64 {
    (to as i64 - from as i64) as f64 / 1e6
}

/// Milliseconds as a duration.
pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
