//! A lock.

use std::sync::Arc;

use fencelock_shared::OpenClient;
use fencelock_shared::duration::WAIT;
use fencelock_shared::handles::{self, Handled};
use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JLongArray};
use jni::sys::{jint, jlong};

use crate::call::{Value, begin, unless};
use crate::{at_once, bytes};

/// What a lock's handle stands for.
pub(crate) struct Lock {
    pub(crate) lock: fencelock::Lock,
    pub(crate) client: Arc<OpenClient>,
}

impl Handled for Lock {
    const WHAT: &'static str = "lock";
}

/// Fails if this is no time limit of a wait.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_checkTimeout<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    seconds: jlong,
    nanos: jint,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    at_once(&mut env, &out, |_| {
        fencelock::check_timeout(bytes::time(seconds, nanos, "timeout", WAIT)?)?;
        Ok(Value::Nothing)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_acquire<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    handle: jlong,
    seconds: jlong,
    nanos: jint,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |_, cancelled| {
        let lock = handles::get::<Lock>(handle as u64)?;
        let timeout = bytes::time(seconds, nanos, "timeout", WAIT)?;
        fencelock::check_timeout(timeout)?;
        Ok(async move {
            let lease = lock.lock.acquire_unless(timeout, cancelled).await?;
            Ok(Value::Lease(lock.client.clone(), lease))
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_tryAcquire<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    ticket: jlong,
    handle: jlong,
    out: JLongArray<'l>,
) -> JByteArray<'l> {
    begin(&mut env, &out, ticket, |_, cancelled| {
        let lock = handles::get::<Lock>(handle as u64)?;
        Ok(async move {
            Ok(match unless(cancelled, lock.lock.try_acquire()).await? {
                Some(lease) => Value::Lease(lock.client.clone(), lease),
                None => Value::Nothing,
            })
        })
    })
}

/// Java refers to the lock no more.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_freeLock(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
) {
    crate::lease::free::<Lock>(handle);
}
