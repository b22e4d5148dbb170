//! Many tasks on as many names through one client, against script pairs sent bare in the same way.

use std::time::{Duration, Instant};

use anyhow::Result;
use fencelock::Client;
use fencelock_test_support::redis_server::connection;
use fencelock_test_support::samples::Samples;
use tokio::task::JoinSet;

use crate::bare::Bare;
use crate::report::{Pair, Report, Target};
use crate::turns::alternate;
use crate::uncontended::{on_a_task, runtime};

const TASKS: usize = 64;
const TURN: Duration = Duration::from_millis(250);

pub(crate) fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("pipelined", "Many tasks through one client");
    let mut kept = Vec::new();
    for (what, threads) in [("current_thread", false), ("multi_thread", true)] {
        let mut pair = on_a_task(&runtime(threads)?, turns(url.to_owned(), rounds / 2))??;
        let title = format!("{TASKS} tasks on {TASKS} names, {what} / bare script pairs");
        report.row(&title, pair.words("per second"), Target::AtLeast(0.9), pair.ratio());
        kept.push((what, pair));
    }
    let samples: Vec<_> = kept
        .iter()
        .flat_map(|(what, pair)| {
            [(format!("{what}, fencelock"), &pair.ours), (format!("{what}, bare"), &pair.other)]
        })
        .collect();
    report.keep("cycles per second", &samples)
}

async fn turns(url: String, rounds: u32) -> Result<Pair> {
    let names: Vec<_> = (0..TASKS).map(|i| format!("bench/many-{i}")).collect();
    let scripts = Bare::record(&url, &names).await?;
    let connection = connection(&url).await?;
    let client = Client::connect(&url).await?;

    let locks = names.iter().map(|name| client.lock(name)).collect::<Result<Vec<_>, _>>()?;
    let ours = || {
        let locks = locks.clone().into_iter();
        rate(locks.map(|lock| async move {
            let end = Instant::now() + TURN;
            let mut cycles = 0;
            while Instant::now() < end {
                lock.acquire().await?.release().await?;
                cycles += 1;
            }
            Ok(cycles)
        }))
    };
    let bare = || {
        let scripts = scripts.clone().into_iter();
        let connection = connection.clone();
        rate(scripts.map(move |script| {
            let mut connection = connection.clone();
            async move {
                let end = Instant::now() + TURN;
                let mut cycles = 0;
                while Instant::now() < end {
                    script.cycle(&mut connection).await?;
                    cycles += 1;
                }
                Ok(cycles)
            }
        }))
    };
    alternate(rounds, ours, bare).await
}

/// Cycles per second of all tasks together, as one value.
async fn rate<F>(tasks: impl Iterator<Item = F>) -> Result<Samples>
where
    F: Future<Output = Result<u64>> + Send + 'static,
{
    let start = Instant::now();
    let mut running: JoinSet<_> = tasks.collect();
    let mut cycles = 0;
    while let Some(ended) = running.join_next().await {
        cycles += ended??;
    }
    Ok(Samples::from_iter([cycles as f64 / start.elapsed().as_secs_f64()]))
}
