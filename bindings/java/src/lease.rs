//! A lease.

use std::sync::Arc;

use fencelock::{Ended, Error, ErrorKind};
use fencelock_shared::handles::{self, Handled};
use fencelock_shared::{OpenClient, panic};
use jni::EnvUnowned;
use jni::errors::ThrowRuntimeExAndDefault;
use jni::objects::{JByteArray, JClass, JLongArray};
use jni::sys::jlong;

use crate::at_once;
use crate::call::{Value, begin, unless};

/// What a lease's handle stands for. Dropped, it releases.
pub(crate) struct Lease {
    lease: fencelock::Lease,
    /// The exit of the process must find a held lease, also when Java has dropped its client.
    _client: Arc<OpenClient>,
}

impl Lease {
    pub(crate) fn new(lease: fencelock::Lease, client: Arc<OpenClient>) -> Self {
        Lease { lease, _client: client }
    }
}

impl Handled for Lease {
    const WHAT: &'static str = "lease";
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_token(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
) -> jlong {
    handles::get::<Lease>(handle as u64).map_or(0, |lease| lease.lease.token().get() as jlong)
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_owner<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
) -> JByteArray<'l> {
    env.with_env(|env| {
        let owner = handles::get::<Lease>(handle as u64).map(|lease| lease.lease.owner());
        env.byte_array_from_slice(owner.unwrap_or_default().as_bytes())
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_isHeld(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
) -> bool {
    handles::get::<Lease>(handle as u64).is_ok_and(|lease| lease.lease.is_held())
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_isLost(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
) -> bool {
    handles::get::<Lease>(handle as u64).is_ok_and(|lease| lease.lease.is_lost())
}

/// Nanoseconds.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_remaining(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
) -> jlong {
    handles::get::<Lease>(handle as u64)
        .map_or(0, |lease| lease.lease.remaining().as_nanos().try_into().unwrap_or(jlong::MAX))
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_check<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    at_once(&mut env, &out, |_| {
        handles::get::<Lease>(handle as u64)?.lease.check()?;
        Ok(Value::Nothing)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_renew<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    handle: jlong,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |_, cancelled| {
        let lease = handles::get::<Lease>(handle as u64)?;
        Ok(async move {
            unless(cancelled, lease.lease.renew()).await?;
            Ok(Value::Nothing)
        })
    })
}

/// Not to be cancelled: clean-up never ends with the caller.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_release<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    handle: jlong,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |_, _| {
        let lease = handles::get::<Lease>(handle as u64)?;
        Ok(async move {
            lease.lease.release().await?;
            Ok(Value::Nothing)
        })
    })
}

/// Waits for the end of the lease: it succeeds if it was lost, and is cancelled by its release.
/// Does not keep the lease.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_watch<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    handle: jlong,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |_, cancelled| {
        let watch = handles::get::<Lease>(handle as u64)?.lease.watch();
        Ok(unless(cancelled, async move {
            match watch.ended().await {
                Ended::Lost => Ok(Value::Nothing),
                Ended::Released => {
                    Err(Error::new(ErrorKind::Cancelled, "the lease was released, not lost"))
                }
            }
        }))
    })
}

/// Releases in the background what is still held: for a lease that nobody got, and after an end.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_freeLease(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
) {
    free::<Lease>(handle);
}

/// What is dropped here may panic, and nobody waits for an answer.
pub(crate) fn free<T: Handled>(handle: jlong) {
    let _ = panic::catch(|| handles::take::<T>(handle as u64).map(drop));
}
