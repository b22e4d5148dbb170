//! The options of the program, and what one worker of it is told.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand, value_parser};

/// Sells the stock of product 123, one unit at a time, to workers that all want it at once.
///
/// Every unit is sold exactly once, because the workers take a lock around "read the stock, check
/// it, write it back". With --no-lock they do not, and sell what is not there.
#[derive(Parser)]
#[command(name = "flash_sale", version)]
pub(crate) struct Options {
    /// Where the lock is kept, such as redis://host/. The workers are processes; with memory: they
    /// are tasks of this one. Without a URL: files of this machine, in a folder of this sale's own.
    #[arg(long, env = "FENCELOCK_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,

    /// Units to sell.
    #[arg(long, default_value_t = 2000, value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub(crate) stock: u64,

    /// Workers that buy.
    #[arg(long, default_value = "8", value_parser = value_parser!(u16).range(1..=1000))]
    pub(crate) workers: u16,

    /// Do not lock: shows how much is oversold then.
    #[arg(long, conflicts_with = "crash")]
    pub(crate) no_lock: bool,

    /// Kill a worker while it holds the lock: shows how the others go on when its ttl is over.
    #[arg(long)]
    pub(crate) crash: bool,

    /// Where to draw who held the lock when, as SVG; "none" for no picture.
    #[arg(long, value_name = "FILE", default_value = "target/flash_sale.svg")]
    pub(crate) picture: PathBuf,

    #[command(subcommand)]
    pub(crate) part: Option<Part>,
}

impl Options {
    /// What kind of backend keeps the lock.
    pub(crate) fn scheme(&self) -> &str {
        self.url.as_deref().and_then(|url| url.split(':').next()).unwrap_or("file")
    }

    /// Whether all workers live in this process.
    pub(crate) fn is_one_process(&self) -> bool {
        self.scheme() == "memory"
    }
}

/// What this process is for, when it is not the whole sale.
#[derive(Subcommand)]
pub(crate) enum Part {
    /// One worker process, started by the sale.
    #[command(hide = true)]
    Worker(Job),
}

/// What one worker is told.
#[derive(Args, Clone)]
pub(crate) struct Job {
    /// The number of the worker.
    #[arg(long)]
    pub(crate) worker: usize,
    /// The folder of the store.
    #[arg(long)]
    pub(crate) store: PathBuf,
    /// When the sale opens, in microseconds since 1970; also the zero of all times in the report.
    #[arg(long)]
    pub(crate) opens_at: u64,
    /// The ttl of the lock.
    #[arg(long)]
    pub(crate) ttl_ms: u64,
    /// Buy without the lock.
    #[arg(long)]
    pub(crate) no_lock: bool,
    /// Crash in the turn after this many.
    #[arg(long)]
    pub(crate) crash_after: Option<u64>,
    /// Whether the client's watchdog renews the lease, as it should.
    #[arg(skip = true)]
    pub(crate) renew: bool,
}

impl Job {
    /// The same job as a command line.
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "worker".to_owned(),
            format!("--worker={}", self.worker),
            format!("--store={}", self.store.display()),
            format!("--opens-at={}", self.opens_at),
            format!("--ttl-ms={}", self.ttl_ms),
        ];
        if self.no_lock {
            arguments.push("--no-lock".to_owned());
        }
        arguments.extend(self.crash_after.map(|turns| format!("--crash-after={turns}")));
        arguments
    }

    /// Microseconds since the sale opened, the same in all worker processes.
    pub(crate) fn now(&self) -> u64 {
        wall_clock().saturating_sub(self.opens_at)
    }

    /// For how long the sale is still closed.
    pub(crate) fn until_opening(&self) -> Duration {
        Duration::from_micros(self.opens_at.saturating_sub(wall_clock()))
    }
}

/// Microseconds since 1970. Good enough for a report; the lock itself never asks this clock.
pub(crate) fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}
