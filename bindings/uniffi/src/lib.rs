//! What Kotlin and Swift call: it translates types, errors and cancellation between them and the core,
//! and decides nothing. What people see is written by hand above it (`kotlin/`, `swift/`).
//!
//! Times cross as seconds, which is what Swift counts in; the core's own checks say what is allowed.

mod call;
mod claim;
mod client;
mod error;
mod host;
mod info;
mod lease;
mod lock;

pub use claim::{Attempt, Connecting};
pub use client::{Client, ClientOptions, connect};
pub use error::{FencelockError, fail_for_test};
pub use host::{Language, Logger, Severity, prepare, version};
pub use info::{LockInfo, LockState, WaiterInfo};
pub use lease::Lease;
pub use lock::{Lock, LockOptions};

uniffi::setup_scaffolding!("fencelock");
