//! A flash sale: many workers buy the same product at once, and every unit is sold exactly once.
//!
//! How the lock is used stands in `worker.rs`; how a store checks fencing tokens in `store.rs`.

mod fleet;
mod job;
mod picture;
mod report;
mod store;
mod turn;
mod worker;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, error::ErrorKind};
use indicatif::{ProgressBar, ProgressStyle};

use crate::fleet::Fleet;
use crate::job::{Job, Options, Part, wall_clock};
use crate::report::Report;
use crate::store::Store;
use crate::turn::{Outcome, Turn};

type Failure = Box<dyn Error + Send + Sync>;

/// How long processes get to start before the sale opens, in microseconds.
const STARTING: u64 = 250_000;
/// The lock's ttl: with --crash that is how long the others have to wait.
const TTL_MS: u64 = 30_000;
const TTL_MS_CRASH: u64 = 2_000;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let result = match &options.part {
        Some(Part::Worker(job)) => fleet::be_worker(job).await.map(|()| true),
        None => sell(&options).await,
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("flash_sale: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The whole sale; whether it went as promised.
async fn sell(options: &Options) -> Result<bool, Failure> {
    if options.crash && options.workers < 2 {
        let message = "--crash needs at least 2 workers: one to kill and one to go on\n";
        Options::command().error(ErrorKind::ValueValidation, message).exit();
    }
    let folder = tempfile::tempdir()?;
    let store = Store::create(folder.path(), options.stock)?;
    let url = match &options.url {
        Some(url) => url.clone(),
        None => format!("file://{}", folder.path().join("locks").display()),
    };

    let jobs = jobs(options, folder.path());
    let (mut fleet, mut reports) = if options.is_one_process() {
        Fleet::of_tasks(&url, jobs).await?
    } else {
        Fleet::of_processes(&url, jobs).await?
    };

    let bar = progress_bar(options.stock); // draws nothing unless on a terminal
    let mut turns: Vec<Turn> = Vec::new();
    while let Some(turn) = reports.recv().await {
        match turn.outcome {
            Outcome::Sold => bar.inc(1),
            Outcome::Crashed => fleet.kill(turn.worker).await?,
            _ => {}
        }
        turns.push(turn);
    }
    bar.finish_and_clear();
    fleet.join().await?;

    let left = store.read_stock(None).await?;
    let report = Report::new(options, left, &store.orders()?, &mut turns);
    println!("{report}");
    if options.picture != Path::new("none") {
        if let Some(folder) = options.picture.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&options.picture, picture::draw(&report, &turns))?;
        println!("picture     {}", options.picture.display());
    }
    println!("{}", report.verdict());
    Ok(report.is_as_promised())
}

fn jobs(options: &Options, store: &Path) -> Vec<Job> {
    let one_process = options.is_one_process();
    let workers = usize::from(options.workers);
    let opens_at = wall_clock() + if one_process { 0 } else { STARTING };
    let job = |worker| {
        // The first worker is the victim, when a quarter of the stock is sold.
        let crashes = options.crash && worker == 0;
        Job {
            worker,
            store: store.to_path_buf(),
            opens_at,
            ttl_ms: if options.crash { TTL_MS_CRASH } else { TTL_MS },
            no_lock: options.no_lock,
            crash_after: crashes.then(|| options.stock / (4 * workers as u64)),
            // A killed process renews nothing any more. The client of a killed task lives on and
            // would go on renewing, so that this one lock must not be renewed from the start.
            renew: !(crashes && one_process),
        }
    };
    (0..workers).map(job).collect()
}

fn progress_bar(stock: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} sold");
    ProgressBar::new(stock).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
