//! The backends beside each other, for whoever has to choose one.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};
use fencelock::{Client, Lock};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::{ms, now};
use fencelock_test_support::monitor::Monitor;
use fencelock_test_support::process::cpu_seconds;
use fencelock_test_support::racer;
use fencelock_test_support::records::hand_overs;
use fencelock_test_support::redis_server::connection;

use crate::mongo::Profile;
use crate::report::{Pair, Report, Target, number};
use crate::uncontended::turn_of_ours;
use crate::waiting::{CONTENDERS, Held, per_contender};
use crate::{url_of, zoo};

const NAME: &str = "bench/engines";
const BATON: &str = "bench/engines-baton";
const RACE_MS: u64 = 300;

struct Engine {
    title: &'static str,
    url: String,
    lock: Lock,
    agents: Vec<Agent>,
    /// Tasks in each of those processes.
    tasks: u32,
    /// Cycles in one turn.
    turn: usize,
    /// Against Redis.
    cycles: Pair,
    hand_overs: Pair,
    /// Requests and milliseconds of processor time per second of an idle contender.
    idle: Option<(f64, f64)>,
}

impl Engine {
    async fn new(title: &'static str, url: String, processes: u32, turn: usize) -> Result<Self> {
        let mut agents = Vec::new();
        for _ in 0..processes {
            agents.push(racer::agent(&url, BATON).await?);
        }
        let lock = Client::connect(&url).await?.lock(NAME)?;
        let tasks = CONTENDERS as u32 / processes;
        let (cycles, hand_overs, idle) = Default::default();
        Ok(Engine { title, url, lock, agents, tasks, turn, cycles, hand_overs, idle })
    }
}

/// The one that is 1.
const REDIS: usize = 2;

pub(crate) async fn measure(rounds: u32, quick: bool, report: &mut Report) -> Result<()> {
    report.section("engines", "The backends beside each other");
    let folder = tempfile::tempdir()?;
    let file = format!("file://{}", folder.path().join("locks").display());
    let contenders = CONTENDERS as u32;
    let mut engines = vec![
        // Of one process by its nature.
        Engine::new("`memory:`", "memory:".into(), 1, 300).await?,
        Engine::new("`file:`", file, contenders, 300).await?,
        Engine::new("Redis", url_of("redis")?, contenders, 300).await?,
        Engine::new("MongoDB, set of three", url_of("mongodb")?, contenders, 20).await?,
        Engine::new("ZooKeeper, ensemble of three", url_of("zookeeper")?, contenders, 60).await?,
    ];
    for round in 0..=rounds {
        let (mut cycles, mut batons) = (Vec::new(), Vec::new());
        for engine in &mut engines {
            cycles.push(turn_of_ours(&engine.lock, engine.turn).await?);
            let time = Some(RACE_MS);
            batons
                .push(hand_overs(&mut racer::race(&mut engine.agents, engine.tasks, time).await?));
        }
        // The first round warms up.
        if round > 0 {
            for (i, engine) in engines.iter_mut().enumerate() {
                engine.cycles.turn(cycles[i].clone(), cycles[REDIS].clone());
                engine.hand_overs.turn(batons[i].clone(), batons[REDIS].clone());
            }
        }
    }
    idle(&mut engines, if quick { 3 } else { 20 }).await?;

    report.text(table(&mut engines)?);
    for engine in engines.iter_mut().filter(|engine| engine.title != "Redis") {
        let title = engine.title.replace('`', "");
        let (cycles, hand_overs) = (&mut engine.cycles, &mut engine.hand_overs);
        let row = format!("{title}, acquire + release / Redis");
        report.row(&row, cycles.words("µs"), Target::None, cycles.ratio());
        let row = format!("{title}, hand-over, {CONTENDERS} contenders / Redis");
        report.row(&row, hand_overs.words("µs"), Target::None, hand_overs.ratio());
    }
    let samples: Vec<_> = engines
        .iter()
        .flat_map(|engine| {
            let title = engine.title.replace('`', "");
            [(format!("{title}, hand-over"), &engine.hand_overs.ours), (title, &engine.cycles.ours)]
        })
        .collect();
    report.keep("µs per cycle, or from release called to next acquire returned", &samples)
}

/// What contenders cost that wait, all backends at once.
async fn idle(engines: &mut [Engine], seconds: u64) -> Result<()> {
    // In one process memory has nobody to ask.
    let served = &mut engines[1..];
    let (redis, mongodb, zookeeper) = (url_of("redis")?, url_of("mongodb")?, url_of("zookeeper")?);
    let mut held = Vec::new();
    for engine in served.iter() {
        held.push(Held::new(&engine.url, "bench/engines-held").await?);
    }
    let known = zoo::requests(&zookeeper)?;
    let mut waiting = Vec::new();
    for held in held {
        waiting.push(held.contenders().await?);
    }
    // What follows the first look.
    tokio::time::sleep(ms(1000)).await;
    let port = redis.rsplit(':').next().unwrap_or_default().trim_matches('/').parse()?;
    let mut redis = connection(&redis).await?;
    let monitor = Monitor::start(port)?;
    let profile = Profile::start(&mongodb).await?;
    let sessions = zoo::requests(&zookeeper)?;
    let used = || -> Result<Vec<f64>> { waiting.iter().map(|w| cpu_seconds(w.pid())).collect() };
    let before = used()?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after = used()?;
    let sessions_after = zoo::requests(&zookeeper)?;
    let mark = format!("mark-{}", now());
    let _: String = redis::cmd("ECHO").arg(&mark).query_async(&mut redis).await?;
    let of_redis = monitor.take_until(&mark)?.into_iter().filter(|c| !c.in_script).count() as u64;
    let of_mongodb = profile.take().await?.iter().sum();
    let of_zookeeper = sessions
        .iter()
        .filter(|(session, _)| !known.contains_key(*session))
        .filter_map(|(session, count)| Some(sessions_after.get(session)? - count))
        .sum();
    for (i, requests) in [0, of_redis, of_mongodb, of_zookeeper].into_iter().enumerate() {
        let cpu = (after[i] - before[i]) * 1e3 / seconds as f64 / CONTENDERS as f64;
        served[i].idle = Some((per_contender(requests, seconds), cpu));
    }
    for waiting in waiting {
        waiting.end().await?;
    }
    Ok(())
}

/// Markdown, to be pasted.
fn table(engines: &mut [Engine]) -> Result<String> {
    let mut text = format!(
        "Ratios to Redis, medians; the figures in brackets are of this machine, with all servers \
         on it. {CONTENDERS} contenders, each in a process of its own (`memory:` in one); idle: \
         requests per second of each that waits, at the default ttl, all included.\n\n\
         | backend | acquire + release | hand-over | idle |\n|---|--:|--:|--:|\n"
    );
    let redis = engines[REDIS].idle.context("Redis was not measured")?.0;
    for engine in engines.iter_mut() {
        let cells = [&mut engine.cycles, &mut engine.hand_overs]
            .map(|pair| format!("{} ({})", number(pair.ratio()), time(pair.ours.median())));
        let idle = match engine.idle {
            Some((requests, _)) if requests > 0.0 => {
                format!("{} ({})", number(requests / redis), number(requests))
            }
            _ => "none".to_owned(),
        };
        writeln!(text, "| {} | {} | {idle} |", engine.title, cells.join(" | "))?;
    }
    let cpu = engines.iter().filter_map(|engine| {
        let (_, cpu) = engine.idle?;
        let cpu = if cpu > 0.0 { number(cpu) } else { "too little to be counted".to_owned() };
        Some(format!("{} {cpu}", engine.title))
    });
    let cpu = cpu.collect::<Vec<_>>().join("; ");
    writeln!(text, "\nProcessor time of a contender that waits, ms per second: {cpu}.")?;
    Ok(text)
}

fn time(micros: f64) -> String {
    match micros {
        t if t >= 995.0 => format!("{} ms", number(t / 1e3)),
        t if t >= 10.0 => format!("{t:.0} µs"),
        t => format!("{} µs", number(t)),
    }
}
