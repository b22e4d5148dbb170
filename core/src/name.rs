//! Names of locks, checked before any I/O.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

const MAX_BYTES: usize = 1024;
/// Names that begin so are kept for the helper records of the backends.
const RESERVED: &str = "~fl";

/// The name of a lock: 1 to 1024 bytes of UTF-8, any character but NUL, compared byte by byte.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(Arc<str>);

impl Name {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let fault = if name.is_empty() {
            "is empty"
        } else if name.len() > MAX_BYTES {
            "is too long"
        } else if name.contains('\0') {
            "contains NUL"
        } else if name.starts_with(RESERVED) {
            "begins with `~fl`"
        } else {
            return Ok(Name(name.into()));
        };
        let shown: String = name.chars().take(40).collect();
        Err(Error::invalid(format!(
            "lock name {shown:?} {fault}; allowed are 1 to {MAX_BYTES} bytes of UTF-8 without NUL, not beginning with `~fl`"
        )))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    /// Quoted, and without line breaks, so that an error message stays one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g10_names_that_are_allowed() {
        let longest = "x".repeat(1024);
        for name in
            ["a", "a/b", "..", "{x}", "%", "🔒", "a\nb", " ", "$ne", "*", "~f", "a~fl", &longest]
        {
            assert_eq!(Name::new(name).expect(name).as_str(), name);
        }
        assert_ne!(Name::new("e\u{301}").unwrap(), Name::new("\u{e9}").unwrap());
    }

    #[test]
    fn g10_names_that_are_refused_say_what_is_allowed() {
        for name in ["", "\0", "a\0b", "~fl", "~fl1:q:x", &"x".repeat(1025), &"é".repeat(513)] {
            let error = Name::new(name).expect_err(name);
            assert_eq!(error.kind().code(), "INVALID_ARGUMENT");
            assert!(error.to_string().contains("1 to 1024 bytes"), "{error}");
        }
    }
}
