//! The clients that are open in this process, so that its exit can close them.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fencelock::{Client, ClientOptions, Error, ErrorKind, Result};
use futures_util::future::join_all;

use crate::runtime::{self, Runtime};

/// A client, known to the runtime for as long as anything of the host refers to it. Locks and
/// leases of a binding each keep an `Arc` of it: a held lease must be found at exit even when the
/// host has dropped its client.
pub struct OpenClient {
    client: Client,
    pid: u32,
}

impl OpenClient {
    /// Connects on the runtime of this process, to `url` or else to `FENCELOCK_URL`.
    ///
    /// # Errors
    ///
    /// Those of [`Client::connect_with`]; `Closed` when the process is ending.
    pub async fn connect(url: Option<String>, options: ClientOptions) -> Result<Arc<Self>> {
        let runtime = Runtime::current()?;
        let client = match url {
            Some(url) => Client::connect_with(&url, options).await?,
            None => Client::from_env_with(options).await?,
        };
        let open = Arc::new(OpenClient { client, pid: std::process::id() });
        if let Err(error) = runtime.clients.add(&open) {
            open.client.close().await;
            return Err(error);
        }
        Ok(open)
    }

    /// An error in a process that was forked from the client's. Costs no I/O and takes no lock, so
    /// a binding asks this before it starts anything in the child (G9).
    pub fn check_process(&self) -> Result<()> {
        if self.pid == std::process::id() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Forked,
            "this client or lease belongs to the parent of this forked process; connect a new client here",
        ))
    }
}

impl Drop for OpenClient {
    /// The host has dropped all that was the client's. What is being released for that still is when
    /// the process ends right now.
    fn drop(&mut self) {
        if self.pid != std::process::id() || self.client.is_settled() {
            return;
        }
        let Some(runtime) = Runtime::existing() else { return };
        let client = self.client.clone();
        runtime.clients.leaves(client.clone());
        drop(runtime.spawn(async move {
            client.settled().await;
            runtime.clients.has_left();
        }));
    }
}

impl Deref for OpenClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

#[derive(Default)]
pub(crate) struct Clients {
    open: Mutex<Vec<Weak<OpenClient>>>,
    /// Those that the host has dropped and whose releases are under way.
    leaving: Mutex<Vec<Client>>,
}

impl Clients {
    fn add(&self, client: &Arc<OpenClient>) -> Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the same mutex under which `close_all` takes the list, or a client that connects
        // just then would be missed.
        runtime::check_open()?;
        open.retain(|client| client.strong_count() > 0);
        open.push(Arc::downgrade(client));
        Ok(())
    }

    fn leaves(&self, client: Client) {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner).push(client);
    }

    fn has_left(&self) {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|client| !client.is_settled());
    }

    pub(crate) async fn close_all(&self, limit: Duration) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        let open: Vec<_> = open.iter().filter_map(Weak::upgrade).collect();
        let leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let all = open.iter().map(|client| &client.client).chain(&leaving);
        let closing = join_all(all.map(Client::close));
        let _ = tokio::time::timeout(limit, closing).await;
    }
}
