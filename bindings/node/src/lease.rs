//! A lease. Unlike in languages that count references, one that is collected as garbage is not
//! released: the collector decides when, and the work that the lock protects may still run.

use std::cell::Cell;
use std::sync::Arc;

use fencelock::{Ended, Error, ErrorKind};
use fencelock_shared::{OpenClient, Runtime, panic};
use napi::Env;
use napi::bindgen_prelude::BigInt;
use napi_derive::napi;

use crate::bridge::{Bridge, Call};
use crate::errors::{Thrown, thrown};
use crate::value::{Reply, Value};

/// A held lock; JavaScript's class of that name has one.
#[napi]
pub struct Lease {
    lease: Arc<fencelock::Lease>,
    client: Arc<OpenClient>,
    /// A release was asked for. The core knows a moment later, when its task begins.
    released: Cell<bool>,
}

impl Lease {
    pub(crate) fn new(client: Arc<OpenClient>, lease: fencelock::Lease) -> Self {
        Lease { lease: Arc::new(lease), client, released: Cell::new(false) }
    }

    fn is_held(&self) -> bool {
        !self.released.get() && self.lease.is_held()
    }
}

#[napi]
impl Lease {
    /// The name of the lock.
    #[napi(getter)]
    pub fn name(&self) -> &str {
        self.lease.name()
    }

    /// The owner id.
    #[napi(getter)]
    pub fn owner(&self) -> String {
        self.lease.owner()
    }

    /// The fencing token.
    #[napi(getter)]
    pub fn token(&self) -> BigInt {
        self.lease.token().get().into()
    }

    /// Whether the lock is ours now.
    #[napi(getter)]
    pub fn held(&self) -> bool {
        self.is_held()
    }

    /// Whether the lease was lost.
    #[napi(getter)]
    pub fn lost(&self) -> bool {
        self.lease.is_lost()
    }

    /// Milliseconds for which the lock is certainly ours.
    #[napi(getter)]
    pub fn remaining(&self) -> f64 {
        if self.is_held() { self.lease.remaining().as_secs_f64() * 1e3 } else { 0.0 }
    }

    /// Throws unless the lease is held.
    #[napi(catch_unwind)]
    pub fn check(&self) -> Result<(), Thrown> {
        let held = panic::catch(|| {
            self.lease.check()?;
            if self.released.get() {
                let what = format!("lock {:?}: the lease was released", self.lease.name());
                return Err(Error::new(ErrorKind::Lost, what));
            }
            Ok(())
        });
        held.map_err(|e| thrown(&e))
    }

    /// Sets the lease to a full ttl.
    #[napi(catch_unwind)]
    pub fn renew(&self, env: Env, bridge: &Bridge) -> Result<Reply, Thrown> {
        let lease = self.lease.clone();
        let work = async move { lease.renew().await.map(|()| Value::Nothing) };
        bridge.make(env, false, Call::new(work))
    }

    /// Releases the lock.
    #[napi(catch_unwind)]
    pub fn release(&self, env: Env, bridge: &Bridge, wait: bool) -> Result<Reply, Thrown> {
        self.released.set(true);
        let lease = self.lease.clone();
        let work = async move { lease.release().await.map(|()| Value::Nothing) };
        bridge.make(env, wait, Call::new(work))
    }

    /// Releases in the background: nobody has got this lease.
    #[napi(catch_unwind)]
    pub fn abandon(&self) {
        self.released.set(true);
        if let Ok(runtime) = Runtime::current() {
            let lease = self.lease.clone();
            drop(runtime.spawn(async move { drop(lease.release().await) }));
        }
    }

    /// The end of the lease: true if it was lost, false if it was released. Does not keep the
    /// process alive.
    #[napi(catch_unwind)]
    pub fn ended(&self, env: Env, bridge: &Bridge) -> Result<Reply, Thrown> {
        let watch = self.lease.watch();
        let work = async move { Ok(Value::Flag(watch.ended().await == Ended::Lost)) };
        bridge.make(env, false, Call::watching(work))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.is_held() {
            return;
        }
        let Ok(runtime) = Runtime::current() else { return };
        tracing::warn!(
            lock = ?self.lease.name(),
            token = self.lease.token().get(),
            "a lease that nobody refers to any more is still held; release leases, or use `using`"
        );
        // Its client too, so that the exit of the process finds it.
        let (lease, client) = (self.lease.clone(), self.client.clone());
        drop(runtime.spawn(async move {
            lease.ended().await;
            drop((lease, client));
        }));
    }
}
