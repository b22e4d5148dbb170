//! What every binding needs and core must not know: the runtime, the clients that are open, handles,
//! cancelling, error codes, panics, durations and the way of warnings into the host's log.
//!
//! A binding translates types, errors and cancellation. Whatever decides about locks is in core.

pub mod cancel;
pub mod clients;
pub mod codes;
pub mod duration;
pub mod exit;
pub mod handles;
pub mod log;
pub mod panic;
pub mod runtime;
pub mod signals;

pub use cancel::Cancel;
pub use clients::OpenClient;
pub use runtime::Runtime;
