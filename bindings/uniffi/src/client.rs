//! A client.

use std::sync::{Arc, Mutex, PoisonError};

use fencelock::Result;
use fencelock_shared::OpenClient;
use fencelock_shared::duration::{CLIENT_TIMEOUT, from_seconds};

use crate::call::{run, run_to_the_end};
use crate::claim::Connecting;
use crate::error::FencelockError;
use crate::host::Language;
use crate::info::LockInfo;
use crate::lock::{Lock, LockOptions};

/// Options of a client; what is not given has its default.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct ClientOptions {
    /// Seconds.
    pub connect_timeout: Option<f64>,
    /// Seconds.
    pub request_timeout: Option<f64>,
    /// Redis: what keys begin with.
    pub prefix: Option<String>,
    /// MongoDB: `database.collection`.
    pub collection: Option<String>,
    /// ZooKeeper: the path below which locks are.
    pub root: Option<String>,
    /// ZooKeeper: `curator`, `kazoo` or `plain`.
    pub node_layout: Option<String>,
}

/// Connection(s) to one backend.
#[derive(uniffi::Object)]
pub struct Client(Arc<Open>);

/// What locks and leases keep of their client.
pub(crate) struct Open {
    pub(crate) client: Arc<OpenClient>,
    pub(crate) language: Language,
}

/// Leases that the host has forgotten while they were held, with their clients, which it may have
/// forgotten as well. They end with `max_hold`, with a client that is closed, or with the process.
static ORPHANS: Mutex<Vec<(Arc<Open>, Arc<fencelock::Lease>)>> = Mutex::new(Vec::new());

impl Open {
    pub(crate) fn keep(self: &Arc<Self>, orphan: Arc<fencelock::Lease>) {
        forget_ended(Some((self.clone(), orphan)));
    }
}

fn forget_ended(new: Option<(Arc<Open>, Arc<fencelock::Lease>)>) {
    let mut orphans = ORPHANS.lock().unwrap_or_else(PoisonError::into_inner);
    let all = std::mem::take(&mut *orphans).into_iter().chain(new);
    let (held, ended): (Vec<_>, Vec<_>) = all.partition(|(_, lease)| lease.is_held());
    *orphans = held;
    drop(orphans);
    // Only now: with the last of them, a client ends.
    drop(ended);
}

/// Prepares to connect to `url`, or else to what `FENCELOCK_URL` says.
#[uniffi::export]
pub fn connect(
    url: Option<String>,
    options: ClientOptions,
    language: Language,
) -> std::result::Result<Arc<Connecting>, FencelockError> {
    Ok(Connecting::new(url, options.of(language)?, language))
}

impl Client {
    pub(crate) fn new(client: Arc<OpenClient>, language: Language) -> Self {
        Client(Arc::new(Open { client, language }))
    }
}

#[uniffi::export]
impl Client {
    /// A lock: a name plus options, which holds nothing.
    pub fn lock(
        &self,
        name: String,
        options: LockOptions,
    ) -> std::result::Result<Arc<Lock>, FencelockError> {
        let lock = self.0.client.lock_with(&name, options.checked()?)?;
        Ok(Arc::new(Lock::new(lock, self.0.clone())))
    }

    /// What the backend knows of a name.
    pub async fn inspect(&self, name: String) -> std::result::Result<LockInfo, FencelockError> {
        let client = self.0.client.clone();
        Ok(run(async move { client.inspect(&name).await }).await?.into())
    }

    /// All locks that are held or waited for.
    pub async fn list(&self) -> std::result::Result<Vec<LockInfo>, FencelockError> {
        let client = self.0.client.clone();
        let infos = run(async move { client.list().await }).await?;
        Ok(infos.into_iter().map(LockInfo::from).collect())
    }

    /// Ends the lease that holds the name; false if none does.
    pub async fn force_release(&self, name: String) -> std::result::Result<bool, FencelockError> {
        let client = self.0.client.clone();
        run(async move { client.force_release(&name).await }).await
    }

    /// Releases all leases and ends all waits. Not named `close`, which is Kotlin's word for freeing this.
    pub async fn end(&self) -> std::result::Result<(), FencelockError> {
        let client = self.0.client.clone();
        run_to_the_end(async move {
            client.close().await;
            forget_ended(None);
            Ok(())
        })
        .await
    }

    /// Panics, for the test that this ends as an error.
    pub async fn panic_for_test(&self) -> std::result::Result<(), FencelockError> {
        run(async { panic!("asked for by a test") }).await
    }
}

impl ClientOptions {
    fn of(self, language: Language) -> Result<fencelock::ClientOptions> {
        let mut options = fencelock::ClientOptions::new().language(language.name());
        if let Some(seconds) = self.connect_timeout {
            options =
                options.connect_timeout(from_seconds(seconds, "connect_timeout", CLIENT_TIMEOUT)?);
        }
        if let Some(seconds) = self.request_timeout {
            options =
                options.request_timeout(from_seconds(seconds, "request_timeout", CLIENT_TIMEOUT)?);
        }
        if let Some(prefix) = self.prefix {
            options = options.prefix(prefix);
        }
        if let Some(collection) = self.collection {
            options = options.collection(collection);
        }
        if let Some(root) = self.root {
            options = options.root(root);
        }
        if let Some(layout) = self.node_layout {
            options = options.node_layout(layout.parse()?);
        }
        Ok(options)
    }
}
