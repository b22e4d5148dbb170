//! The ends of calls and the lines of the log, on their way to the one Java thread that takes them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

use fencelock_shared::log::Severity;
use jni::EnvUnowned;
use jni::errors::ThrowRuntimeExAndDefault;
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray};
use jni::sys::{jint, jlong};

use crate::call::Done;

/// The ticket of what is no end of a call but a line for the log; its status is how bad it is.
const LOG: jlong = 0;

static QUEUE: Mutex<VecDeque<(jlong, Done)>> = Mutex::new(VecDeque::new());
static FILLED: Condvar = Condvar::new();

pub(crate) fn push(ticket: jlong, done: Done) {
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    queue.push_back((ticket, done));
    drop(queue);
    FILLED.notify_one();
}

/// Runs on the log's own thread.
pub(crate) fn log(severity: Severity, message: &str) {
    let status = match severity {
        Severity::Warning => 0,
        Severity::Error => 1,
    };
    push(LOG, Done { status, number: 0, details: Some(message.as_bytes().to_vec()) });
}

/// Waits for ends, and writes as many as fit: three numbers each into `numbers`, and its details.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_take<'l>(
    mut env: EnvUnowned<'l>,
    _: JClass<'l>,
    numbers: JLongArray<'l>,
    details: JObjectArray<'l, JByteArray<'l>>,
) -> jint {
    env.with_env(|env| {
        let room = details.len(env)?;
        let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
        while queue.is_empty() {
            queue = FILLED.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let count = queue.len().min(room);
        let taken: Vec<_> = queue.drain(..count).collect();
        drop(queue);
        for (index, (ticket, done)) in taken.into_iter().enumerate() {
            numbers.set_region(env, index as i32 * 3, &[ticket, done.status, done.number])?;
            if let Some(bytes) = done.details {
                let bytes = env.byte_array_from_slice(&bytes)?;
                details.set_element(env, index, &bytes)?;
                // The frame of this call may have room for few references, and there are many.
                env.delete_local_ref(bytes);
            }
        }
        jni::errors::Result::Ok(count as jint)
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}
