//! Acquire and release of a free lock, against two majority writes sent bare by the same driver.

use std::time::Instant;

use anyhow::Result;
use fencelock::Client;
use fencelock_test_support::samples::Samples;

use super::Bare;
use crate::report::{Pair, Report, Target};
use crate::turns::alternate;
use crate::uncontended::{on_a_task, runtime, turn_of_ours};

/// Cycles in one turn: few, so that both turns of a pair meet the machine in the same state.
const TURN: usize = 10;

pub(crate) fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("mongodb-uncontended", "MongoDB: acquire and release of a free lock");
    let mut kept = Vec::new();
    for (what, threads) in [("current_thread", false), ("multi_thread", true)] {
        let mut pair = on_a_task(&runtime(threads)?, turns(url.to_owned(), rounds))??;
        let title = format!("MongoDB, acquire + release, {what} / two bare majority findAndModify");
        report.row(&title, pair.words("µs"), Target::AtMost(1.15), pair.ratio());
        kept.push((what, pair));
    }
    let samples: Vec<_> = kept
        .iter()
        .flat_map(|(what, pair)| {
            [(format!("{what}, fencelock"), &pair.ours), (format!("{what}, bare"), &pair.other)]
        })
        .collect();
    report.keep("µs per cycle", &samples)
}

async fn turns(url: String, rounds: u32) -> Result<Pair> {
    let bare = Bare::new(&url).await?;
    let lock = Client::connect(&url).await?.lock("bench/free")?;
    alternate(rounds * 4, || turn_of_ours(&lock, TURN), || turn_of_bare(&bare)).await
}

async fn turn_of_bare(bare: &Bare) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..TURN {
        let start = Instant::now();
        bare.write().await?;
        bare.write().await?;
        samples.add(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(samples)
}
