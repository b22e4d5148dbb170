//! Release called → next acquire returned, against one majority write, and what it costs.

use std::time::Instant;

use anyhow::Result;
use fencelock_test_support::clock::ms;
use fencelock_test_support::samples::Samples;

use super::{Bare, Counters};
use crate::handover::{TURN_MS, race};
use crate::report::{Report, Target};

pub(crate) async fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("mongodb-handover", "MongoDB: hand-over between processes");
    let bare = Bare::new(url).await?;
    let counters = Counters::new(url).await?;
    let bare = async || {
        let end = Instant::now() + ms(TURN_MS / 2);
        let mut samples = Samples::default();
        while Instant::now() < end {
            let start = Instant::now();
            bare.write().await?;
            samples.add(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok(samples)
    };
    let count = async || Ok([counters.writes().await?, counters.commands().await?]);
    let mut races = race(url, rounds, bare, count).await?;
    races.report("MongoDB, ", "one bare majority write", [Target::None; 2], report)?;
    // A contender that waits for longer than a look period writes once more.
    let what = ("MongoDB, majority writes per contended cycle", "writes");
    races.report_spent(0, what, Target::AtMost(2.05), report);
    races.report_spent(1, ("MongoDB, commands for it", "commands"), Target::None, report);
    Ok(())
}
