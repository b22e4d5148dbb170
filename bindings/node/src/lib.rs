//! The native module of the Node package: it translates types, errors and cancellation between
//! JavaScript and the core, and decides nothing. The public classes are JavaScript (`lib/`).

mod bridge;
mod client;
mod convert;
mod errors;
mod lease;
mod lock;
mod value;
mod warnings;

use fencelock::ErrorKind;
use fencelock_shared::{log, panic, runtime};
use napi::Env;
use napi_derive::napi;

use crate::bridge::{Bridge, Call};
use crate::errors::{Thrown, thrown};
use crate::value::Reply;

/// Prepares this process for calls; harmless when done again, as each worker thread does.
#[napi]
pub fn start() {
    log::install(warnings::hand_over);
    panic::log_panics();
}

/// The version of the native module, which must be that of the package.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Releases all leases, ends all waits and refuses new work: what the exit of the process does.
#[napi(catch_unwind)]
pub fn close_all() {
    runtime::close_all();
}

/// The codes of all kinds of errors, so that a test can compare them with the classes.
#[napi]
pub fn error_codes() -> Vec<&'static str> {
    ErrorKind::ALL.iter().map(|kind| kind.code()).collect()
}

/// A call that panics, for the test that this ends as an error.
#[napi(catch_unwind)]
pub fn panic_in_call_for_test(env: Env, bridge: &Bridge, wait: bool) -> Result<Reply, Thrown> {
    bridge.make(env, wait, Call::new(async { panic!("asked for by a test") }))
}

/// A function that panics, for the test that this ends as an error.
#[napi(catch_unwind)]
pub fn panic_for_test() {
    panic!("asked for by a test")
}

/// Throws if this is no time limit of a wait.
#[napi(catch_unwind)]
pub fn check_wait(timeout: Option<f64>) -> Result<(), Thrown> {
    convert::wait(timeout).map(drop).map_err(|e| thrown(&e))
}
