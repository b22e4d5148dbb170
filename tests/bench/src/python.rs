//! Acquire and release from Python, against the locks that Python has, and against Rust.

use anyhow::{Context, Result};
use fencelock::{Client, blocking};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::ms;
use fencelock_test_support::samples::Samples;
use tokio::process::Command;
use tokio::runtime::Builder;

use crate::report::{Pair, Report, Target};
use crate::uncontended::{TURN as TURN_OF_RUST, turn_of_blocking, turn_of_ours};

/// Short, and many of them: so all that is compared happens within a fraction of a second.
const TURN: u64 = 60;

/// What we are compared with: its name in `peers.py`, and in the report.
pub(crate) const PEERS: [(&str, &str); 3] = [
    ("redis-py", "redis-py's Lock"),
    ("python-redis-lock", "python-redis-lock"),
    ("pottery", "pottery's Redlock"),
];

/// A Python process that has all the locks.
pub(crate) fn agent(url: &str) -> Result<Agent> {
    let python = std::env::var("FENCELOCK_BENCH_PYTHON")
        .context("FENCELOCK_BENCH_PYTHON is not set; run this by tests/bench/run")?;
    let mut command = Command::new(python);
    command.args([concat!(env!("CARGO_MANIFEST_DIR"), "/peers.py"), url]);
    Agent::start_command(command)
}

/// Microseconds of each of so many cycles in another process.
pub(crate) async fn cycles(agent: &mut Agent, lock: &str, count: u64) -> Result<Samples> {
    agent.tell(&("cycle", lock, count)).await?;
    let times: Vec<u64> = agent.hear(ms(60_000)).await?;
    Ok(times.into_iter().map(|t| t as f64 / 1e3).collect())
}

pub(crate) fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("python", "Acquire and release of a free lock, from Python");
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut agent = {
        let _context = runtime.enter();
        agent(url)?
    };
    let lock = runtime.block_on(Client::connect(url))?.lock("bench/rust")?;
    let blocking = blocking::Client::connect(url)?.lock("bench/rust-blocking")?;
    let mut peers: [Pair; PEERS.len()] = Default::default();
    let (mut rust, mut rust_async) = (Pair::default(), Pair::default());
    for round in 0..=rounds * 5 {
        let mut ask = |lock: &str| runtime.block_on(cycles(&mut agent, lock, TURN));
        let ours_first = if round % 2 == 0 { Some(ask("fencelock")?) } else { None };
        let theirs: Vec<_> = PEERS.iter().map(|(peer, _)| ask(peer)).collect::<Result<_>>()?;
        let ours = ours_first.map_or_else(|| ask("fencelock"), Ok)?;
        let of_blocking = turn_of_blocking(&blocking)?;
        let ours_async = ask("fencelock-async")?;
        let of_rust = runtime.block_on(turn_of_ours(&lock, TURN_OF_RUST))?;
        // The first round warms up.
        if round > 0 {
            peers.iter_mut().zip(theirs).for_each(|(pair, t)| pair.turn(ours.clone(), t));
            rust.turn(ours, of_blocking);
            rust_async.turn(ours_async, of_rust);
        }
    }
    for (pair, (_, title)) in peers.iter_mut().zip(PEERS) {
        let title = format!("Python, with lock / {title}");
        report.row(&title, pair.words("µs"), Target::AtMost(1.0), pair.ratio());
    }
    let row = "Python, with lock / Rust, blocking API";
    report.row(row, rust.words("µs"), Target::AtMost(1.6), rust.ratio());
    let row = "Python, async with lock / Rust, current_thread";
    report.row(row, rust_async.words("µs"), Target::None, rust_async.ratio());
    let mut samples = vec![
        ("Rust, current_thread".into(), &rust_async.other),
        ("Rust, blocking API".into(), &rust.other),
        ("fencelock".into(), &rust.ours),
        ("fencelock, asyncio".into(), &rust_async.ours),
    ];
    samples.extend(peers.iter().zip(PEERS).map(|(pair, (name, _))| (name.into(), &pair.other)));
    report.keep("µs per cycle", &samples)
}
