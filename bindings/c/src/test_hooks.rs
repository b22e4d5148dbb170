//! Functions for the tests of this binding. No header declares them.

use fencelock::{Error, ErrorKind};
use fencelock_shared::handles;

use crate::call::call;
use crate::errors::{fencelock_code, fencelock_error};
use crate::place::Place;

/// A call that fails with the kind of this number, from 0; -1 when there are no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_test_kind(
    number: usize,
    err: *mut *mut fencelock_error,
) -> fencelock_code {
    // SAFETY: the tests keep to the header's preamble.
    let err = unsafe { Place::new(err) };
    match ErrorKind::ALL.get(number) {
        Some(kind) => call(err, || Err(Error::new(*kind, kind.code()))),
        None => -1,
    }
}

/// A call that panics.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_test_panic(err: *mut *mut fencelock_error) -> fencelock_code {
    // SAFETY: the tests keep to the header's preamble.
    let err = unsafe { Place::new(err) };
    call(err, || panic!("asked for by a test"))
}

/// How many objects are open.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_test_open() -> usize {
    handles::open()
}
