//! Acquire and release of a free lock from each language: beside Rust, and beside the locks that the
//! language has. All in turns within a fraction of a second.

use anyhow::{Context, Result};
use fencelock_test_support::agent::Agent;
use tokio::process::Command;

use crate::contestant::{Contestant, contestant};
use crate::python::{self, cycles};
use crate::report::{Pair, Report, Target};
use crate::{peer, zoo};

const TURN: u64 = 60;
/// A virtual machine compiles what it has run often.
const WARM_UP: u64 = 3000;

const ON_REDIS: [Contestant; 13] = [
    contestant("Rust", "fencelock", peer::agent),
    contestant("Rust, blocking API", "blocking", peer::agent),
    contestant("Python, with lock", "fencelock", python::agent),
    contestant("redis-py's Lock", "redis-py", python::agent),
    contestant("Node, acquire", "fencelock", node),
    contestant("Node, acquireSync", "fencelock-sync", node),
    contestant("redis-semaphore's Mutex", "redis-semaphore", node),
    contestant("redlock", "redlock", node),
    contestant("Java, lock", "fencelock", java),
    contestant("Redisson's RLock", "redisson", java),
    contestant("C, acquire", "fencelock", c),
    contestant("our two scripts, bare, by hiredis", "scripts", c),
    contestant("SET NX PX and compare-and-delete by hiredis", "by-hand", c),
];
/// Ours, what it is compared with, and how much of that it may take. What blocks is judged by Rust's
/// blocking API.
const MATCHES_ON_REDIS: [(usize, usize, Target); 17] = [
    (1, 0, Target::None),
    (2, 3, Target::AtMost(1.0)),
    (2, 1, Target::AtMost(1.6)),
    (2, 0, Target::None),
    (4, 6, Target::AtMost(1.0)),
    (4, 7, Target::AtMost(1.0)),
    (4, 0, Target::AtMost(1.6)),
    (5, 6, Target::AtMost(1.0)),
    (5, 1, Target::AtMost(1.6)),
    (5, 0, Target::None),
    (8, 9, Target::AtMost(1.0)),
    (8, 1, Target::AtMost(1.6)),
    (8, 0, Target::None),
    (10, 11, Target::None),
    (10, 12, Target::None),
    (10, 1, Target::AtMost(1.6)),
    (10, 0, Target::None),
];

const ON_ZOOKEEPER: [Contestant; 3] = [
    contestant("Rust", "fencelock", peer::agent),
    contestant("Java, lock", "fencelock", java),
    contestant("Curator's InterProcessMutex", "curator", java),
];
const MATCHES_ON_ZOOKEEPER: [(usize, usize, Target); 2] =
    [(1, 2, Target::AtMost(1.0)), (1, 0, Target::AtMost(1.6))];

pub(crate) async fn on_redis(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("languages", "Acquire and release of a free lock, from each language");
    measure(url, rounds * 3, "", &ON_REDIS, &MATCHES_ON_REDIS, report).await
}

pub(crate) async fn on_zookeeper(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("zookeeper-languages", "The same on ZooKeeper");
    let member = format!("zookeeper://{}/", zoo::follower(url)?);
    measure(&member, rounds, "ZooKeeper, ", &ON_ZOOKEEPER, &MATCHES_ON_ZOOKEEPER, report).await
}

async fn measure(
    url: &str,
    rounds: u32,
    prefix: &str,
    contestants: &[Contestant],
    matches: &[(usize, usize, Target)],
    report: &mut Report,
) -> Result<()> {
    let mut agents = Vec::new();
    for contestant in contestants {
        let mut agent = (contestant.process)(url)?;
        cycles(&mut agent, contestant.name, WARM_UP).await?;
        agents.push(agent);
    }
    let mut pairs: Vec<Pair> = matches.iter().map(|_| Pair::default()).collect();
    for round in 0..rounds {
        let mut turns = Vec::new();
        for place in 0..contestants.len() {
            let i = if round % 2 == 0 { place } else { contestants.len() - 1 - place };
            turns.push((i, cycles(&mut agents[i], contestants[i].name, TURN).await?));
        }
        turns.sort_by_key(|(i, _)| *i);
        for (pair, (ours, other, _)) in pairs.iter_mut().zip(matches) {
            pair.turn(turns[*ours].1.clone(), turns[*other].1.clone());
        }
    }
    let mut samples: Vec<(String, _)> = Vec::new();
    for (pair, (ours, other, target)) in pairs.iter_mut().zip(matches) {
        let title = format!("{prefix}{} / {}", contestants[*ours].title, contestants[*other].title);
        report.row(&title, pair.words("µs"), *target, pair.ratio());
    }
    for (i, contestant) in contestants.iter().enumerate() {
        let found = matches.iter().zip(&pairs).find_map(|((ours, other, _), pair)| match i {
            i if i == *ours => Some(&pair.ours),
            i if i == *other => Some(&pair.other),
            _ => None,
        });
        samples.extend(found.map(|times| (contestant.title.to_owned(), times)));
    }
    report.keep("µs per cycle", &samples)
}

fn node(url: &str) -> Result<Agent> {
    let mut command = Command::new("node");
    command.args([concat!(env!("CARGO_MANIFEST_DIR"), "/peers.mjs"), url]);
    Agent::start_command(command)
}

fn java(url: &str) -> Result<Agent> {
    let class_path = built("FENCELOCK_BENCH_JAVA")?;
    let mut command = Command::new("java");
    command.args(["--enable-native-access=ALL-UNNAMED", "-cp", &class_path, "Peers", url]);
    Agent::start_command(command)
}

fn c(url: &str) -> Result<Agent> {
    let mut command = Command::new(built("FENCELOCK_BENCH_C")?);
    command.arg(url);
    Agent::start_command(command)
}

fn built(variable: &str) -> Result<String> {
    std::env::var(variable)
        .with_context(|| format!("{variable} is not set; run this by tests/bench/run"))
}
