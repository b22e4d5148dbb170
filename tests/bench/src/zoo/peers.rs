//! Against the locks that ZooKeeper has: kazoo's from Python, Curator's from Java.

use anyhow::Result;

use super::{Requests, follower};
use crate::baton::pass;
use crate::contestant::{Contestant, contestant};
use crate::report::{Pair, Report, Target};
use crate::round_trips::{Links, RoundTrips};
use crate::{curator, peer, python};

/// Cycles in one turn: few, so that all turns of a round meet the machine in the same state.
const TURN: u64 = 10;
/// Turns of cycles for each turn of hand-overs.
const TURNS: u32 = 4;

const ALL: [Contestant; 4] = [
    contestant("Rust", "fencelock", peer::agent),
    contestant("Curator", "curator", curator::agent),
    contestant("Python, with lock", "fencelock", python::agent),
    contestant("kazoo's Lock", "kazoo", python::agent),
];
/// Ours and the one that it is compared with.
const MATCHES: [(usize, usize); 3] = [(0, 1), (2, 3), (2, 0)];

pub(crate) async fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    let host = follower(url)?;
    let port: u16 = host.rsplit(':').next().unwrap_or_default().parse()?;
    let member = format!("zookeeper://{host}/");
    let mut agents = Vec::new();
    for contestant in &ALL {
        agents.push([(contestant.process)(&member)?, (contestant.process)(&member)?]);
    }

    report.section("zookeeper-peers", "ZooKeeper: beside kazoo and Curator");
    let mut cycles: [Pair; 3] = Default::default();
    let mut hand_overs: [Pair; 3] = Default::default();
    for (agents, contestant) in agents.iter_mut().zip(&ALL) {
        // A virtual machine compiles what it has run often.
        for agent in agents.iter_mut() {
            python::cycles(agent, contestant.name, 500).await?;
        }
        pass(agents, contestant.name).await?;
    }
    for turn in 0..rounds * TURNS {
        let (mut times, mut batons) = (Vec::new(), Vec::new());
        for (agents, contestant) in agents.iter_mut().zip(&ALL) {
            times.push(python::cycles(&mut agents[0], contestant.name, TURN).await?);
            if turn % TURNS == 0 {
                batons.push(pass(agents, contestant.name).await?);
            }
        }
        for (i, (ours, other)) in MATCHES.into_iter().enumerate() {
            cycles[i].turn(times[ours].clone(), times[other].clone());
            if turn % TURNS == 0 {
                hand_overs[i].turn(batons[ours].clone(), batons[other].clone());
            }
        }
    }
    for (what, pairs) in [("acquire + release", &mut cycles), ("hand-over", &mut hand_overs)] {
        for (pair, (ours, other)) in pairs.iter_mut().zip(MATCHES) {
            let title = format!("ZooKeeper, {what}, {} / {}", ALL[ours].title, ALL[other].title);
            let target = if other == 0 { Target::None } else { Target::AtMost(1.0) };
            report.row(&title, pair.words("µs"), target, pair.ratio());
        }
    }
    for (agents, contestant) in agents.iter_mut().zip(&ALL) {
        let mut requests = Requests::new(url)?;
        python::cycles(&mut agents[0], contestant.name, TURN * 10).await?;
        let spent = requests.total()?;
        let figures = format!("{spent} in {} cycles", TURN * 10);
        let title = format!("ZooKeeper, requests per uncontended cycle, {}", contestant.title);
        report.row(&title, figures, Target::None, spent as f64 / (TURN * 10) as f64);
    }

    let links = Links::to(port)?;
    let urls = links.urls(|port| format!("zookeeper://127.0.0.1:{port}/"))?;
    for contestant in &ALL {
        let mut through = Vec::new();
        for url in &urls {
            let mut agent = (contestant.process)(url)?;
            python::cycles(&mut agent, contestant.name, 3).await?;
            through.push(python::cycles(&mut agent, contestant.name, 15).await?);
        }
        let [near, far] = [through.remove(0), through.remove(0)];
        let trips = RoundTrips::of(near, far);
        let target = match contestant.name {
            "fencelock" => Target::AtMost(2.1),
            _ => Target::None,
        };
        let title = format!("ZooKeeper, round trips of acquire + release, {}", contestant.title);
        report.row(&title, trips.figures(), target, trips.trips);
    }
    let mut samples: Vec<(String, _)> = Vec::new();
    for (what, pairs) in [("", &cycles), ("hand-over, ", &hand_overs)] {
        let of = |i: usize| format!("{what}{}", ALL[i].title);
        samples.push((of(0), &pairs[0].ours));
        samples.push((of(1), &pairs[0].other));
        samples.push((of(2), &pairs[1].ours));
        samples.push((of(3), &pairs[1].other));
    }
    report.keep("µs per cycle, or from release called to next acquire returned", &samples)
}
