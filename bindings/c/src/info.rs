//! What the backend knows of locks.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use fencelock::{Error, ErrorKind, LockInfo, LockState, Result};
use fencelock_shared::duration;
use fencelock_shared::handles::Handled;

use crate::call::{call, catch, free, value, wait};
use crate::client::fencelock_client;
use crate::errors::{fencelock_code, fencelock_error};
use crate::place::{self, Opaque, Place};
use crate::text::{self, Text, borrowed};

/// The state of a lock: one of FENCELOCK_STATE_FREE and its like. More may be added.
pub type fencelock_state = i32;

/// Nobody holds the lock.
pub const FENCELOCK_STATE_FREE: i32 = 0;
/// A lease of this library holds it, whatever the language.
pub const FENCELOCK_STATE_HELD: i32 = 1;
/// A client of another kind holds it.
pub const FENCELOCK_STATE_FOREIGN: i32 = 2;

/// What the backend knew of one lock at one instant; it never changes. For people and tools, never for
/// decisions. Freed by the caller with fencelock_info_free().
pub struct fencelock_info {
    _private: (),
}

/// What fencelock_list() found. Freed by the caller with fencelock_info_list_free().
pub struct fencelock_info_list {
    _private: (),
}

impl Opaque for fencelock_info {
    type Value = Shared;
}

impl Opaque for fencelock_info_list {
    type Value = List;
}

pub(crate) struct Shared(Arc<Info>);

pub(crate) struct List(Vec<Arc<Info>>);

impl Handled for Shared {
    const WHAT: &'static str = "info";
}

impl Handled for List {
    const WHAT: &'static str = "info list";
}

struct Info {
    info: LockInfo,
    name: CString,
    owner: Option<CString>,
    metadata: Option<CString>,
    queue: Vec<Waiter>,
}

struct Waiter {
    owner: CString,
    waiting: Duration,
    metadata: Option<CString>,
}

impl Info {
    fn new(info: LockInfo) -> Arc<Self> {
        let optional = |text: &Option<String>| text.as_deref().map(text::owned);
        let queue = info.queue.iter().map(|waiter| Waiter {
            owner: text::owned(&waiter.owner),
            waiting: waiter.waiting,
            metadata: optional(&waiter.metadata),
        });
        Arc::new(Info {
            name: text::owned(&info.name),
            owner: optional(&info.owner),
            metadata: optional(&info.metadata),
            queue: queue.collect(),
            info,
        })
    }
}

/// What the backend knows of a name.
///
/// @param client The client.
/// @param name UTF-8: the name of a lock.
/// @param[out] info To be freed with fencelock_info_free(); NULL on failure.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK; FENCELOCK_UNAVAILABLE, FENCELOCK_AUTH_FAILED, FENCELOCK_CONFLICT,
/// FENCELOCK_UNSUPPORTED, FENCELOCK_CLOSED, FENCELOCK_FORKED, FENCELOCK_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_inspect(
    client: *mut fencelock_client,
    name: *const c_char,
    info: *mut *mut fencelock_info,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on texts and on places for results.
    let (name, info, err) = unsafe { (Text::new(name), Place::new(info), Place::new(err)) };
    call(err, || {
        let info = info.required("info", ptr::null_mut())?;
        let client = place::get(client.cast_const())?;
        let found = wait(client.inspect(name.required("name")?))?;
        info.give(Shared(Info::new(found)))
    })
}

/// All locks of this client's backend and prefix that are held. Walks all keys: a tool for people.
///
/// @param client The client.
/// @param[out] list To be freed with fencelock_info_list_free(); NULL on failure.
/// @param[out] err See fencelock_error.
/// @return As fencelock_inspect().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_list(
    client: *mut fencelock_client,
    list: *mut *mut fencelock_info_list,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on places for results.
    let (list, err) = unsafe { (Place::new(list), Place::new(err)) };
    call(err, || {
        let list = list.required("list", ptr::null_mut())?;
        let client = place::get(client.cast_const())?;
        let found = wait(client.list())?;
        list.give(List(found.into_iter().map(Info::new).collect()))
    })
}

/// Ends the lease that holds a name now, whoever's it is, and hands the lock on. The former holder
/// hears of it at its next renewal at the latest, so for that long two may believe to hold the lock:
/// for emergencies only.
///
/// @param client The client.
/// @param name UTF-8: the name of a lock.
/// @param[out] ended Whether anybody held it. NULL if the caller does not want to know.
/// @param[out] err See fencelock_error.
/// @return As fencelock_inspect().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_force_release(
    client: *mut fencelock_client,
    name: *const c_char,
    ended: *mut bool,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on texts and on places for results.
    let (name, ended, err) = unsafe { (Text::new(name), Place::new(ended), Place::new(err)) };
    call(err, || {
        ended.put(false);
        let client = place::get(client.cast_const())?;
        ended.put(wait(client.force_release(name.required("name")?))?);
        Ok(())
    })
}

/// How many locks a list has.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_list_len(list: *const fencelock_info_list) -> usize {
    value(0, || Ok(place::get(list)?.0.len()))
}

/// One of a list, as an object of its own: it outlives the list.
///
/// @param list The list.
/// @param index From 0.
/// @return To be freed with fencelock_info_free(); NULL if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_list_get(
    list: *const fencelock_info_list,
    index: usize,
) -> *mut fencelock_info {
    value(ptr::null_mut(), || {
        let list = place::get(list)?;
        let info = list.0.get(index).ok_or_else(none)?;
        place::give(Shared(info.clone()))
    })
}

/// Frees a list. NULL is fine, and so is a list that was freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_list_free(list: *mut fencelock_info_list) {
    free(list);
}

/// The name of the lock.
///
/// @return UTF-8, valid until the info is freed; NULL for no info.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_name(info: *const fencelock_info) -> *const c_char {
    of(info, ptr::null(), |info| info.name.as_ptr())
}

/// Who holds the lock, if anybody.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_state(info: *const fencelock_info) -> fencelock_state {
    of(info, FENCELOCK_STATE_FREE, |info| match info.info.state {
        LockState::Free => FENCELOCK_STATE_FREE,
        LockState::Held => FENCELOCK_STATE_HELD,
        // A state that this table does not know yet is at least not free.
        _ => FENCELOCK_STATE_FOREIGN,
    })
}

/// The owner id of the holder, 32 hexadecimal digits; of a foreign holder its value.
///
/// @return UTF-8, valid until the info is freed; NULL if nobody holds the lock.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_owner(info: *const fencelock_info) -> *const c_char {
    of(info, ptr::null(), |info| borrowed(info.owner.as_ref()))
}

/// The fencing token of the lease.
///
/// @return 0 if there is none, as of a foreign holder.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_token(info: *const fencelock_info) -> u64 {
    of(info, 0, |info| info.info.token.map_or(0, |token| token.get()))
}

/// For how long the lock has been held.
///
/// @return Milliseconds; -1 if nobody holds it or the backend does not know (ZooKeeper).
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_held_ms(info: *const fencelock_info) -> i64 {
    of(info, -1, |info| info.info.held.map_or(-1, duration::to_millis))
}

/// What is left of the holder's time.
///
/// @return Milliseconds; -1 if it has no limit, nobody holds it, or the backend does not know
/// (ZooKeeper).
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_ttl_left_ms(info: *const fencelock_info) -> i64 {
    of(info, -1, |info| info.info.ttl_left.map_or(-1, duration::to_millis))
}

/// What the holder said of itself.
///
/// @return UTF-8, valid until the info is freed; NULL if there is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_metadata(info: *const fencelock_info) -> *const c_char {
    of(info, ptr::null(), |info| borrowed(info.metadata.as_ref()))
}

/// How many contenders wait for the lock.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_queue_len(info: *const fencelock_info) -> usize {
    of(info, 0, |info| info.queue.len())
}

/// The owner id of a contender, 32 hexadecimal digits.
///
/// @param info The info.
/// @param index From 0, in the order of service.
/// @return Valid until the info is freed; NULL if there is no such contender.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_waiter_owner(
    info: *const fencelock_info,
    index: usize,
) -> *const c_char {
    of(info, ptr::null(), |info| borrowed(info.queue.get(index).map(|waiter| &waiter.owner)))
}

/// For how long a contender has been waiting.
///
/// @param info The info.
/// @param index From 0, in the order of service.
/// @return Milliseconds; -1 if there is no such contender.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_waiter_waiting_ms(
    info: *const fencelock_info,
    index: usize,
) -> i64 {
    of(info, -1, |info| {
        info.queue.get(index).map_or(-1, |waiter| duration::to_millis(waiter.waiting))
    })
}

/// What a contender said of itself.
///
/// @param info The info.
/// @param index From 0, in the order of service.
/// @return UTF-8, valid until the info is freed; NULL if there is nothing or no such contender.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_waiter_metadata(
    info: *const fencelock_info,
    index: usize,
) -> *const c_char {
    of(info, ptr::null(), |info| {
        borrowed(info.queue.get(index).and_then(|waiter| waiter.metadata.as_ref()))
    })
}

/// Frees an info. NULL is fine, and so is an info that was freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_info_free(info: *mut fencelock_info) {
    free(info);
}

fn of<T>(info: *const fencelock_info, otherwise: T, get: impl FnOnce(&Info) -> T) -> T {
    let found: Result<_> = catch(|| place::get(info));
    match found {
        Ok(info) => get(&info.0),
        Err(_) => otherwise,
    }
}

fn none() -> Error {
    Error::new(ErrorKind::InvalidArgument, "there is none of this index")
}
