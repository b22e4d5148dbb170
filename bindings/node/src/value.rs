//! What an operation gives. Made into JavaScript values only on the thread of its environment.

use std::sync::Arc;
use std::time::Duration;

use fencelock_shared::OpenClient;
use napi::bindgen_prelude::{BigInt, Either6};
use napi_derive::napi;

use crate::bridge::Number;
use crate::client::Client;
use crate::lease::Lease;

pub(crate) enum Value {
    Nothing,
    Flag(bool),
    Client(Arc<OpenClient>),
    Lease(Arc<OpenClient>, fencelock::Lease),
    Info(fencelock::LockInfo),
    Infos(Vec<fencelock::LockInfo>),
}

/// The value of a call that has ended, or the number of one that has begun; null = nothing.
pub(crate) type Reply = Option<Either6<Number, bool, Client, Lease, LockInfo, Vec<LockInfo>>>;

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        match value {
            Value::Nothing => None,
            Value::Flag(flag) => Some(Either6::B(flag)),
            Value::Client(client) => Some(Either6::C(Client::new(client))),
            Value::Lease(client, lease) => Some(Either6::D(Lease::new(client, lease))),
            Value::Info(info) => Some(Either6::E(info.into())),
            Value::Infos(infos) => Some(Either6::F(infos.into_iter().map(Into::into).collect())),
        }
    }
}

/// What a backend knows of a name.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct LockInfo {
    /// The name.
    pub name: String,
    /// `free`, `held` or `foreign`.
    pub state: &'static str,
    /// Who holds it.
    pub owner: Option<String>,
    /// The fencing token.
    pub token: Option<BigInt>,
    /// For how long it has been held.
    pub held_ms: Option<f64>,
    /// What is left of the holder's time.
    pub ttl_left_ms: Option<f64>,
    /// What the holder said of itself.
    pub metadata: Option<String>,
    /// Who waits.
    pub queue: Vec<WaiterInfo>,
}

/// One contender of a queue.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct WaiterInfo {
    /// Who waits.
    pub owner: String,
    /// For how long.
    pub waiting_ms: f64,
    /// What it said of itself.
    pub metadata: Option<String>,
}

impl From<fencelock::LockInfo> for LockInfo {
    fn from(info: fencelock::LockInfo) -> Self {
        LockInfo {
            name: info.name,
            state: info.state.as_str(),
            owner: info.owner,
            token: info.token.map(|token| token.get().into()),
            held_ms: info.held.map(millis),
            ttl_left_ms: info.ttl_left.map(millis),
            metadata: info.metadata,
            queue: info.queue.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<fencelock::WaiterInfo> for WaiterInfo {
    fn from(waiter: fencelock::WaiterInfo) -> Self {
        WaiterInfo {
            owner: waiter.owner,
            waiting_ms: millis(waiter.waiting),
            metadata: waiter.metadata,
        }
    }
}

/// Whole milliseconds; JavaScript's numbers are exact far beyond any time that a lock knows.
fn millis(duration: Duration) -> f64 {
    duration.as_millis() as f64
}
