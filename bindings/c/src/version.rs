//! The version.

use std::ffi::{CStr, c_char};

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// The version of the library that is loaded; FENCELOCK_VERSION is that of the header.
///
/// @return A constant text such as "1.2.3".
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_version() -> *const c_char {
    VERSION.as_ptr()
}
