//! Faults at random moments against real servers. Each scenario prints its figures, and names
//! every promise that was broken.

// The fixtures of the core's own tests: servers that a scenario freezes, kills and cuts off.
#[allow(clippy::unwrap_used, reason = "shared with tests")]
#[path = "../../../core/tests/support/background.rs"]
mod background;
#[allow(clippy::unwrap_used, reason = "shared with tests")]
#[path = "../../../core/tests/support/freeze.rs"]
mod freeze;
#[allow(clippy::unwrap_used, dead_code, reason = "shared with tests")]
#[path = "../../../core/tests/support/links.rs"]
mod links;
#[allow(clippy::unwrap_used, dead_code, reason = "shared with tests")]
#[path = "../../../core/tests/support/mongo_server.rs"]
mod mongo_server;
#[allow(clippy::unwrap_used, dead_code, reason = "shared with tests")]
#[path = "../../../core/tests/support/mongo_set.rs"]
mod mongo_set;
#[path = "../../../core/tests/support/ports.rs"]
mod ports;
#[allow(clippy::unwrap_used, dead_code, reason = "shared with tests")]
#[path = "../../../core/tests/support/server_process.rs"]
mod server_process;
#[allow(clippy::unwrap_used, dead_code, reason = "shared with tests")]
#[path = "../../../core/tests/support/zookeeper_ensemble.rs"]
mod zookeeper_ensemble;
#[allow(clippy::unwrap_used, dead_code, reason = "shared with tests")]
#[path = "../../../core/tests/support/zookeeper_server.rs"]
mod zookeeper_server;

mod agents;
mod cancel;
mod crash;
mod failover_loses_grant;
mod frozen_contender;
mod frozen_holder;
mod frozen_server;
mod handover;
mod lead;
mod lost_replies;
mod many_leases;
mod memory_flat;
mod mongo_crash;
mod mongo_faults;
mod mongo_first_use;
mod mongo_idle;
mod mongo_isolated_primary;
mod mongo_kill_primary;
mod outcome;
mod workers;
mod zk_cancel;
mod zk_crash;
mod zk_cut_follower;
mod zk_expired_session;
mod zk_idle;
mod zk_kill_leader;

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::outcome::Outcome;

#[derive(Parser)]
#[command(about = "Faults at random moments against real servers")]
struct Options {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Clone, Subcommand)]
enum Scenario {
    /// Every scenario, one after the other
    All,
    /// The server is stopped: no lease outlives what the server granted
    FrozenServer(frozen_server::Options),
    /// A holder is stopped: its first check afterwards says lost
    FrozenHolder(frozen_holder::Options),
    /// A contender is stopped, granted, passed over and woken: never two holders
    FrozenContender(frozen_contender::Options),
    /// Many contenders in several processes: order, cost and speed of a hand-over
    Handover(handover::Options),
    /// Many leases over a slow link: none is lost
    ManyLeases(many_leases::Options),
    /// Acquires are cancelled at random moments: nothing is left
    Cancel(cancel::Options),
    /// Processes are killed at random moments: others go on soon, and never overlap
    Crash(crash::Options),
    /// A failover forgets the newest grant: tokens never repeat; with replicas = 1 no overlap
    FailoverLosesGrant(failover_loses_grant::Options),
    /// Connections break and swallow replies: no overlap, true verdicts, nothing left
    LostReplies(lost_replies::Options),
    /// Many names, one after the other: memory does not grow
    MemoryFlat(memory_flat::Options),
    /// MongoDB: processes are killed at random moments, many of them together
    MongoCrash(mongo_crash::Options),
    /// MongoDB: the primary is stopped, steps down, is killed; the secondaries are stopped
    MongoFaults(mongo_faults::Options),
    /// MongoDB: many processes take one name for the first time ever, at once
    MongoFirstUse(mongo_first_use::Options),
    /// MongoDB: contenders that only wait hardly write
    MongoIdle(mongo_idle::Options),
    /// MongoDB: an old primary that is cut off from the others grants nothing
    MongoIsolatedPrimary(mongo_isolated_primary::Options),
    /// MongoDB: the primary is killed under contending processes
    MongoKillPrimary(mongo_kill_primary::Options),
    /// ZooKeeper: acquires are cancelled, many with the create in flight: no child is left
    ZkCancel(zk_cancel::Options),
    /// ZooKeeper: processes are killed at random moments, many of them together
    ZkCrash(zk_crash::Options),
    /// ZooKeeper: the holder's server is cut off from the others: lost comes before the next grant
    ZkCutFollower(zk_cut_follower::Options),
    /// ZooKeeper: a session expires while it holds and while it waits
    ZkExpiredSession(zk_expired_session::Options),
    /// ZooKeeper: contenders that only wait write nothing but what keeps their session alive
    ZkIdle(zk_idle::Options),
    /// ZooKeeper: the leader is killed under contending processes
    ZkKillLeader(zk_kill_leader::Options),
    /// A child process of a scenario
    #[command(hide = true)]
    Agent {
        #[command(subcommand)]
        role: agents::Role,
    },
}

const ALL: &[&str] = &[
    "frozen-server",
    "frozen-holder",
    "frozen-contender",
    "handover",
    "many-leases",
    "cancel",
    "crash",
    "failover-loses-grant",
    "lost-replies",
    "memory-flat",
    "mongo-first-use",
    "mongo-kill-primary",
    "mongo-isolated-primary",
    "mongo-faults",
    "mongo-crash",
    "mongo-idle",
    "zk-expired-session",
    "zk-cut-follower",
    "zk-cancel",
    "zk-kill-leader",
    "zk-crash",
    "zk-idle",
];

impl Scenario {
    /// None for what is no single scenario.
    fn run(self) -> Option<Result<Outcome>> {
        let runtime = match tokio::runtime::Runtime::new() {
            Ok(runtime) => runtime,
            Err(error) => return Some(Err(error.into())),
        };
        let outcome = match self {
            Scenario::FrozenServer(options) => runtime.block_on(frozen_server::run(options)),
            Scenario::FrozenHolder(options) => runtime.block_on(frozen_holder::run(options)),
            Scenario::FrozenContender(options) => runtime.block_on(frozen_contender::run(options)),
            Scenario::Handover(options) => runtime.block_on(handover::run(options)),
            Scenario::ManyLeases(options) => runtime.block_on(many_leases::run(options)),
            Scenario::Cancel(options) => runtime.block_on(cancel::run(options)),
            Scenario::Crash(options) => runtime.block_on(crash::run(options)),
            Scenario::FailoverLosesGrant(options) => {
                runtime.block_on(failover_loses_grant::run(options))
            }
            Scenario::LostReplies(options) => runtime.block_on(lost_replies::run(options)),
            Scenario::MemoryFlat(options) => runtime.block_on(memory_flat::run(options)),
            Scenario::MongoCrash(options) => runtime.block_on(mongo_crash::run(options)),
            Scenario::MongoFaults(options) => runtime.block_on(mongo_faults::run(options)),
            Scenario::MongoFirstUse(options) => runtime.block_on(mongo_first_use::run(options)),
            Scenario::MongoIdle(options) => runtime.block_on(mongo_idle::run(options)),
            Scenario::MongoIsolatedPrimary(options) => {
                runtime.block_on(mongo_isolated_primary::run(options))
            }
            Scenario::MongoKillPrimary(options) => {
                runtime.block_on(mongo_kill_primary::run(options))
            }
            Scenario::ZkCancel(options) => runtime.block_on(zk_cancel::run(options)),
            Scenario::ZkCrash(options) => runtime.block_on(zk_crash::run(options)),
            Scenario::ZkCutFollower(options) => runtime.block_on(zk_cut_follower::run(options)),
            Scenario::ZkExpiredSession(options) => {
                runtime.block_on(zk_expired_session::run(options))
            }
            Scenario::ZkIdle(options) => runtime.block_on(zk_idle::run(options)),
            Scenario::ZkKillLeader(options) => runtime.block_on(zk_kill_leader::run(options)),
            Scenario::All | Scenario::Agent { .. } => return None,
        };
        // Tasks that wait for a server that is gone must not hold up the next scenario.
        runtime.shutdown_background();
        Some(outcome)
    }
}

fn main() -> ExitCode {
    match Options::parse().scenario {
        Scenario::All => {
            let failed: Vec<_> = ALL.iter().filter(|name| !run_by_name(name)).collect();
            println!("\n{} scenarios, failed: {failed:?}", ALL.len());
            if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Scenario::Agent { role } => match agents::run(role) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("agent {}: {error:#}", std::process::id());
                ExitCode::FAILURE
            }
        },
        scenario => {
            let name = std::env::args().nth(1).unwrap_or_default();
            if run_one(&name, scenario) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}

/// With the default options, in a process of its own: memory and threads of one scenario are not
/// those of another.
fn run_by_name(name: &str) -> bool {
    let status = std::env::current_exe().and_then(|exe| Command::new(exe).arg(name).status());
    match status {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("{name} cannot be started: {error}");
            false
        }
    }
}

/// Whether every promise was kept.
fn run_one(name: &str, scenario: Scenario) -> bool {
    let start = Instant::now();
    match scenario.run() {
        Some(Ok(outcome)) => {
            println!("\n{name} ({:.1} s)", start.elapsed().as_secs_f64());
            outcome.print()
        }
        Some(Err(error)) => {
            println!("\n{name}: could not be run: {error:#}");
            false
        }
        None => false,
    }
}
