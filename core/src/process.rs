//! Process-wide values that a forked child can use.
//!
//! The child has none of the parent's threads. A `LazyLock` that a thread is filling at the moment
//! of the fork stays "being filled" in the child for ever, and a `Mutex` that it holds stays
//! locked: the first use in the child hangs.

// Each value is one backend's, and so is each use of this.
#![cfg_attr(not(all(feature = "memory", feature = "file", feature = "redis")), allow(dead_code))]

use std::ops::Deref;
use std::sync::OnceLock;

/// A value that is the same in every process, such as a table. It is made before it is put in
/// place, so that nobody ever waits for another thread to make it; two may make it at once.
pub(crate) struct Constant<T> {
    made: OnceLock<T>,
    make: fn() -> T,
}

impl<T> Constant<T> {
    pub(crate) const fn new(make: fn() -> T) -> Self {
        Constant { made: OnceLock::new(), make }
    }
}

impl<T> Deref for Constant<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self.made.get() {
            Some(value) => value,
            None => {
                let value = (self.make)();
                self.made.get_or_init(|| value)
            }
        }
    }
}

/// A value of this process. A forked child gets a new one and never touches its parent's.
pub(crate) struct PerProcess<T>(OnceLock<Box<Slot<T>>>);

struct Slot<T> {
    pid: u32,
    value: T,
    next: PerProcess<T>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess(OnceLock::new())
    }

    pub(crate) fn get(&self) -> &T {
        let pid = std::process::id();
        let mut place = self;
        loop {
            let slot = match place.0.get() {
                Some(slot) => slot,
                None => {
                    let slot = Box::new(Slot { pid, value: T::default(), next: Self::new() });
                    place.0.get_or_init(|| slot)
                }
            };
            if slot.pid == pid {
                return &slot.value;
            }
            place = &slot.next;
        }
    }
}
