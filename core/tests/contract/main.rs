//! The contract, guarantee by guarantee, against every backend with real servers.
//!
//! A test takes a [`Site`] and makes as many clients on it as it likes; `on_each_backend!` runs
//! it on each backend: `memory:`, `file:`, a Redis server and a Redis Cluster.

// A test that cannot go on has failed; the lint's own exception covers only #[test] functions.
#![allow(clippy::unwrap_used)]

#[path = "../support/freeze.rs"]
mod freeze;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/redis_cluster.rs"]
mod redis_cluster;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/redis_server.rs"]
mod redis_server;
mod site;

mod file_directory;
mod g01_exclusion;
mod g02_deadline;
mod g03_fencing;
mod g04_liveness;
mod g05_order;
mod g06_ownership;
mod g07_no_leftovers;
mod g08_retries;
mod g10_validation;
mod redis_faults;
