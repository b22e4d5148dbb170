//! fencelock for C. What stands here is what `include/fencelock.h` declares: `header/` makes the
//! one from the other, comments included. It translates types, errors and cancelling between C and
//! the core, and decides nothing.
//!
//! Nothing that C holds is an address: each opaque pointer is a handle (`fencelock_shared::handles`)
//! in the clothes of a pointer, so a wrong one is an error and not a crash.

// The names are those of C.
#![allow(non_camel_case_types)]
// What a caller has to keep to stands in the comment of each function, for readers of C; the part
// that concerns memory is the same everywhere and stands in `header/preamble.h`.
#![allow(clippy::missing_safety_doc)]

mod call;
pub mod client;
pub mod errors;
pub mod info;
pub mod lease;
pub mod lock;
pub mod log;
pub mod operation;
pub mod options;
mod place;
mod text;
pub mod version;

#[cfg(feature = "test-hooks")]
pub mod test_hooks;
