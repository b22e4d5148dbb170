//! The native library of the Java package: it translates types, errors and cancellation between
//! Java and the core, and decides nothing. The public classes are Java (`java/`).
//!
//! It looks up no class and calls no method of Java, and none of its threads is ever attached to
//! the JVM: an attached thread would keep the JVM from exiting, and class loaders in fat jars are
//! full of surprises. All that crosses is numbers and bytes; texts are UTF-8.

mod bytes;
mod call;
mod client;
mod completions;
mod lease;
mod lock;

use std::sync::Once;

use fencelock::ErrorKind;
use fencelock_shared::{exit, log, panic};
use jni::EnvUnowned;
use jni::errors::ThrowRuntimeExAndDefault;
use jni::objects::{JByteArray, JClass, JLongArray};
use jni::sys::jlong;

use crate::bytes::Writer;
use crate::call::{Value, answer, begin};

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_prepare(_: EnvUnowned<'_>, _: JClass<'_>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::install(completions::log);
        panic::log_panics();
        exit::release_at_exit();
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_version<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
) -> JByteArray<'l> {
    env.with_env(|env| env.byte_array_from_slice(env!("CARGO_PKG_VERSION").as_bytes()))
        .resolve::<ThrowRuntimeExAndDefault>()
}

/// The codes of all kinds of errors, so that a test can compare them with the classes.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_errorCodes<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
) -> JByteArray<'l> {
    env.with_env(|env| {
        let codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        env.byte_array_from_slice(codes.join(" ").as_bytes())
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// How many handles are open, for tests of leaks.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_openHandles(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
) -> jlong {
    fencelock_shared::handles::open() as jlong
}

/// A call that panics, at once or later, for the test that this ends as an error.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_panicForTest<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    later: bool,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |_, cancelled| {
        if !later {
            panic!("asked for by a test");
        }
        Ok(async move {
            cancelled.await;
            panic!("asked for by a test")
        })
    })
}

/// Writes an error as what it is asked to explain; see `Errors` in Java.
pub(crate) fn explain(error: &fencelock::Error) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.text(error.kind().code());
    writer.text(&error.to_string());
    writer.maybe_text(std::error::Error::source(error).map(ToString::to_string).as_deref());
    writer.finish()
}

/// An answer that is known at once.
pub(crate) fn at_once<'l>(
    env: &mut EnvUnowned<'l>,
    out: &JLongArray<'l>,
    work: impl FnOnce(&mut jni::Env<'l>) -> fencelock::Result<Value>,
) -> JByteArray<'l> {
    env.with_env(|env| {
        let outcome = panic::catch(|| work(env));
        answer(env, out, Some(outcome.into()))
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}
