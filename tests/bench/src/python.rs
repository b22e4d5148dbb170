//! Acquire and release from Python, against redis-py's Lock and against Rust.

use anyhow::{Context, Result};
use fencelock::{Client, blocking};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::ms;
use fencelock_test_support::samples::Samples;
use tokio::process::Command;
use tokio::runtime::Builder;

use crate::report::{Pair, Report, Target};
use crate::uncontended::{turn_of_blocking, turn_of_ours};

const TURN: u32 = 300;

pub(crate) fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    let python = std::env::var("FENCELOCK_BENCH_PYTHON")
        .context("FENCELOCK_BENCH_PYTHON is not set; run this by tests/bench/run")?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut command = Command::new(python);
    command.args([concat!(env!("CARGO_MANIFEST_DIR"), "/cycle.py"), url]);
    let mut agent = {
        let _context = runtime.enter();
        Agent::start_command(command)?
    };
    let lock = runtime.block_on(Client::connect(url))?.lock("bench/rust")?;
    let blocking = blocking::Client::connect(url)?.lock("bench/rust-blocking")?;

    let mut ask = |what: &str| -> Result<Samples> {
        let times: Vec<u64> = runtime.block_on(async {
            agent.tell(&(what, TURN)).await?;
            agent.hear(ms(60_000)).await
        })?;
        Ok(times.into_iter().map(|t| t as f64 / 1e3).collect())
    };
    let (mut peer, mut rust, mut rust_async) = (Pair::default(), Pair::default(), Pair::default());
    for round in 0..=rounds {
        let ours = ask("fencelock")?;
        let theirs = ask("redis-py")?;
        let ours_async = ask("fencelock-async")?;
        let of_blocking = turn_of_blocking(&blocking)?;
        let of_rust = runtime.block_on(turn_of_ours(&lock))?;
        // The first round warms up.
        if round > 0 {
            peer.turn(ours.clone(), theirs);
            rust.turn(ours, of_blocking);
            rust_async.turn(ours_async, of_rust);
        }
    }
    let row = "Python, with lock / redis-py's Lock";
    report.row(row, peer.words("µs"), Target::AtMost(1.0), peer.ratio());
    let row = "Python, with lock / Rust, blocking API";
    report.row(row, rust.words("µs"), Target::AtMost(1.6), rust.ratio());
    let row = "Python, async with lock / Rust, current_thread";
    report.row(row, rust_async.words("µs"), Target::None, rust_async.ratio());
    report.keep(
        "python",
        &[
            ("fencelock µs".into(), &peer.ours),
            ("redis-py µs".into(), &peer.other),
            ("fencelock async µs".into(), &rust_async.ours),
            ("rust blocking µs".into(), &rust.other),
            ("rust current_thread µs".into(), &rust_async.other),
        ],
    )
}
