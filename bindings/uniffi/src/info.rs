//! What a look at a name shows.

use fencelock_shared::duration::to_millis;

/// Who holds a lock.
#[derive(Clone, Copy, Debug, uniffi::Enum)]
pub enum LockState {
    /// Nobody.
    Free,
    /// A lease of this library.
    Held,
    /// Another client of the same key.
    Foreign,
}

/// What the backend knew of one name at one instant.
#[derive(Clone, Debug, uniffi::Record)]
pub struct LockInfo {
    /// The name of the lock.
    pub name: String,
    /// Who holds it.
    pub state: LockState,
    /// The owner id of the holder; of a foreign one its value.
    pub owner: Option<String>,
    /// The fencing token.
    pub token: Option<u64>,
    /// For how long it is held, in milliseconds.
    pub held_ms: Option<i64>,
    /// How long it stays without renewal, in milliseconds.
    pub ttl_left_ms: Option<i64>,
    /// The text that the holder's lock was made with.
    pub metadata: Option<String>,
    /// Who waits, in order of service.
    pub queue: Vec<WaiterInfo>,
}

/// One contender.
#[derive(Clone, Debug, uniffi::Record)]
pub struct WaiterInfo {
    /// The owner id of this place in the queue.
    pub owner: String,
    /// For how long it has been waiting, in milliseconds.
    pub waiting_ms: i64,
    /// The text that its lock was made with.
    pub metadata: Option<String>,
}

impl From<fencelock::LockInfo> for LockInfo {
    fn from(info: fencelock::LockInfo) -> Self {
        LockInfo {
            name: info.name,
            state: match info.state {
                fencelock::LockState::Free => LockState::Free,
                fencelock::LockState::Held => LockState::Held,
                _ => LockState::Foreign,
            },
            owner: info.owner,
            token: info.token.map(|token| token.get()),
            held_ms: info.held.map(to_millis),
            ttl_left_ms: info.ttl_left.map(to_millis),
            metadata: info.metadata,
            queue: info.queue.into_iter().map(WaiterInfo::from).collect(),
        }
    }
}

impl From<fencelock::WaiterInfo> for WaiterInfo {
    fn from(waiter: fencelock::WaiterInfo) -> Self {
        WaiterInfo {
            owner: waiter.owner,
            waiting_ms: to_millis(waiter.waiting),
            metadata: waiter.metadata,
        }
    }
}
