//! ZooKeeper as it runs in production: ensembles whose members die, freeze or lose each other,
//! rights, TLS, and a chroot. Real servers; a test that hurts them starts its own.

// A test that cannot go on has failed; the lint's own exception covers only #[test] functions.
#![allow(clippy::unwrap_used)]

#[path = "../support/authority.rs"]
mod authority;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/background.rs"]
mod background;
#[path = "../support/freeze.rs"]
mod freeze;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/links.rs"]
mod links;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/ports.rs"]
mod ports;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/redis_cluster.rs"]
mod redis_cluster;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/redis_server.rs"]
mod redis_server;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/server_process.rs"]
mod server_process;
#[allow(dead_code, unused_macros, unused_imports, reason = "shared with other tests")]
#[path = "../contract/site.rs"]
mod site;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/zookeeper_ensemble.rs"]
mod zookeeper_ensemble;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../support/zookeeper_server.rs"]
mod zookeeper_server;

mod partitions;
mod rights;
mod tls;
