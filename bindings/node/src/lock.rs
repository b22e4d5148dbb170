//! A lock.

use std::sync::Arc;

use fencelock_shared::OpenClient;
use napi::Env;
use napi_derive::napi;

use crate::bridge::{Bridge, Call, Cancel};
use crate::convert;
use crate::errors::{Thrown, thrown};
use crate::value::{Reply, Value};

/// A lock; JavaScript's class of that name has one.
#[napi]
pub struct Lock {
    client: Arc<OpenClient>,
    lock: fencelock::Lock,
}

impl Lock {
    pub(crate) fn new(client: Arc<OpenClient>, lock: fencelock::Lock) -> Self {
        Lock { client, lock }
    }
}

#[napi]
impl Lock {
    /// Waits for the lock; no `timeout` = for ever.
    #[napi(catch_unwind)]
    pub fn acquire(
        &self,
        env: Env,
        bridge: &Bridge,
        wait: bool,
        timeout: Option<f64>,
        cancel: Option<&Cancel>,
    ) -> Result<Reply, Thrown> {
        let timeout = convert::wait(timeout).map_err(|e| thrown(&e))?;
        let (client, lock) = (self.client.clone(), self.lock.clone());
        let cancelled = Cancel::cancelled(cancel);
        let work = async move {
            let lease = lock.acquire_unless(timeout, cancelled).await?;
            Ok(Value::Lease(client, lease))
        };
        bridge.make(env, wait, Call::new(work))
    }

    /// One attempt.
    #[napi(catch_unwind)]
    pub fn try_acquire(&self, env: Env, bridge: &Bridge, wait: bool) -> Result<Reply, Thrown> {
        let (client, lock) = (self.client.clone(), self.lock.clone());
        let work = async move {
            Ok(match lock.try_acquire().await? {
                Some(lease) => Value::Lease(client, lease),
                None => Value::Nothing,
            })
        };
        bridge.make(env, wait, Call::new(work))
    }
}
