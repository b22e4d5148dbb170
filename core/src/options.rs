//! Options of clients and locks, and the table of what is allowed.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};

const DAY: Duration = Duration::from_secs(24 * 3600);
const TTL: RangeInclusive<Duration> = Duration::from_millis(100)..=DAY;
const CLIENT_TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(3600);
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
const MAX_METADATA_BYTES: usize = 256;

/// Options of a lock: a cheap value, checked by
/// [`Client::lock_with`](crate::Client::lock_with) before any I/O.
///
/// | option | default | allowed |
/// |---|---|---|
/// | `ttl` | 30 s | 100 ms to 24 h, whole milliseconds (the rest is cut off) |
/// | `renew` | `true` | `false` = a fixed lease that ends at ttl |
/// | `max_hold` | none | longer than ttl |
/// | `metadata` | host, pid, language | up to 256 bytes without control characters |
#[derive(Clone, Debug)]
pub struct LockOptions {
    pub(crate) ttl: Duration,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) metadata: Option<Arc<str>>,
}

impl Default for LockOptions {
    fn default() -> Self {
        LockOptions { ttl: Duration::from_secs(30), renew: true, max_hold: None, metadata: None }
    }
}

impl LockOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the backend keeps a lease without renewal. Default 30 s; 100 ms to 24 h.
    ///
    /// After a crash of the holder, others wait this long.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Whether the watchdog renews the lease. Default `true`.
    ///
    /// With `false` the lease ends at ttl, unless [`Lease::renew`](crate::Lease::renew) sets it
    /// to a full ttl again.
    #[must_use]
    pub fn renew(mut self, renew: bool) -> Self {
        self.renew = renew;
        self
    }

    /// The longest time that a lease may be held, however often it is renewed. Default: none.
    ///
    /// The lease is lost when that time is over: the guard against a holder that hangs.
    #[must_use]
    pub fn max_hold(mut self, max_hold: impl Into<Option<Duration>>) -> Self {
        self.max_hold = max_hold.into();
        self
    }

    /// A short text that [`inspect`](crate::Client::inspect) shows with the holder.
    /// Default: host, process id and language.
    #[must_use]
    pub fn metadata(mut self, text: impl Into<Arc<str>>) -> Self {
        self.metadata = Some(text.into());
        self
    }

    pub(crate) fn checked(mut self) -> Result<Self> {
        if !TTL.contains(&self.ttl) {
            return Err(Error::invalid(format!(
                "ttl is {:?}; allowed are 100 ms to 24 h",
                self.ttl
            )));
        }
        // The backends count milliseconds; the local deadline must not count more than they do.
        self.ttl = Duration::from_millis(self.ttl.as_millis() as u64);
        if let Some(max_hold) = self.max_hold
            && max_hold <= self.ttl
        {
            return Err(Error::invalid(format!(
                "max_hold is {max_hold:?}; it must be longer than the ttl of {:?}",
                self.ttl
            )));
        }
        if let Some(text) = &self.metadata {
            check_metadata(text)?;
        }
        Ok(self)
    }
}

fn check_metadata(text: &str) -> Result<()> {
    if text.len() > MAX_METADATA_BYTES || text.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "metadata has {} bytes; allowed are up to {MAX_METADATA_BYTES} bytes of UTF-8 without control characters",
            text.len()
        )));
    }
    Ok(())
}

/// A wait: `None` = for ever, zero = one attempt, else 10 years at most.
///
/// For bindings, whose locks carry a wait of their own: it is refused when the lock is made.
#[doc(hidden)]
pub fn check_timeout(timeout: Option<Duration>) -> Result<()> {
    match timeout {
        Some(timeout) if timeout > LONGEST_WAIT => {
            Err(Error::invalid(format!("timeout is {timeout:?}; allowed are 0 to 10 years")))
        }
        _ => Ok(()),
    }
}

/// Options of a client. Options in the URL (`fl.prefix=` …) hold unless they are set here.
///
/// | option | in the URL | default | allowed |
/// |---|---|---|---|
/// | `connect_timeout` | `fl.connect_timeout_ms` | 5 s | 1 ms to 1 h |
/// | `request_timeout` | `fl.request_timeout_ms` | 2 s | 1 ms to 1 h |
/// | `prefix` (Redis) | `fl.prefix` | `fencelock:` | no NUL; no braces or one cluster hash tag |
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) prefix: Option<String>,
    pub(crate) language: Option<&'static str>,
}

impl ClientOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The limit for making the first connection, and for an acquire that never gets an answer.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// The limit for one request. A request for a lock waits a third of its ttl at most.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// What stands before the name in the key (Redis). Empty is allowed: then the key is the name.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// The language that the default metadata names. For bindings.
    #[doc(hidden)]
    #[must_use]
    pub fn language(mut self, language: &'static str) -> Self {
        self.language = Some(language);
        self
    }

    /// Options set here win over `url`'s.
    pub(crate) fn or(self, url: ClientOptions) -> Self {
        ClientOptions {
            connect_timeout: self.connect_timeout.or(url.connect_timeout),
            request_timeout: self.request_timeout.or(url.request_timeout),
            prefix: self.prefix.or(url.prefix),
            language: self.language.or(url.language),
        }
    }

    pub(crate) fn settled(self) -> Result<Settings> {
        let settings = Settings {
            connect_timeout: self.connect_timeout.unwrap_or(Duration::from_secs(5)),
            request_timeout: self.request_timeout.unwrap_or(Duration::from_secs(2)),
            prefix: self.prefix.unwrap_or_else(|| "fencelock:".to_owned()),
            metadata: default_metadata(self.language.unwrap_or("rust")),
        };
        for (what, value) in [
            ("connect_timeout", settings.connect_timeout),
            ("request_timeout", settings.request_timeout),
        ] {
            if !CLIENT_TIMEOUT.contains(&value) {
                return Err(Error::invalid(format!(
                    "{what} is {value:?}; allowed are 1 ms to 1 h"
                )));
            }
        }
        Ok(settings)
    }
}

/// Client options after checking, with the defaults filled in.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) connect_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) prefix: String,
    /// What locks without metadata of their own show.
    pub(crate) metadata: Arc<str>,
}

fn default_metadata(language: &str) -> Arc<str> {
    let uname = rustix::system::uname();
    let host: String =
        uname.nodename().to_string_lossy().chars().filter(|c| !c.is_control()).take(64).collect();
    format!("host={host} pid={} lang={language}", std::process::id()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T>) -> &'static str {
        result.err().map_or("ok", |e| e.kind().code())
    }

    #[test]
    fn g10_ttl_and_max_hold_are_checked_and_cut_to_milliseconds() {
        let ms = Duration::from_millis;
        for (ttl, expected) in [
            (Duration::ZERO, "INVALID_ARGUMENT"),
            (Duration::from_nanos(1), "INVALID_ARGUMENT"),
            (ms(99), "INVALID_ARGUMENT"),
            (ms(100), "ok"),
            (ms(1500), "ok"),
            (DAY, "ok"),
            (DAY + ms(1), "INVALID_ARGUMENT"),
            (Duration::from_millis(1 << 53), "INVALID_ARGUMENT"),
            (Duration::MAX, "INVALID_ARGUMENT"),
        ] {
            assert_eq!(code(LockOptions::new().ttl(ttl).checked()), expected, "{ttl:?}");
        }
        let cut = LockOptions::new().ttl(Duration::from_micros(1_500_900)).checked().unwrap();
        assert_eq!(cut.ttl, ms(1500));
        let lock = LockOptions::new().ttl(ms(200));
        assert_eq!(code(lock.clone().max_hold(ms(200)).checked()), "INVALID_ARGUMENT");
        assert_eq!(code(lock.clone().max_hold(ms(201)).checked()), "ok");
        assert_eq!(code(lock.clone().metadata("a\nb").checked()), "INVALID_ARGUMENT");
        assert_eq!(code(lock.metadata("x".repeat(257)).checked()), "INVALID_ARGUMENT");
    }

    #[test]
    fn g10_waits_are_at_most_ten_years() {
        assert_eq!(code(check_timeout(None)), "ok");
        assert_eq!(code(check_timeout(Some(Duration::ZERO))), "ok");
        assert_eq!(code(check_timeout(Some(LONGEST_WAIT))), "ok");
        assert_eq!(code(check_timeout(Some(Duration::MAX))), "INVALID_ARGUMENT");
    }
}
