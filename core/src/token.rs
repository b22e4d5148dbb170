//! The fencing token.

use std::fmt;
use std::num::NonZeroU64;

/// The fencing token of a lease: strictly greater than every earlier token of that name.
///
/// Hand it to whatever the lock protects. A resource that accepts a write only with a token
/// at least as high as the highest it has seen, in the same atomic step as the write, is safe
/// even from a holder that was paused between checking its lease and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "file", derive(serde::Serialize, serde::Deserialize))]
pub struct Token(NonZeroU64);

impl Token {
    /// The token as a number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    pub(crate) const fn new(value: u64) -> Option<Self> {
        match NonZeroU64::new(value) {
            Some(value) => Some(Token(value)),
            None => None,
        }
    }

    /// The token `value`, or the first one if that is zero.
    #[cfg(any(feature = "memory", feature = "file"))]
    pub(crate) fn at_least(value: u64) -> Self {
        Token(NonZeroU64::new(value).unwrap_or(NonZeroU64::MIN))
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> u64 {
        token.get()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
