//! A lock of some language, in a process that is driven like `peers.py`.

use anyhow::Result;
use fencelock_test_support::agent::Agent;

/// The kind of process that has the lock, and the lock's name there.
pub(crate) struct Contestant {
    pub(crate) title: &'static str,
    pub(crate) name: &'static str,
    pub(crate) process: fn(&str) -> Result<Agent>,
}

pub(crate) const fn contestant(
    title: &'static str,
    name: &'static str,
    process: fn(&str) -> Result<Agent>,
) -> Contestant {
    Contestant { title, name, process }
}
