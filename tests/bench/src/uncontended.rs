//! Acquire and release of a free lock, against the same two scripts sent bare.

use std::future::Future;
use std::time::Instant;

use anyhow::Result;
use fencelock::{Client, Lock, blocking};
use fencelock_test_support::redis_server::connection;
use fencelock_test_support::samples::Samples;
use redis::aio::MultiplexedConnection;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::bare::Bare;
use crate::report::{Pair, Report, Target};
use crate::turns::alternate;

/// Cycles in one turn.
pub(crate) const TURN: usize = 300;
const NAME: &str = "bench/free";

pub(crate) fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("uncontended", "Acquire and release of a free lock");
    let mut kept = Vec::new();
    for (what, threads) in [("current_thread", false), ("multi_thread", true)] {
        let mut pair = on_a_task(&runtime(threads)?, turns(url.to_owned(), rounds))??;
        let title = format!("acquire + release, {what} / the same two scripts sent bare");
        report.row(&title, pair.words("µs"), Target::AtMost(1.15), pair.ratio());
        kept.push((what, pair));
    }
    let mut pair = blocking_turns(url, rounds)?;
    let title = "the same, blocking API / bare from a thread outside its runtime";
    report.row(title, pair.words("µs"), Target::AtMost(1.15), pair.ratio());
    kept.push(("blocking", pair));
    let samples: Vec<_> = kept
        .iter()
        .flat_map(|(what, pair)| {
            [(format!("{what}, fencelock"), &pair.ours), (format!("{what}, bare"), &pair.other)]
        })
        .collect();
    report.keep("µs per cycle", &samples)
}

/// Of one thread, or of two workers.
pub(crate) fn runtime(threads: bool) -> Result<Runtime> {
    let mut builder = match threads {
        false => Builder::new_current_thread(),
        true => Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(2).enable_all().build()?)
}

/// As a task, as in a service; `block_on` of a runtime with workers would run outside of them.
pub(crate) fn on_a_task<F>(runtime: &Runtime, work: F) -> Result<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Ok(runtime.block_on(runtime.spawn(work))?)
}

async fn turns(url: String, rounds: u32) -> Result<Pair> {
    let bare = Bare::record(&url, &[NAME.to_owned()]).await?.remove(0);
    let connection = connection(&url).await?;
    let lock = Client::connect(&url).await?.lock(NAME)?;
    let bare = || turn_of_bare(&bare, connection.clone());
    alternate(rounds, || turn_of_ours(&lock, TURN), bare).await
}

/// Microseconds of each of so many cycles.
pub(crate) async fn turn_of_ours(lock: &Lock, cycles: usize) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..cycles {
        let start = Instant::now();
        lock.acquire().await?.release().await?;
        samples.add(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(samples)
}

async fn turn_of_bare(bare: &Bare, mut connection: MultiplexedConnection) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..TURN {
        let start = Instant::now();
        bare.cycle(&mut connection).await?;
        samples.add(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(samples)
}

pub(crate) fn turn_of_blocking(lock: &blocking::Lock) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..TURN {
        let start = Instant::now();
        lock.acquire()?.release()?;
        samples.add(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(samples)
}

/// The blocking API runs its connection on one worker of its own and waits in the caller's
/// thread; so does the bare side.
fn blocking_turns(url: &str, rounds: u32) -> Result<Pair> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let bare = runtime.block_on(Bare::record(url, &[NAME.to_owned()]))?.remove(0);
    let mut connection = runtime.block_on(connection(url))?;
    let lock = blocking::Client::connect(url)?.lock(NAME)?;
    let mut turn_of_bare = || -> Result<Samples> {
        let mut samples = Samples::default();
        for _ in 0..TURN {
            let start = Instant::now();
            runtime.block_on(bare.cycle(&mut connection))?;
            samples.add(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok(samples)
    };
    turn_of_blocking(&lock)?;
    let mut pair = Pair::default();
    for round in 0..rounds {
        if round % 2 == 0 {
            let ours = turn_of_blocking(&lock)?;
            pair.turn(ours, turn_of_bare()?);
        } else {
            let other = turn_of_bare()?;
            pair.turn(turn_of_blocking(&lock)?, other);
        }
    }
    Ok(pair)
}

/// For a profiler: that many cycles by each of so many tasks, each with a name of its own.
pub(crate) async fn spin(url: String, cycles: u32, tasks: u32, bare: bool) -> Result<()> {
    let names: Vec<_> = (0..tasks).map(|i| format!("{NAME}-{i}")).collect();
    let scripts = Bare::record(&url, &names).await?;
    let connection = connection(&url).await?;
    let client = Client::connect(&url).await?;
    let mut running = JoinSet::new();
    for (name, script) in names.iter().zip(scripts) {
        let lock = client.lock(name)?;
        let mut connection = connection.clone();
        running.spawn(async move {
            for _ in 0..cycles {
                if bare {
                    script.cycle(&mut connection).await?;
                } else {
                    lock.acquire().await?.release().await?;
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}
