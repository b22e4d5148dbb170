//! Texts that C gives and is given.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use fencelock::{Error, ErrorKind, Result};

/// A text of the caller's, or null.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a>(Option<&'a CStr>);

impl<'a> Text<'a> {
    /// # Safety
    ///
    /// `text` is null, or ends with NUL and stays as it is for as long as this is used.
    pub(crate) unsafe fn new(text: *const c_char) -> Self {
        // SAFETY: as promised above.
        Text((!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }))
    }

    /// The text, or `None` for null.
    pub(crate) fn optional(self, what: &str) -> Result<Option<&'a str>> {
        let refuse = |_| invalid(format!("{what} is not UTF-8; allowed is UTF-8 only"));
        self.0.map(|text| text.to_str().map_err(refuse)).transpose()
    }

    pub(crate) fn required(self, what: &str) -> Result<&'a str> {
        self.optional(what)?.ok_or_else(|| invalid(format!("{what} is NULL; give a text in UTF-8")))
    }
}

pub(crate) fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

/// A text for C. A NUL inside, which only a foreign holder's value can have, is shown as U+FFFD.
pub(crate) fn owned(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// The address of a text that somebody else keeps; null for none.
pub(crate) fn borrowed(text: Option<&CString>) -> *const c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}
