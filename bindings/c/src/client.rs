//! A client.

use std::ffi::c_char;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

use fencelock_shared::handles::Handled;
use fencelock_shared::{OpenClient, exit};

use crate::call::{call, free, value, wait, wait_for_ours};
use crate::errors::{fencelock_code, fencelock_error};
use crate::options::{self, fencelock_client_options};
use crate::place::{self, Opaque, Place};
use crate::text::Text;

/// The connections to one backend, with one watchdog for all locks. Made by fencelock_connect(),
/// freed by the caller with fencelock_client_free(). Usable from all threads at once.
pub struct fencelock_client {
    _private: (),
}

impl Opaque for fencelock_client {
    type Value = Client;
}

#[derive(Clone)]
pub(crate) struct Client(Arc<OpenClient>);

impl Handled for Client {
    const WHAT: &'static str = "client";
}

impl Deref for Client {
    type Target = OpenClient;

    fn deref(&self) -> &OpenClient {
        &self.0
    }
}

/// Connects to a backend: one handshake, which fails fast.
///
/// @param url UTF-8: "redis://host/", "mongodb://...", "zookeeper://...", "file:///dir" (the
/// processes of one machine), "memory:" (this process only) and their variants; NULL = the URL in
/// the environment variable FENCELOCK_URL.
/// @param[out] client The new client, to be freed with fencelock_client_free(); NULL on failure.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK; FENCELOCK_INVALID_ARGUMENT, FENCELOCK_UNSUPPORTED, FENCELOCK_AUTH_FAILED;
/// FENCELOCK_UNAVAILABLE within the connect timeout; FENCELOCK_CLOSED when the process is ending.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_connect(
    url: *const c_char,
    client: *mut *mut fencelock_client,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: the same is asked of the caller.
    unsafe { fencelock_connect_with(url, ptr::null(), client, err) }
}

/// fencelock_connect() with options. Those set there win over options in the URL.
///
/// @param url As in fencelock_connect().
/// @param options NULL = the defaults. Stays the caller's.
/// @param[out] client As in fencelock_connect().
/// @param[out] err See fencelock_error.
/// @return As fencelock_connect().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_connect_with(
    url: *const c_char,
    options: *const fencelock_client_options,
    client: *mut *mut fencelock_client,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on texts and on places for results.
    let (url, client, err) = unsafe { (Text::new(url), Place::new(client), Place::new(err)) };
    call(err, || {
        exit::release_at_exit();
        let client = client.required("client", ptr::null_mut())?;
        let url = url.optional("url")?.map(str::to_owned);
        let options = options::get(options, options::client_defaults())?;
        // Not on this thread, where a broken connection could raise SIGPIPE.
        client.give(Client(wait_for_ours(OpenClient::connect(url, options))?))
    })
}

/// Releases all leases of the client, ends all its waits with FENCELOCK_CLOSED and closes its
/// connections, within 500 ms. It stays to be freed. Closing twice is fine.
///
/// @param client Any client, also while other threads are using it.
/// @param[out] err See fencelock_error.
/// @return FENCELOCK_OK, FENCELOCK_INVALID_ARGUMENT, FENCELOCK_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_close(
    client: *mut fencelock_client,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: see the header's preamble on places for results.
    let err = unsafe { Place::new(err) };
    call(err, || {
        let client = place::get(client.cast_const())?;
        wait(async {
            client.close().await;
            Ok(())
        })
    })
}

/// Whether fencelock_client_close() was called.
///
/// @return true also for NULL and for a client that was freed or is the parent's.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_client_is_closed(client: *const fencelock_client) -> bool {
    value(true, || Ok(place::get(client)?.is_closed()))
}

/// Frees a client. Its locks and leases stay usable, and keep its connections until they are freed
/// too; fencelock_client_close() ends all of them. NULL is fine, and so is a client that was freed.
///
/// @param client A client, or NULL; also while other threads are using it.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_client_free(client: *mut fencelock_client) {
    free(client);
}
