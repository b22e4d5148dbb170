//! A lock, and waiting for it.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use fencelock::{Error, ErrorKind, LockOptions, Result};
use fencelock_shared::Cancel;
use fencelock_shared::handles::Handled;

use crate::call::{call, free, limit, value, wait};
use crate::client::{Client, fencelock_client};
use crate::errors::{fencelock_code, fencelock_error};
use crate::lease::{Lease, fencelock_lease};
use crate::options::{self, fencelock_lock_options};
use crate::place::{self, Opaque, Place};
use crate::text::{self, Text};

/// A name plus options. It holds nothing, and may be shared by all threads: each acquire of it is a
/// place of its own. Made by fencelock_lock_new(), freed by the caller with fencelock_lock_free().
pub struct fencelock_lock {
    _private: (),
}

impl Opaque for fencelock_lock {
    type Value = Lock;
}

pub(crate) struct Lock {
    client: Client,
    lock: fencelock::Lock,
    name: OnceLock<CString>,
}

impl Handled for Lock {
    const WHAT: &'static str = "lock";
}

impl Lock {
    /// Waits for it, until `cancel` says otherwise.
    pub(crate) async fn acquire(&self, limit: Option<Duration>, cancel: &Cancel) -> Result<Lease> {
        let lease = self.lock.acquire_unless(limit, cancel.cancelled()).await?;
        Ok(Lease::new(self.client.clone(), lease))
    }
}

/// A lock of a client. No I/O.
///
/// @param client The client; it may be freed before the lock.
/// @param name UTF-8, copied: 1 to 1024 bytes, not beginning with "~fl".
/// @param options NULL = the defaults. Stays the caller's.
/// @param[out] lock The new lock, to be freed with fencelock_lock_free(); NULL on failure.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK; FENCELOCK_INVALID_ARGUMENT, whose message says what is allowed;
/// FENCELOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_new(
    client: *mut fencelock_client,
    name: *const c_char,
    options: *const fencelock_lock_options,
    lock: *mut *mut fencelock_lock,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on texts and on places for results.
    let (name, lock, err) = unsafe { (Text::new(name), Place::new(lock), Place::new(err)) };
    call(err, || {
        let place = lock.required("lock", ptr::null_mut())?;
        let client = place::get(client.cast_const())?;
        let name = name.required("name")?;
        let lock = client.lock_with(name, options::get(options, LockOptions::new())?)?;
        place.give(Lock { client: (*client).clone(), lock, name: OnceLock::new() })
    })
}

/// The name of a lock.
///
/// @return UTF-8, valid until the lock is freed; NULL for no lock.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lock_name(lock: *const fencelock_lock) -> *const c_char {
    value(ptr::null(), || {
        let lock = place::get(lock)?;
        Ok(lock.name.get_or_init(|| text::owned(lock.lock.name())).as_ptr())
    })
}

/// Frees a lock. It was never held, so nothing is released: leases taken through it stay as they
/// are, and waits go on. NULL is fine, and so is a lock that was freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lock_free(lock: *mut fencelock_lock) {
    free(lock);
}

/// Waits for the lock. Blocks the calling thread; signals are handled meanwhile and do not end the
/// wait. To end it from elsewhere use fencelock_acquire_async(), or fencelock_client_close().
///
/// @param lock The lock.
/// @param timeout_ms Milliseconds, up to 10 years; -1 = for ever; 0 = one attempt, which can succeed
/// but neither queues nor overtakes anybody who waits. Returns by the timeout + 50 ms whatever the
/// server does; with 0 by the request timeout + 50 ms.
/// @param[out] lease The lease, to be freed with fencelock_lease_free(), which also releases it; NULL
/// on failure.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK = the lock is held. FENCELOCK_TIMEOUT = not obtained.
/// FENCELOCK_UNAVAILABLE: never an answer within the connect timeout or, once queued, for 30 s.
/// FENCELOCK_AUTH_FAILED, FENCELOCK_CONFLICT, FENCELOCK_UNSUPPORTED as the backend says.
/// FENCELOCK_CLOSED, FENCELOCK_FORKED, FENCELOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_acquire(
    lock: *mut fencelock_lock,
    timeout_ms: i64,
    lease: *mut *mut fencelock_lease,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on places for results.
    let (lease, err) = unsafe { (Place::new(lease), Place::new(err)) };
    call(err, || {
        let lease = lease.required("lease", ptr::null_mut())?;
        let lock = place::get(lock.cast_const())?;
        let limit = limit(timeout_ms)?;
        let held = wait(lock.lock.acquire_within(limit))?;
        lease.give(Lease::new(lock.client.clone(), held))
    })
}

/// Takes the lock if it is free and nobody waits for it. One request; never queues. Returns by the
/// request timeout + 50 ms.
///
/// @param lock The lock.
/// @param[out] lease As in fencelock_acquire(); NULL on failure.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK = the lock is held. FENCELOCK_TIMEOUT = not obtained: a failure, so that work
/// is never done without the lock by a caller who only looks for FENCELOCK_OK. All else as in
/// fencelock_acquire().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_try_acquire(
    lock: *mut fencelock_lock,
    lease: *mut *mut fencelock_lease,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on places for results.
    let (lease, err) = unsafe { (Place::new(lease), Place::new(err)) };
    call(err, || {
        let lease = lease.required("lease", ptr::null_mut())?;
        let lock = place::get(lock.cast_const())?;
        match wait(lock.lock.try_acquire())? {
            Some(held) => lease.give(Lease::new(lock.client.clone(), held)),
            None => {
                let name = lock.lock.name();
                Err(Error::new(ErrorKind::Timeout, format!("lock {name:?}: not free")))
            }
        }
    })
}
