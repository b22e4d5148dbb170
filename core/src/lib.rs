#![doc = include_str!("contract.md")]

mod acquire;
mod backend;
pub mod blocking;
mod client;
mod clock;
mod contender;
mod error;
mod info;
mod lease;
mod lock;
mod name;
mod options;
mod owner;
mod period;
mod process;
mod schedule;
mod token;
mod url;
mod wakeups;
mod watchdog;

pub use client::Client;
pub use error::{Error, ErrorKind, Result};
pub use info::{LockInfo, LockState, WaiterInfo};
pub use lease::{Ended, Lease, Watch};
pub use lock::Lock;
#[doc(hidden)]
pub use options::check_timeout;
pub use options::{ClientOptions, LockOptions, NodeLayout};
pub use token::Token;

/// The README's examples are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
