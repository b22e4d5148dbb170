//! Faults at random moments against real servers. Each scenario prints its figures, and names
//! every promise that was broken.

mod agents;
mod cancel;
mod crash;
mod failover_loses_grant;
mod frozen_contender;
mod frozen_holder;
mod frozen_server;
mod handover;
mod lost_replies;
mod many_leases;
mod memory_flat;
mod outcome;

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
