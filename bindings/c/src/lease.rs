//! A lease.

use std::ffi::{CString, c_char};
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fencelock::{Ended, Error, ErrorKind, Result};
use fencelock_shared::handles::Handled;
use fencelock_shared::{Runtime, duration};
use tokio::time::timeout;

use crate::call::{call, free, limit, value, wait};
use crate::client::Client;
use crate::errors::{fencelock_code, fencelock_error};
use crate::place::{self, Opaque, Place};
use crate::text;

/// A held lock. Who has it may release it, from any thread. It comes from fencelock_acquire() and its
/// sisters, and is freed by the caller with fencelock_lease_free().
pub struct fencelock_lease {
    _private: (),
}

impl Opaque for fencelock_lease {
    type Value = Lease;
}

pub(crate) struct Lease {
    lease: fencelock::Lease,
    name: OnceLock<CString>,
    owner: OnceLock<CString>,
    lost: Mutex<Option<Arc<Signal>>>,
    /// At the exit of the process the client of a held lease must be found.
    client: Client,
}

impl Handled for Lease {
    const WHAT: &'static str = "lease";
}

/// A pipe with a byte in it once the lease is lost. Both ends live as long as either the lease or the
/// task that writes: without a writer the reader would be readable, and without a reader the write
/// would raise SIGPIPE in a host that does not expect it.
struct Signal {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Lease {
    pub(crate) fn new(client: Client, lease: fencelock::Lease) -> Self {
        let (name, owner) = (OnceLock::new(), OnceLock::new());
        Lease { lease, name, owner, lost: Mutex::new(None), client }
    }

    fn lost_fd(&self) -> Result<i32> {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signal) = &*lost {
            return Ok(signal.reader.as_raw_fd());
        }
        let runtime = Runtime::current()?;
        let (reader, writer) = std::io::pipe().map_err(|error| {
            Error::new(ErrorKind::Internal, "no pipe could be made").with_source(error)
        })?;
        let signal = Arc::new(Signal { reader, writer });
        let fd = signal.reader.as_raw_fd();
        *lost = Some(signal.clone());
        let watch = self.lease.watch();
        drop(runtime.spawn(async move {
            if watch.ended().await == Ended::Lost {
                let _ = (&signal.writer).write(&[1]);
            }
        }));
        Ok(fd)
    }
}

/// The fencing token of a lease: strictly greater than every earlier token of its lock. Hand it to
/// what the lock protects, which has to refuse tokens lower than the highest it has seen.
///
/// @return 0 for no lease; a token is never 0.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lease_token(lease: *const fencelock_lease) -> u64 {
    value(0, || Ok(place::get(lease)?.lease.token().get()))
}

/// The name of the lock.
///
/// @return UTF-8, valid until the lease is freed; NULL for no lease.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lease_name(lease: *const fencelock_lease) -> *const c_char {
    value(ptr::null(), || {
        let lease = place::get(lease)?;
        Ok(lease.name.get_or_init(|| text::owned(lease.lease.name())).as_ptr())
    })
}

/// The owner id, as fencelock_inspect() shows it.
///
/// @return 32 hexadecimal digits, valid until the lease is freed; NULL for no lease.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lease_owner(lease: *const fencelock_lease) -> *const c_char {
    value(ptr::null(), || {
        let lease = place::get(lease)?;
        Ok(lease.owner.get_or_init(|| text::owned(&lease.lease.owner())).as_ptr())
    })
}

/// For how long the lock is certainly ours without another renewal. No I/O.
///
/// @return Milliseconds, rounded down; 0 when it is not held.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lease_remaining_ms(lease: *const fencelock_lease) -> i64 {
    value(0, || Ok(duration::to_millis(place::get(lease)?.lease.remaining())))
}

/// Whether the lock is ours now. Computed from the clock, without I/O: exact also first thing after
/// the process was stopped.
///
/// @return false also after a release, for no lease, and for one of the parent in a forked child.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lease_is_held(lease: *const fencelock_lease) -> bool {
    value(false, || Ok(place::get(lease)?.lease.is_held()))
}

/// Whether the lease was lost. No I/O.
///
/// @return false after a release, for no lease, and for one of the parent in a forked child.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lease_is_lost(lease: *const fencelock_lease) -> bool {
    value(false, || Ok(place::get(lease)?.lease.is_lost()))
}

/// fencelock_lease_is_held() as an error, for use between two steps of the work. No I/O.
///
/// @param lease The lease.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK; FENCELOCK_LOST when the lease is lost or was released; FENCELOCK_FORKED;
/// FENCELOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lease_check(
    lease: *const fencelock_lease,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on places for results.
    let err = unsafe { Place::new(err) };
    call(err, || place::get(lease)?.lease.check())
}

/// Sets the lease to a full ttl from now; needed only where the lock does not renew by itself. Never
/// longer than max_hold.
///
/// @param lease The lease.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK; FENCELOCK_LOST when it is not ours any more; FENCELOCK_UNAVAILABLE when the
/// backend does not answer within the request timeout, the lease then goes on until its deadline;
/// FENCELOCK_CLOSED, FENCELOCK_FORKED, FENCELOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lease_renew(
    lease: *mut fencelock_lease,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on places for results.
    let err = unsafe { Place::new(err) };
    call(err, || {
        let lease = place::get(lease.cast_const())?;
        wait(lease.lease.renew())
    })
}

/// Waits until the lease is lost or released, or the time is over. It wakes at the deadline of the
/// lease at the latest, whatever the server does. It does not keep the lease: if another thread frees
/// it meanwhile, the wait ends as with a release.
///
/// @param lease The lease.
/// @param timeout_ms Milliseconds, up to 10 years; -1 = no limit.
/// @param[out] lost Whether it is lost. NULL if the caller does not want to know.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK, lost or not; FENCELOCK_CLOSED when the process is ending; FENCELOCK_FORKED,
/// FENCELOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lease_wait_lost(
    lease: *const fencelock_lease,
    timeout_ms: i64,
    lost: *mut bool,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on places for results.
    let (lost, err) = unsafe { (Place::new(lost), Place::new(err)) };
    call(err, || {
        lost.put(false);
        let limit = limit(timeout_ms)?;
        let watch = place::get(lease)?.lease.watch();
        let ended = wait(async {
            Ok(match limit {
                Some(limit) => timeout(limit, watch.ended()).await.ok(),
                None => Some(watch.ended().await),
            })
        })?;
        lost.put(ended == Some(Ended::Lost));
        Ok(())
    })
}

/// A file descriptor that becomes readable when the lease is lost, for poll(), epoll and event loops.
/// It never does after a release. It is the same one at each call, and borrowed: neither read, write
/// nor close it. It is valid until the lease is freed. A lost lease does not close it.
///
/// It does not become readable when another thread closes the client: then nothing is held, nor lost.
///
/// @param lease The lease.
/// @return The descriptor; -1 for no lease and in a forked child, when the process is ending, and when
/// no descriptors are left.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lease_lost_fd(lease: *const fencelock_lease) -> i32 {
    value(-1, || place::get(lease)?.lost_fd())
}

/// Releases the lock and hands it to the next contender; fencelock_lease_is_held() is false from the
/// call on. The lease stays to be freed. May be called again: after a success it does nothing, after an
/// error it asks again and is told the truth.
///
/// @param lease The lease.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK = the lock was ours to the end. FENCELOCK_LOST when it had ended before; at once,
/// without I/O, when that is known here. FENCELOCK_UNAVAILABLE when the backend does not answer within
/// the request timeout; the release then goes on in the background until the deadline.
/// FENCELOCK_FORKED, FENCELOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_release(
    lease: *mut fencelock_lease,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on places for results.
    let err = unsafe { Place::new(err) };
    call(err, || {
        let lease = place::get(lease.cast_const())?;
        lease.client.check_process()?;
        wait(lease.lease.release())
    })
}

/// Frees a lease. If it is still held, it is released in the background: nobody hears whether that
/// succeeded. NULL is fine, and so is a lease that was freed. In a forked child nothing is released.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lease_free(lease: *mut fencelock_lease) {
    free(lease);
}
