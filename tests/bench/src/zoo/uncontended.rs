//! Acquire and release of a free lock, against a node created and deleted by the same driver.

use anyhow::Result;
use fencelock::Client;
use fencelock_test_support::samples::Samples;

use super::{Bare, follower};
use crate::report::{Pair, Report, Target};
use crate::turns::alternate;
use crate::uncontended::{on_a_task, runtime, turn_of_ours};

/// Cycles in one turn: few, so that both turns of a pair meet the machine in the same state.
const TURN: usize = 20;

pub(crate) fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("zookeeper-uncontended", "ZooKeeper: acquire and release of a free lock");
    // The leader answers faster: both have to ask the same member.
    let host = follower(url)?;
    let mut kept = Vec::new();
    for (what, threads) in [("current_thread", false), ("multi_thread", true)] {
        let mut pair = on_a_task(&runtime(threads)?, turns(host.clone(), rounds))??;
        let title = format!("ZooKeeper, acquire + release, {what} / bare create + delete");
        report.row(&title, pair.words("µs"), Target::AtMost(1.1), pair.ratio());
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

async fn turns(host: String, rounds: u32) -> Result<Pair> {
    let bare = Bare::new(&host).await?;
    let lock = Client::connect(&format!("zookeeper://{host}/")).await?.lock("bench/free")?;
    alternate(rounds * 4, || turn_of_ours(&lock, TURN), || turn_of_bare(&bare)).await
}

async fn turn_of_bare(bare: &Bare) -> Result<Samples> {
    let mut samples = Samples::default();
    for _ in 0..TURN {
        let (create, delete) = bare.cycle().await?;
        samples.add(create + delete);
    }
    Ok(samples)
}
