//! Release called → next acquire returned, against one bare delete, and what it costs.

use std::time::Instant;

use anyhow::Result;
use fencelock_test_support::clock::ms;
use fencelock_test_support::samples::Samples;

use super::{Bare, Requests, hosts};
use crate::handover::{TURN_MS, race};
use crate::report::{Report, Target};

pub(crate) async fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("zookeeper-handover", "ZooKeeper: hand-over between processes");
    // One on each member, over which the contenders spread as well.
    let mut sessions = Vec::new();
    for host in hosts(url) {
        sessions.push(Bare::new(&host).await?);
    }
    let bare = async || {
        let end = Instant::now() + ms(TURN_MS / 2);
        let mut samples = Samples::default();
        while Instant::now() < end {
            for session in &sessions {
                samples.add(session.cycle().await?.1);
            }
        }
        Ok(samples)
    };
    let mut requests = Requests::new(url)?;
    let mut races = race(url, rounds, bare, async || Ok([requests.total()?])).await?;
    races.report("ZooKeeper, ", "one bare delete", [Target::None; 2], report)?;
    let what = ("ZooKeeper, requests per hand-over", "requests");
    races.report_spent(0, what, Target::AtMost(5.0), report);
    Ok(())
}
