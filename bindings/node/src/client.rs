//! A client.

use std::sync::Arc;

use fencelock::{ClientOptions, LockOptions};
use fencelock_shared::{OpenClient, duration, panic};
use napi::Env;
use napi_derive::napi;

use crate::bridge::{Bridge, Call};
use crate::convert;
use crate::errors::{Thrown, thrown};
use crate::lock::Lock;
use crate::value::{Reply, Value};

/// Options of a client. Times in milliseconds.
#[napi(object, object_to_js = false)]
pub(crate) struct ConnectOptions {
    pub connect_timeout: Option<f64>,
    pub request_timeout: Option<f64>,
    pub prefix: Option<String>,
    pub collection: Option<String>,
    pub root: Option<String>,
    pub node_layout: Option<String>,
}

/// Options of a lock. Times in milliseconds.
#[napi(object, object_to_js = false)]
pub struct NewLock {
    pub ttl: Option<f64>,
    pub renew: Option<bool>,
    pub max_hold: Option<f64>,
    pub metadata: Option<String>,
}

impl ConnectOptions {
    fn read(self) -> fencelock::Result<ClientOptions> {
        let mut options = ClientOptions::new().language("node");
        let allowed = duration::CLIENT_TIMEOUT;
        if let Some(time) = convert::time(self.connect_timeout, "connect_timeout", allowed)? {
            options = options.connect_timeout(time);
        }
        if let Some(time) = convert::time(self.request_timeout, "request_timeout", allowed)? {
            options = options.request_timeout(time);
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

impl NewLock {
    fn read(self) -> fencelock::Result<LockOptions> {
        let mut options = LockOptions::new();
        if let Some(ttl) = convert::time(self.ttl, "ttl", duration::TTL)? {
            options = options.ttl(ttl);
        }
        if let Some(renew) = self.renew {
            options = options.renew(renew);
        }
        options = options.max_hold(convert::time(self.max_hold, "max_hold", convert::MAX_HOLD)?);
        if let Some(text) = self.metadata {
            options = options.metadata(text);
        }
        Ok(options)
    }
}

/// Connects to a backend.
#[napi(catch_unwind)]
pub(crate) fn connect(
    env: Env,
    bridge: &Bridge,
    wait: bool,
    url: Option<String>,
    options: ConnectOptions,
) -> Result<Reply, Thrown> {
    let options = options.read().map_err(|e| thrown(&e))?;
    let work = async move { OpenClient::connect(url, options).await.map(Value::Client) };
    bridge.make(env, wait, Call::new(work))
}

/// A client; JavaScript's class of that name has one.
#[napi]
pub struct Client(Arc<OpenClient>);

impl Client {
    pub(crate) fn new(client: Arc<OpenClient>) -> Self {
        Client(client)
    }
}

#[napi]
impl Client {
    /// A lock. No I/O.
    #[napi(catch_unwind)]
    pub fn lock(&self, name: String, options: NewLock) -> Result<Lock, Thrown> {
        let lock = panic::catch(|| self.0.lock_with(&name, options.read()?));
        Ok(Lock::new(self.0.clone(), lock.map_err(|e| thrown(&e))?))
    }

    /// What the backend knows of a name.
    #[napi(catch_unwind)]
    pub fn inspect(&self, env: Env, bridge: &Bridge, name: String) -> Result<Reply, Thrown> {
        let client = self.0.clone();
        let work = async move { client.inspect(&name).await.map(Value::Info) };
        bridge.make(env, false, Call::new(work))
    }

    /// All names that are held.
    #[napi(catch_unwind)]
    pub fn list(&self, env: Env, bridge: &Bridge) -> Result<Reply, Thrown> {
        let client = self.0.clone();
        let work = async move { client.list().await.map(Value::Infos) };
        bridge.make(env, false, Call::new(work))
    }

    /// Ends the lease that holds a name.
    #[napi(catch_unwind)]
    pub fn force_release(&self, env: Env, bridge: &Bridge, name: String) -> Result<Reply, Thrown> {
        let client = self.0.clone();
        let work = async move { client.force_release(&name).await.map(Value::Flag) };
        bridge.make(env, false, Call::new(work))
    }

    /// Releases all leases, ends all waits, closes the connections.
    #[napi(catch_unwind)]
    pub fn close(&self, env: Env, bridge: &Bridge, wait: bool) -> Result<Reply, Thrown> {
        let client = self.0.clone();
        let work = async move {
            client.close().await;
            Ok(Value::Nothing)
        };
        bridge.make(env, wait, Call::new(work))
    }

    /// Whether it was closed.
    #[napi(getter)]
    pub fn closed(&self) -> bool {
        self.0.is_closed()
    }
}
