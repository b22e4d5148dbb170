//! Redis as it runs in production: with TLS, sentinels, a cluster, replicas, and what each of them
//! guarantees when servers die, forget or move. Real servers, started by each test.

// A test that cannot go on has failed; the lint's own exception covers only #[test] functions.
#![allow(clippy::unwrap_used)]

#[path = "../support/authority.rs"]
mod authority;
#[path = "../support/freeze.rs"]
mod freeze;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/redis_cluster.rs"]
mod redis_cluster;
#[path = "../support/redis_pair.rs"]
mod redis_pair;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/redis_sentinel.rs"]
mod redis_sentinel;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/redis_server.rs"]
mod redis_server;
#[allow(dead_code, unused_macros, unused_imports, reason = "shared with other tests")]
#[path = "../contract/site.rs"]
mod site;

mod cluster;
mod guarantees;
mod replicas;
mod replication;
mod sentinel;
mod tls;
