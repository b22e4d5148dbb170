//! A lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fencelock::Ended;

use crate::call::{run, run_to_the_end};
use crate::client::Open;
use crate::error::FencelockError;
use crate::host::Language;

/// A held lock.
#[derive(uniffi::Object)]
pub struct Lease {
    lease: Arc<fencelock::Lease>,
    client: Arc<Open>,
    /// Whether the host has said that it is done.
    let_go: AtomicBool,
}

impl Lease {
    pub(crate) fn new(lease: fencelock::Lease, client: Arc<Open>) -> Self {
        Lease { lease: Arc::new(lease), client, let_go: AtomicBool::new(false) }
    }
}

#[uniffi::export]
impl Lease {
    /// The name of the lock.
    pub fn name(&self) -> String {
        self.lease.name().to_owned()
    }

    /// The owner id, as `inspect` shows it.
    pub fn owner(&self) -> String {
        self.lease.owner()
    }

    /// The fencing token.
    pub fn token(&self) -> u64 {
        self.lease.token().get()
    }

    /// Whether the lock is ours now, by the clock.
    pub fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// Whether it was lost.
    pub fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    /// For how many seconds the lock is certainly ours without another renewal.
    pub fn remaining(&self) -> f64 {
        self.lease.remaining().as_secs_f64()
    }

    /// An error unless the lock is ours.
    pub fn check(&self) -> Result<(), FencelockError> {
        Ok(self.lease.check()?)
    }

    /// Waits for the end of the lease; whether it was lost. Does not keep it.
    pub async fn ended(&self) -> Result<bool, FencelockError> {
        let watch = self.lease.watch();
        run(async move { Ok(watch.ended().await == Ended::Lost) }).await
    }

    /// Sets the lease to a full ttl from now.
    pub async fn renew(&self) -> Result<(), FencelockError> {
        let lease = self.lease.clone();
        run(async move { lease.renew().await }).await
    }

    /// Releases the lock; goes on when nobody waits for it any more.
    pub async fn release(&self) -> Result<(), FencelockError> {
        let lease = self.lease.clone();
        run_to_the_end(async move { lease.release().await }).await
    }

    /// Releases in the background what is still held when this is freed.
    pub fn let_go(&self) {
        self.let_go.store(true, Ordering::Release);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let collected = self.client.language == Language::Kotlin;
        if collected && self.lease.is_held() && !self.let_go.load(Ordering::Acquire) {
            tracing::warn!(
                lock = %self.lease.name(),
                token = self.lease.token().get(),
                "nothing refers to this lease any more, and it was not released; it is held until its client is closed",
            );
            self.client.keep(self.lease.clone());
        }
    }
}
