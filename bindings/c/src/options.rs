//! Option builders.
//!
//! Setters have no result: the first value that cannot be taken is kept as the error of the call
//! that the options are given to, where a C programmer looks at errors anyway.

use std::ffi::c_char;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use fencelock::{ClientOptions, LockOptions, Result};
use fencelock_shared::duration;
use fencelock_shared::handles::Handled;

use crate::call::{free, value};
use crate::place::{self, Opaque};
use crate::text::{Text, invalid};

/// Options of a client; what is not set has its default, or what the URL says. Made by
/// fencelock_client_options_new(), freed by the caller with fencelock_client_options_free(); may be
/// freed as soon as the call that it is given to has returned, and used for several.
///
/// A setter cannot fail: fencelock_connect_with() reports the first value that is not allowed.
pub struct fencelock_client_options {
    _private: (),
}

/// Options of a lock; what is not set has its default. Made by fencelock_lock_options_new(), freed
/// by the caller with fencelock_lock_options_free(); may be freed as soon as the call that it is
/// given to has returned, and used for several.
///
/// A setter cannot fail: fencelock_lock_new() reports the first value that is not allowed.
pub struct fencelock_lock_options {
    _private: (),
}

/// Options as they are so far, or what is wrong with them.
pub(crate) struct Builder<T>(Mutex<Result<T, String>>);

impl Handled for Builder<ClientOptions> {
    const WHAT: &'static str = "client options";
}

impl Handled for Builder<LockOptions> {
    const WHAT: &'static str = "lock options";
}

impl Opaque for fencelock_client_options {
    type Value = Builder<ClientOptions>;
}

impl Opaque for fencelock_lock_options {
    type Value = Builder<LockOptions>;
}

impl<T: Clone> Builder<T> {
    fn new(options: T) -> Self {
        Builder(Mutex::new(Ok(options)))
    }

    fn get(&self) -> Result<T> {
        let options = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        options.clone().map_err(invalid)
    }

    fn change(&self, change: impl FnOnce(T) -> Result<T>) {
        let mut options = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(so_far) = &*options {
            *options = change(so_far.clone()).map_err(|error| error.to_string());
        }
    }
}

/// The options behind a pointer; null = the defaults.
pub(crate) fn get<P, T>(options: *const P, defaults: T) -> Result<T>
where
    P: Opaque<Value = Builder<T>>,
    T: Clone,
    Builder<T>: Handled,
{
    if options.is_null() { Ok(defaults) } else { place::get(options)?.get() }
}

fn set<P, T>(options: *mut P, change: impl FnOnce(T) -> Result<T>)
where
    P: Opaque<Value = Builder<T>>,
    T: Clone,
    Builder<T>: Handled,
{
    value((), || {
        place::get(options.cast_const())?.change(change);
        Ok(())
    });
}

pub(crate) fn client_defaults() -> ClientOptions {
    ClientOptions::new().language("c")
}

/// Options with all defaults.
///
/// @return To be freed with fencelock_client_options_free(); NULL if 16 million objects are open.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_client_options_new() -> *mut fencelock_client_options {
    value(ptr::null_mut(), || place::give(Builder::new(client_defaults())))
}

/// Frees options. NULL is fine, and so are options that were freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_client_options_free(options: *mut fencelock_client_options) {
    free(options);
}

/// The limit for making the first connection, and for an acquire that never gets an answer.
///
/// @param connect_timeout_ms Milliseconds; default 5000, allowed 1 to 3600000.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_client_options_set_connect_timeout_ms(
    options: *mut fencelock_client_options,
    connect_timeout_ms: i64,
) {
    set(options, |o: ClientOptions| {
        let limit =
            duration::from_millis(connect_timeout_ms, "connect_timeout", duration::CLIENT_TIMEOUT)?;
        Ok(o.connect_timeout(limit))
    });
}

/// The limit for one request. A request for a lock waits a third of its ttl at most.
///
/// @param request_timeout_ms Milliseconds; default 2000, allowed 1 to 3600000.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_client_options_set_request_timeout_ms(
    options: *mut fencelock_client_options,
    request_timeout_ms: i64,
) {
    set(options, |o: ClientOptions| {
        let limit =
            duration::from_millis(request_timeout_ms, "request_timeout", duration::CLIENT_TIMEOUT)?;
        Ok(o.request_timeout(limit))
    });
}

/// How many replicas must have acknowledged a grant or a renewal before it counts (Redis).
///
/// @param replicas Default 0, allowed up to 100.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_client_options_set_replicas(
    options: *mut fencelock_client_options,
    replicas: u32,
) {
    set(options, |o: ClientOptions| Ok(o.replicas(replicas)));
}

/// What stands before the name in the key (Redis).
///
/// @param prefix UTF-8, copied; default "fencelock:". "" is allowed: then the key is the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_options_set_prefix(
    options: *mut fencelock_client_options,
    prefix: *const c_char,
) {
    // SAFETY: see the header's preamble on texts.
    let prefix = unsafe { Text::new(prefix) };
    set(options, |o: ClientOptions| Ok(o.prefix(prefix.required("prefix")?)));
}

/// The database and collection with the locks (MongoDB).
///
/// @param collection UTF-8, copied: "database.collection"; default "fencelock.locks".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_options_set_collection(
    options: *mut fencelock_client_options,
    collection: *const c_char,
) {
    // SAFETY: see the header's preamble on texts.
    let collection = unsafe { Text::new(collection) };
    set(options, |o: ClientOptions| Ok(o.collection(collection.required("collection")?)));
}

/// The node below which the locks are (ZooKeeper), itself below the chroot of the URL.
///
/// @param root UTF-8, copied: an absolute path; default "/fencelock".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_options_set_root(
    options: *mut fencelock_client_options,
    root: *const c_char,
) {
    // SAFETY: see the header's preamble on texts.
    let root = unsafe { Text::new(root) };
    set(options, |o: ClientOptions| Ok(o.root(root.required("root")?)));
}

/// How contenders name their nodes (ZooKeeper), which decides what other libraries the lock
/// excludes.
///
/// @param node_layout "curator" (the default), "kazoo" or "plain".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_options_set_node_layout(
    options: *mut fencelock_client_options,
    node_layout: *const c_char,
) {
    // SAFETY: see the header's preamble on texts.
    let layout = unsafe { Text::new(node_layout) };
    set(options, |o: ClientOptions| Ok(o.node_layout(layout.required("node_layout")?.parse()?)));
}

/// A PEM file with the authorities that may have signed the server's certificate, in place of those
/// of the system (Redis and ZooKeeper with TLS).
///
/// @param file UTF-8, copied: the path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_options_set_tls_ca(
    options: *mut fencelock_client_options,
    file: *const c_char,
) {
    // SAFETY: see the header's preamble on texts.
    let file = unsafe { Text::new(file) };
    set(options, |o: ClientOptions| Ok(o.tls_ca(file.required("tls_ca")?)));
}

/// PEM files with the client's own certificate and its private key (Redis and ZooKeeper with TLS).
///
/// @param cert UTF-8, copied: the path of the certificate and those between it and its authority.
/// @param key UTF-8, copied: the path of its key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_options_set_tls_cert(
    options: *mut fencelock_client_options,
    cert: *const c_char,
    key: *const c_char,
) {
    // SAFETY: see the header's preamble on texts.
    let (cert, key) = unsafe { (Text::new(cert), Text::new(key)) };
    set(options, |o: ClientOptions| {
        Ok(o.tls_cert(cert.required("tls_cert")?).tls_key(key.required("tls_key")?))
    });
}

/// User name and password for the sentinels (Redis). Those in the URL are for the servers that the
/// sentinels name.
///
/// @param user UTF-8, copied; NULL if they only ask for a password.
/// @param password UTF-8, copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_options_set_sentinel_auth(
    options: *mut fencelock_client_options,
    user: *const c_char,
    password: *const c_char,
) {
    // SAFETY: see the header's preamble on texts.
    let (user, password) = unsafe { (Text::new(user), Text::new(password)) };
    set(options, |o: ClientOptions| {
        let o = o.sentinel_password(password.required("sentinel_password")?);
        Ok(match user.optional("sentinel_user")? {
            Some(user) => o.sentinel_user(user),
            None => o,
        })
    });
}

/// Options with all defaults.
///
/// @return To be freed with fencelock_lock_options_free(); NULL if 16 million objects are open.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lock_options_new() -> *mut fencelock_lock_options {
    value(ptr::null_mut(), || place::give(Builder::new(LockOptions::new())))
}

/// Frees options. NULL is fine, and so are options that were freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lock_options_free(options: *mut fencelock_lock_options) {
    free(options);
}

/// How long the backend keeps a lease without renewal. After a crash of the holder, others wait
/// this long.
///
/// @param ttl_ms Milliseconds; default 30000, allowed 100 to 86400000 (24 h).
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lock_options_set_ttl_ms(
    options: *mut fencelock_lock_options,
    ttl_ms: i64,
) {
    set(options, |o: LockOptions| Ok(o.ttl(duration::from_millis(ttl_ms, "ttl", duration::TTL)?)));
}

/// Whether the library renews leases by itself. Without renewal a lease ends when its ttl is over,
/// unless fencelock_lease_renew() sets it to a full ttl again.
///
/// @param renew Default true.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lock_options_set_renew(
    options: *mut fencelock_lock_options,
    renew: bool,
) {
    set(options, |o: LockOptions| Ok(o.renew(renew)));
}

/// The longest time that a lease may be held, however often it is renewed: the guard against a
/// holder that hangs. When it is over, the lease is lost.
///
/// @param max_hold_ms Milliseconds, more than the ttl; -1 = no limit, the default.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_lock_options_set_max_hold_ms(
    options: *mut fencelock_lock_options,
    max_hold_ms: i64,
) {
    set(options, |o: LockOptions| {
        let allowed = "times longer than the ttl, or -1 = none";
        let limit = match max_hold_ms {
            -1 => None,
            _ => Some(duration::from_millis(max_hold_ms, "max_hold", allowed)?),
        };
        Ok(o.max_hold(limit))
    });
}

/// A short text that fencelock_inspect() shows with the holder.
///
/// @param metadata UTF-8, copied: up to 256 bytes without control characters. Default: host, process
/// id and language.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_options_set_metadata(
    options: *mut fencelock_lock_options,
    metadata: *const c_char,
) {
    // SAFETY: see the header's preamble on texts.
    let text = unsafe { Text::new(metadata) };
    set(options, |o: LockOptions| Ok(o.metadata(text.required("metadata")?)));
}
