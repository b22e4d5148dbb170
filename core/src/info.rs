//! What `inspect` and `list` show.

use std::time::Duration;

use crate::token::Token;

/// The state of a name as the backend sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockState {
    /// Nobody holds it.
    Free,
    /// A lease of this library holds it.
    Held,
    /// A client of another kind holds it.
    Foreign,
}

impl LockState {
    /// `"free"`, `"held"` or `"foreign"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            LockState::Free => "free",
            LockState::Held => "held",
            LockState::Foreign => "foreign",
        }
    }
}

/// What a backend knows of one name at one instant. For people and tools, never for decisions:
/// it may be out of date when it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockInfo {
    /// The name of the lock.
    pub name: String,
    /// Who holds it, if anybody.
    pub state: LockState,
    /// The owner id of the holder, 32 hexadecimal digits; of a foreign holder its value.
    pub owner: Option<String>,
    /// The fencing token of the lease; none for a foreign holder.
    pub token: Option<Token>,
    /// For how long it has been held.
    pub held: Option<Duration>,
    /// What is left of the holder's time; none if it has no limit, or nobody holds it.
    pub ttl_left: Option<Duration>,
    /// What the holder said of itself.
    pub metadata: Option<String>,
    /// Who waits, in the order of service.
    pub queue: Vec<WaiterInfo>,
}

/// One contender of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaiterInfo {
    /// The owner id, 32 hexadecimal digits.
    pub owner: String,
    /// For how long it has been waiting.
    pub waiting: Duration,
    /// What it said of itself.
    pub metadata: Option<String>,
}
