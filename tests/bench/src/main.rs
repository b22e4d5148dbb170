//! Measurements as ratios, side by side in one run. Turns of what is measured and of what it is
//! compared with alternate, so that a machine that is slow for a while is slow for both.

mod bare;
mod baton;
mod chart;
mod handover;
mod hop;
mod pipelined;
mod python;
mod report;
mod server_calls;
mod uncontended;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use fencelock_test_support::racer;

use crate::report::Report;

#[derive(Parser)]
#[command(about = "Measures fencelock against the targets, as ratios in one run")]
struct Options {
    /// Few rounds: to see that it works, not to judge
    #[arg(long)]
    quick: bool,
    /// Only what has this in its name: uncontended, pipelined, handover, python, python-handover,
    /// server-calls
    #[arg(long)]
    only: Option<String>,
    /// Where the report, its charts and the raw samples go
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// A child process of a measurement
    #[command(hide = true)]
    Agent {
        #[command(subcommand)]
        role: Role,
    },
    /// Acquires and releases for a while and measures nothing: something for a profiler
    Spin {
        #[arg(long, default_value_t = 10_000)]
        cycles: u32,
        #[arg(long, default_value_t = 1)]
        tasks: u32,
        /// The bare scripts instead
        #[arg(long)]
        bare: bool,
        /// On a runtime of two threads
        #[arg(long)]
        threads: bool,
    },
}

#[derive(Subcommand)]
enum Role {
    Racer { url: String, name: String },
    Ping { url: String },
    Pong { url: String },
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let one_thread = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match &options.part {
        Some(Part::Agent { role: Role::Racer { url, name } }) => {
            return one_thread.block_on(racer::run(url, name));
        }
        Some(Part::Agent { role: Role::Ping { url } }) => {
            return one_thread.block_on(hop::ping(url));
        }
        Some(Part::Agent { role: Role::Pong { url } }) => {
            return one_thread.block_on(hop::pong(url));
        }
        Some(Part::Spin { cycles, tasks, bare, threads }) => {
            let work = uncontended::spin(server_url()?, *cycles, *tasks, *bare);
            return uncontended::on_a_task(&uncontended::runtime(*threads)?, work)?;
        }
        None => {}
    }
    let url = server_url()?;
    let begun = Instant::now();
    let load = load();
    let rounds = if options.quick { 4 } else { 30 };
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(&**only));
    let mut report = Report::new(&options.out)?;
    if wanted("uncontended") {
        uncontended::measure(&url, rounds, &mut report)?;
    }
    if wanted("pipelined") {
        pipelined::measure(&url, rounds, &mut report)?;
    }
    if wanted("handover") {
        one_thread.block_on(handover::measure(&url, rounds / 2, &mut report))?;
    }
    if wanted("python") {
        python::measure(&url, rounds, &mut report)?;
    }
    if wanted("python-handover") {
        one_thread.block_on(baton::measure(&url, rounds / 2, &mut report))?;
    }
    if wanted("server-calls") {
        one_thread.block_on(server_calls::measure(&url, options.quick, &mut report))?;
    }
    let server = redis_version(&url)?;
    let cores = std::thread::available_parallelism()?;
    let seconds = begun.elapsed().as_secs();
    report.finish(&format!(
        "{server}, {cores} cores, {rounds} rounds in {seconds} s; load of the machine {load} \
         before and {} after.",
        self::load()
    ))
}

/// Of the last minute. Without others on the machine it is 0 before.
fn load() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or_default().to_owned()
}

fn redis_version(url: &str) -> Result<String> {
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let info: redis::InfoDict = redis::cmd("INFO").arg("server").query(&mut connection)?;
    Ok(format!("Redis {}", info.get::<String>("redis_version").context("no version")?))
}

fn server_url() -> Result<String> {
    std::env::var("FENCELOCK_TEST_REDIS_URL")
        .context("FENCELOCK_TEST_REDIS_URL is not set; run this by tests/bench/run")
}
