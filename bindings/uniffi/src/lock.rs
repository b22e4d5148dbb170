//! A lock.

use std::sync::Arc;
use std::time::Duration;

use fencelock::Result;
use fencelock_shared::duration::{TTL, WAIT, from_seconds};

use crate::claim::{Attempt, Wait};
use crate::client::Open;
use crate::error::FencelockError;

/// Options of a lock; what is not given has its default.
#[derive(Clone, Debug, uniffi::Record)]
pub struct LockOptions {
    /// Seconds; 30 if not given.
    pub ttl: Option<f64>,
    /// Whether the watchdog renews it.
    pub renew: bool,
    /// Seconds after which renewal ends.
    pub max_hold: Option<f64>,
    /// A short text that `inspect` shows.
    pub metadata: Option<String>,
}

impl LockOptions {
    pub(crate) fn checked(self) -> Result<fencelock::LockOptions> {
        let max_hold = seconds(self.max_hold, "max_hold", "a time longer than ttl, or none")?;
        let mut options = fencelock::LockOptions::new().renew(self.renew).max_hold(max_hold);
        if let Some(ttl) = seconds(self.ttl, "ttl", TTL)? {
            options = options.ttl(ttl);
        }
        if let Some(text) = self.metadata {
            options = options.metadata(text);
        }
        Ok(options)
    }
}

fn seconds(seconds: Option<f64>, what: &str, allowed: &str) -> Result<Option<Duration>> {
    seconds.map(|seconds| from_seconds(seconds, what, allowed)).transpose()
}

/// A name plus options.
#[derive(uniffi::Object)]
pub struct Lock {
    lock: fencelock::Lock,
    client: Arc<Open>,
}

impl Lock {
    pub(crate) fn new(lock: fencelock::Lock, client: Arc<Open>) -> Self {
        Lock { lock, client }
    }
}

#[uniffi::export]
impl Lock {
    /// Prepares to wait for the lock, for ever or for so many seconds.
    pub fn acquire(
        &self,
        timeout: Option<f64>,
    ) -> std::result::Result<Arc<Attempt>, FencelockError> {
        let limit = seconds(timeout, "timeout", WAIT)?;
        Ok(Attempt::new(self.lock.clone(), self.client.clone(), Wait::Within(limit)))
    }

    /// Prepares to ask once, without a place in the queue.
    pub fn try_acquire(&self) -> Arc<Attempt> {
        Attempt::new(self.lock.clone(), self.client.clone(), Wait::Once)
    }
}
