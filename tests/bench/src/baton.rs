//! Hand-over from one Python process to another: release called → next acquire returned.
//!
//! The one that releases asks again only when the other has the lock: most peers give it to
//! whoever happens to ask first, and that would be the releaser itself for ever.

use anyhow::{Result, ensure};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::ms;
use fencelock_test_support::samples::Samples;

use crate::python::{PEERS, agent};
use crate::report::{Pair, Report, Target};

/// Hand-overs in one turn.
const TURN: u32 = 4;

pub(crate) async fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("python-handover", "Hand-over between two Python processes");
    let mut agents = [agent(url)?, agent(url)?];
    let mut peers: [Pair; PEERS.len()] = Default::default();
    for round in 0..=rounds {
        let ours = pass(&mut agents, "fencelock").await?;
        for (pair, (peer, _)) in peers.iter_mut().zip(PEERS) {
            let theirs = pass(&mut agents, peer).await?;
            // The first round warms up.
            if round > 0 {
                pair.turn(ours.clone(), theirs);
            }
        }
    }
    for (pair, (_, title)) in peers.iter_mut().zip(PEERS) {
        let title = format!("Python, hand-over between 2 processes / {title}");
        report.row(&title, pair.words("µs"), Target::AtMost(1.0), pair.ratio());
    }
    let mut samples = vec![("fencelock".into(), &peers[0].ours)];
    samples.extend(peers.iter().zip(PEERS).map(|(pair, (name, _))| (name.into(), &pair.other)));
    report.keep("µs, release called to next acquire returned", &samples)
}

/// To and fro.
pub(crate) async fn pass(agents: &mut [Agent; 2], lock: &str) -> Result<Samples> {
    let [mut holder, mut waiter] = agents.each_mut();
    holder.tell(&("acquire", lock, 0)).await?;
    holder.hear::<(u64, u64)>(ms(10_000)).await?;
    let mut samples = Samples::default();
    for _ in 0..TURN {
        waiter.tell(&("acquire", lock, 0)).await?;
        // Some peers look every 100 ms: to release at a fixed time after the other has asked
        // would meet them always at the same point between two looks.
        holder.tell(&("release", lock, fastrand::u32(20..120))).await?;
        let ended: u64 = holder.hear(ms(10_000)).await?;
        let (asked, acquired): (u64, u64) = waiter.hear(ms(10_000)).await?;
        ensure!(acquired > ended, "{lock} was held twice");
        if asked < ended {
            samples.add((acquired - ended) as f64 / 1e3);
        }
        std::mem::swap(&mut holder, &mut waiter);
    }
    holder.tell(&("release", lock, 0)).await?;
    holder.hear::<u64>(ms(10_000)).await?;
    ensure!(!samples.is_empty(), "nobody waited for {lock}");
    Ok(samples)
}
