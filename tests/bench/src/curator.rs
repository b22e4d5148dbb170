//! A Java process with Curator's InterProcessMutex, driven like `peers.py`.

use anyhow::{Context, Result};
use fencelock_test_support::agent::Agent;
use tokio::process::Command;

pub(crate) fn agent(url: &str) -> Result<Agent> {
    let class_path = std::env::var("FENCELOCK_BENCH_CURATOR")
        .context("FENCELOCK_BENCH_CURATOR is not set; run this by tests/bench/run")?;
    let hosts = url.trim_start_matches("zookeeper://").trim_end_matches('/');
    let mut command = Command::new("java");
    command.args(["-cp", &class_path, concat!(env!("CARGO_MANIFEST_DIR"), "/Curator.java"), hosts]);
    Agent::start_command(command)
}
