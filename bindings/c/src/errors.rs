//! Codes and error objects.

use std::error::Error as _;
use std::ffi::{CStr, CString, c_char};
use std::ptr;

use fencelock::{Error, ErrorKind};
use fencelock_shared::codes;
use fencelock_shared::handles::Handled;

use crate::call::{free, value};
use crate::place::{self, Opaque};
use crate::text;

/// How a call ended: FENCELOCK_OK or one of the codes that have a constant here. Codes are only ever
/// added, so treat one that you do not know as a failure.
pub type fencelock_code = i32;

/// Success; every other code is a failure.
pub const FENCELOCK_OK: i32 = 0;
/// The wait for the lock reached its time limit.
pub const FENCELOCK_TIMEOUT: i32 = 1;
/// The lease passed its deadline, or the backend says that it is not ours. Final.
pub const FENCELOCK_LOST: i32 = 2;
/// The call was cancelled.
pub const FENCELOCK_CANCELLED: i32 = 3;
/// The client has been closed, or the process is ending.
pub const FENCELOCK_CLOSED: i32 = 4;
/// The object belongs to the process that this one was forked from.
pub const FENCELOCK_FORKED: i32 = 5;
/// An argument, option, URL or object is not allowed; the message says what is.
pub const FENCELOCK_INVALID_ARGUMENT: i32 = 6;
/// The server, the URL scheme or the stored layout is not one that this version can use.
pub const FENCELOCK_UNSUPPORTED: i32 = 7;
/// The backend did not answer, or cannot serve locks now.
pub const FENCELOCK_UNAVAILABLE: i32 = 8;
/// The backend refused the credentials, or they lack a right that the lock needs.
pub const FENCELOCK_AUTH_FAILED: i32 = 9;
/// Something that is not a lock stands where the lock should be; it was left untouched.
pub const FENCELOCK_CONFLICT: i32 = 10;
/// A fault of this library.
pub const FENCELOCK_INTERNAL: i32 = 11;

/// The constants above and the table that all languages share say the same.
const _: () = {
    const fn is(kind: ErrorKind, code: i32) -> bool {
        codes::number(kind) == code
    }
    assert!(is(ErrorKind::Timeout, FENCELOCK_TIMEOUT));
    assert!(is(ErrorKind::Lost, FENCELOCK_LOST));
    assert!(is(ErrorKind::Cancelled, FENCELOCK_CANCELLED));
    assert!(is(ErrorKind::Closed, FENCELOCK_CLOSED));
    assert!(is(ErrorKind::Forked, FENCELOCK_FORKED));
    assert!(is(ErrorKind::InvalidArgument, FENCELOCK_INVALID_ARGUMENT));
    assert!(is(ErrorKind::Unsupported, FENCELOCK_UNSUPPORTED));
    assert!(is(ErrorKind::Unavailable, FENCELOCK_UNAVAILABLE));
    assert!(is(ErrorKind::AuthFailed, FENCELOCK_AUTH_FAILED));
    assert!(is(ErrorKind::Conflict, FENCELOCK_CONFLICT));
    assert!(is(ErrorKind::Internal, FENCELOCK_INTERNAL));
};

/// What went wrong. Made by a call that fails, freed by the caller with fencelock_error_free().
pub struct fencelock_error {
    _private: (),
}

impl Opaque for fencelock_error {
    type Value = Failure;
}

pub(crate) struct Failure {
    code: fencelock_code,
    message: CString,
    cause: Option<CString>,
}

impl Handled for Failure {
    const WHAT: &'static str = "error";
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut causes = Vec::new();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        Failure {
            code: codes::number(error.kind()),
            message: text::owned(&error.to_string()),
            cause: (!causes.is_empty()).then(|| text::owned(&causes.join(": "))),
        }
    }
}

/// The pointer to a new error object, null if there is no room for one.
pub(crate) fn pointer(error: Error) -> *mut fencelock_error {
    place::give(error.into()).unwrap_or(ptr::null_mut())
}

/// The code of an error.
///
/// @param err Any error, or NULL.
/// @return Its code; FENCELOCK_OK for NULL; FENCELOCK_INVALID_ARGUMENT if it was freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_error_code(err: *const fencelock_error) -> fencelock_code {
    if err.is_null() {
        return FENCELOCK_OK;
    }
    value(FENCELOCK_INVALID_ARGUMENT, || Ok(place::get(err)?.code))
}

/// One line that names the lock and says what to do. Passwords never appear in it.
///
/// @param err Any error.
/// @return UTF-8, valid until the error is freed; "" for NULL or an error that was freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_error_message(err: *const fencelock_error) -> *const c_char {
    value(c"".as_ptr(), || Ok(place::get(err)?.message.as_ptr()))
}

/// What caused the error, such as the words of the operating system or of the server.
///
/// @param err Any error.
/// @return UTF-8, valid until the error is freed; NULL if there is nothing more to say.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_error_cause(err: *const fencelock_error) -> *const c_char {
    value(ptr::null(), || Ok(text::borrowed(place::get(err)?.cause.as_ref())))
}

/// The stable name of a code, the same in every language: "TIMEOUT", "LOST" and so on.
///
/// @param code Any number.
/// @return A constant text; "OK" for FENCELOCK_OK, "UNKNOWN" for a number that is no code.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_code_name(code: fencelock_code) -> *const c_char {
    name(code).as_ptr()
}

fn name(code: fencelock_code) -> &'static CStr {
    match code {
        FENCELOCK_OK => c"OK",
        FENCELOCK_TIMEOUT => c"TIMEOUT",
        FENCELOCK_LOST => c"LOST",
        FENCELOCK_CANCELLED => c"CANCELLED",
        FENCELOCK_CLOSED => c"CLOSED",
        FENCELOCK_FORKED => c"FORKED",
        FENCELOCK_INVALID_ARGUMENT => c"INVALID_ARGUMENT",
        FENCELOCK_UNSUPPORTED => c"UNSUPPORTED",
        FENCELOCK_UNAVAILABLE => c"UNAVAILABLE",
        FENCELOCK_AUTH_FAILED => c"AUTH_FAILED",
        FENCELOCK_CONFLICT => c"CONFLICT",
        FENCELOCK_INTERNAL => c"INTERNAL",
        _ => c"UNKNOWN",
    }
}

/// Frees an error. NULL is fine, and so is one that was freed.
///
/// @param err An error, or NULL.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_error_free(err: *mut fencelock_error) {
    free(err);
}
