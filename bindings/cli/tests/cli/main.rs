//! The command as a user meets it: real processes, over each place that locks can be kept in.

// Whatever fails here fails the test.
#![allow(clippy::unwrap_used)]

mod site;

mod admin;
mod exclusion;
mod flock;
mod leftovers;
mod loss;
mod peers;
mod readme;
mod signals;
mod surroundings;
mod terminal;
