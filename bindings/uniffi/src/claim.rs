//! What the host claims when it knows that it has it.
//!
//! uniffi forgets what a call has returned when the host was cancelled just before it took it: the number
//! of a lease that is renewed for ever. So no call that can be cancelled returns a lease or a client. It
//! leaves it here, and the host, which cannot be cancelled in a plain call, takes it from here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencelock_shared::{Cancel, OpenClient};

use crate::call::run;
use crate::client::{Client, Open};
use crate::error::FencelockError;
use crate::host::Language;
use crate::lease::Lease;

/// The place of one result, which is dropped with it.
struct Place<T>(Mutex<Option<T>>);

impl<T> Place<T> {
    fn empty() -> Self {
        Place(Mutex::new(None))
    }

    fn put(&self, value: Option<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// One attempt to take a lock. Freed, it withdraws; a lease that nobody claimed is released.
#[derive(uniffi::Object)]
pub struct Attempt {
    lock: fencelock::Lock,
    client: Arc<Open>,
    wait: Wait,
    cancel: Cancel,
    lease: Place<fencelock::Lease>,
}

/// How an attempt goes.
pub(crate) enum Wait {
    Once,
    Within(Option<Duration>),
}

impl Attempt {
    pub(crate) fn new(lock: fencelock::Lock, client: Arc<Open>, wait: Wait) -> Arc<Self> {
        let (cancel, lease) = (Cancel::new(), Place::empty());
        Arc::new(Attempt { lock, client, wait, cancel, lease })
    }
}

#[uniffi::export]
impl Attempt {
    /// Waits until there is a lease to claim; false if one request was all, and somebody else holds
    /// the lock.
    pub async fn granted(&self) -> Result<bool, FencelockError> {
        let (lock, cancelled) = (self.lock.clone(), self.cancel.cancelled());
        let lease = match self.wait {
            Wait::Once => run(async move { lock.try_acquire().await }).await?,
            Wait::Within(limit) => {
                Some(run(async move { lock.acquire_unless(limit, cancelled).await }).await?)
            }
        };
        let granted = lease.is_some();
        self.lease.put(lease);
        Ok(granted)
    }

    /// The lease, once.
    pub fn claim(&self) -> Option<Arc<Lease>> {
        self.lease.take().map(|lease| Arc::new(Lease::new(lease, self.client.clone())))
    }

    /// Ends the wait, which then fails with `Cancelled`; a lease that was not claimed is released.
    pub fn cancel(&self) {
        self.cancel.cancel();
        drop(self.lease.take());
    }
}

/// One attempt to connect. Freed, it gives up; a client that nobody claimed is closed.
#[derive(uniffi::Object)]
pub struct Connecting {
    url: Option<String>,
    options: fencelock::ClientOptions,
    language: Language,
    client: Place<Arc<OpenClient>>,
}

impl Connecting {
    pub(crate) fn new(
        url: Option<String>,
        options: fencelock::ClientOptions,
        language: Language,
    ) -> Arc<Self> {
        Arc::new(Connecting { url, options, language, client: Place::empty() })
    }
}

#[uniffi::export]
impl Connecting {
    /// Waits until there is a client to claim.
    pub async fn connected(&self) -> Result<(), FencelockError> {
        let connecting = OpenClient::connect(self.url.clone(), self.options.clone());
        let client = run(connecting).await?;
        self.client.put(Some(client));
        Ok(())
    }

    /// The client, once.
    pub fn claim(&self) -> Option<Arc<Client>> {
        self.client.take().map(|client| Arc::new(Client::new(client, self.language)))
    }
}
