//! Handles as pointers of C, and the places where C wants them put.

use std::ptr;
use std::sync::Arc;

use fencelock::{Error, ErrorKind, Result};
use fencelock_shared::handles::{self, Handled};

const _: () = assert!(usize::BITS == 64, "a handle needs the 64 bits of a pointer");

/// A type that C sees only as a pointer, which is never followed.
pub(crate) trait Opaque {
    /// What it stands for.
    type Value: Handled;
}

/// The value behind a pointer.
pub(crate) fn get<T: Opaque>(pointer: *const T) -> Result<Arc<T::Value>> {
    handles::get(pointer.addr() as u64)
}

/// Takes the value away: the pointer is of no use from here on.
pub(crate) fn take<T: Opaque>(pointer: *const T) -> Result<Arc<T::Value>> {
    handles::take(pointer.addr() as u64)
}

/// A new pointer to a value.
pub(crate) fn give<T: Opaque>(value: T::Value) -> Result<*mut T> {
    let handle = handles::add(Arc::new(value))?;
    Ok(ptr::without_provenance_mut(handle as usize))
}

/// A place of the caller's, or null.
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// # Safety
    ///
    /// For as long as this is used, `place` is null or may be written, by this thread only.
    pub(crate) unsafe fn new(place: *mut T) -> Self {
        Place(place)
    }

    /// Itself, with a value in it for the case that nothing else comes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` when it is null.
    pub(crate) fn required(self, what: &str, value: T) -> Result<Self> {
        if self.0.is_null() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{what} is NULL; give the address of a variable for the result"),
            ));
        }
        self.put(value);
        Ok(self)
    }

    pub(crate) fn is_given(&self) -> bool {
        !self.0.is_null()
    }

    /// Writes, unless the place is null.
    pub(crate) fn put(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: `new` was promised that it may be written; it need not be initialised.
            unsafe { self.0.write(value) }
        }
    }
}

impl<T: Opaque> Place<*mut T> {
    pub(crate) fn give(&self, value: T::Value) -> Result<()> {
        self.put(give(value)?);
        Ok(())
    }
}
