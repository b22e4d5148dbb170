//! Order codes: many threads draw the next code from one sequence, and no code is given out twice.
//!
//! How the lock is used stands in `worker.rs`; what it protects in `sequence.rs`.

mod report;
mod sequence;
mod worker;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Barrier;
use std::thread;

use clap::{Parser, value_parser};
use fencelock::blocking::Client;

use crate::report::Report;
use crate::sequence::Sequence;
use crate::worker::Draw;

type Failure = Box<dyn Error + Send + Sync>;

/// Draws order codes, one in each thread, all at once.
///
/// All codes differ, because the threads take a lock around "read the last code, add one, write it
/// back". With --no-lock they do not, and many orders get the same code.
#[derive(Parser)]
#[command(name = "order_code", version)]
struct Options {
    /// Where the lock is kept, such as redis://host/. Without a URL: files of this machine, in a
    /// folder of this run's own.
    #[arg(long, env = "FENCELOCK_URL", hide_env_values = true)]
    url: Option<String>,

    /// Threads, each of which draws one code.
    #[arg(long, default_value = "20", value_parser = value_parser!(u16).range(1..=1000))]
    threads: u16,

    /// Do not lock: shows how many orders get the same code then.
    #[arg(long)]
    no_lock: bool,
}

fn main() -> ExitCode {
    match draw_codes(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("order_code: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The whole run; whether it went as promised.
fn draw_codes(options: &Options) -> Result<bool, Failure> {
    let folder = tempfile::tempdir()?;
    let sequence = Sequence::create(folder.path())?;
    let url = match &options.url {
        Some(url) => url.clone(),
        None => format!("file://{}", folder.path().join("locks").display()),
    };
    // One client for all threads: it has one connection and one watchdog, whatever their number.
    let client = Client::connect(&url)?;
    let lock = (!options.no_lock).then(|| client.lock(worker::LOCK)).transpose()?;

    let start = Barrier::new(usize::from(options.threads));
    let draws = thread::scope(|scope| {
        let draw = || {
            start.wait();
            worker::draw(lock.as_ref(), &sequence)
        };
        let threads: Vec<_> = (0..options.threads).map(|_| scope.spawn(draw)).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())));
        ended.collect::<Result<Vec<Draw>, Failure>>()
    })?;
    client.close();

    let place = match url.split(':').next() {
        _ if options.no_lock => "no lock".to_owned(),
        Some("file") => "lock in files".to_owned(),
        scheme => format!("lock in {}", scheme.unwrap_or_default()),
    };
    let report = Report::new(place, !options.no_lock, draws);
    println!("{report}");
    Ok(report.is_as_promised())
}
