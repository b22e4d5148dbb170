//! Measurements as ratios, side by side in one run. Turns of what is measured and of what it is
//! compared with alternate, so that a machine that is slow for a while is slow for both.

mod bare;
mod baton;
mod chart;
mod contestant;
mod curator;
mod engines;
mod handover;
mod hop;
mod languages;
mod mongo;
mod peer;
mod pipelined;
mod python;
mod report;
mod round_trips;
mod server_calls;
mod turns;
mod uncontended;
mod waiting;
mod zoo;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use fencelock_test_support::racer;
use tokio::runtime::{Builder, Runtime};

use crate::report::Report;

/// What is measured, in the order of the report, and the servers it needs. No others run beside
/// it: even an idle ensemble takes its share of two cores.
const SECTIONS: &[(&str, &str)] = &[
    ("uncontended", "redis"),
    ("pipelined", "redis"),
    ("handover", "redis"),
    ("python", "redis"),
    ("python-handover", "redis"),
    ("server-calls", "redis"),
    ("languages", "redis"),
    ("mongodb-uncontended", "mongodb"),
    ("mongodb-handover", "mongodb"),
    ("mongodb-calls", "mongodb"),
    ("zookeeper-uncontended", "zookeeper"),
    ("zookeeper-handover", "zookeeper"),
    ("zookeeper-calls", "zookeeper"),
    ("zookeeper-peers", "zookeeper"),
    ("zookeeper-languages", "zookeeper"),
    ("engines", "redis,mongodb,zookeeper"),
];

#[derive(Parser)]
#[command(about = "Measures fencelock against the targets, as ratios in one run")]
struct Options {
    /// Few rounds: to see that it works, not to judge
    #[arg(long)]
    quick: bool,
    /// Where the report, its charts and the raw samples go
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    /// The servers run already, named by the environment
    #[arg(long, hide = true)]
    inside: bool,
    #[arg(help = sections_help())]
    sections: Vec<String>,
    #[command(subcommand)]
    part: Option<Part>,
}

fn sections_help() -> String {
    let names: Vec<_> = SECTIONS.iter().map(|(name, _)| *name).collect();
    format!(
        "All of them without a name; a name also means those that continue it, and `redis` those \
         that need only Redis: {}",
        names.join(", ")
    )
}

#[derive(Subcommand)]
enum Part {
    /// A child process of a measurement
    #[command(hide = true)]
    Agent {
        #[command(subcommand)]
        role: Role,
    },
    /// Acquires and releases for a while and measures nothing: something for a profiler
    Spin {
        #[arg(long, default_value_t = 10_000)]
        cycles: u32,
        #[arg(long, default_value_t = 1)]
        tasks: u32,
        /// The bare scripts instead
        #[arg(long)]
        bare: bool,
        /// On a runtime of two threads
        #[arg(long)]
        threads: bool,
    },
}

#[derive(Subcommand)]
enum Role {
    Racer { url: String, name: String },
    Peer { url: String },
    Ping { url: String },
    Pong { url: String },
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    match &options.part {
        Some(Part::Agent { role }) => one_thread()?.block_on(async {
            match role {
                Role::Racer { url, name } => racer::run(url, name).await,
                Role::Peer { url } => peer::run(url).await,
                Role::Ping { url } => hop::ping(url).await,
                Role::Pong { url } => hop::pong(url).await,
            }
        }),
        Some(Part::Spin { cycles, tasks, bare, threads }) => {
            let work = uncontended::spin(url_of("redis")?, *cycles, *tasks, *bare);
            uncontended::on_a_task(&uncontended::runtime(*threads)?, work)?
        }
        None if options.inside => measure(options),
        None => measure_with_servers(options),
    }
}

/// Starts what the sections need, and measures them in a child beside it.
fn measure_with_servers(options: &Options) -> Result<()> {
    let sections = chosen(&options.sections)?;
    let begun = Instant::now();
    for group in sections.chunk_by(|a, b| a.1 == b.1) {
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../services/run"));
        command.arg(group[0].1).arg(std::env::current_exe()?).arg("--inside");
        command.arg("--out").arg(&options.out).args(options.quick.then_some("--quick"));
        let status = command.args(group.iter().map(|(name, _)| name)).status()?;
        ensure!(status.success(), "not measured: {}", group[0].1);
    }
    let names: Vec<_> = sections.iter().map(|(name, _)| *name).collect();
    let cores = std::thread::available_parallelism()?;
    let seconds = begun.elapsed().as_secs();
    Report::read(&options.out, &names)?
        .finish(&format!("{cores} cores, measured in {seconds} s, servers started and ended."))
}

fn chosen(words: &[String]) -> Result<Vec<(&'static str, &'static str)>> {
    let means = |word: &str, (name, servers): (&str, &str)| {
        name == word
            || servers == word
            || name.strip_prefix(word).is_some_and(|n| n.starts_with('-'))
    };
    if let Some(word) = words.iter().find(|word| !SECTIONS.iter().any(|s| means(word, *s))) {
        bail!("there is no section {word}; {}", sections_help());
    }
    let wanted = |s: &&(&str, &str)| words.is_empty() || words.iter().any(|word| means(word, **s));
    Ok(SECTIONS.iter().filter(wanted).copied().collect())
}

fn measure(options: &Options) -> Result<()> {
    let rounds = if options.quick { 4 } else { 30 };
    for (name, servers) in chosen(&options.sections)? {
        let mut report = Report::new(&options.out)?;
        let begun = Instant::now();
        let before = load();
        measure_section(name, rounds, options.quick, &mut report)?;
        let versions: Vec<_> = servers.split(',').map(version).collect::<Result<_>>()?;
        report.write(&format!(
            "{}; {rounds} rounds in {} s; load of the machine {before} before and {} after.",
            versions.join(", "),
            begun.elapsed().as_secs(),
            load()
        ))?;
    }
    Ok(())
}

fn measure_section(name: &str, rounds: u32, quick: bool, report: &mut Report) -> Result<()> {
    let one_thread = one_thread()?;
    let redis = || url_of("redis");
    let mongodb = || url_of("mongodb");
    let zookeeper = || url_of("zookeeper");
    match name {
        "uncontended" => uncontended::measure(&redis()?, rounds, report),
        "pipelined" => pipelined::measure(&redis()?, rounds, report),
        "handover" => one_thread.block_on(handover::measure(&redis()?, rounds / 2, report)),
        "python" => python::measure(&redis()?, rounds, report),
        "python-handover" => one_thread.block_on(baton::measure(&redis()?, rounds / 2, report)),
        "server-calls" => one_thread.block_on(server_calls::measure(quick, report)),
        "languages" => one_thread.block_on(languages::on_redis(&redis()?, rounds, report)),
        "mongodb-uncontended" => mongo::uncontended::measure(&mongodb()?, rounds, report),
        "mongodb-handover" => {
            one_thread.block_on(mongo::handover::measure(&mongodb()?, rounds / 3, report))
        }
        "mongodb-calls" => one_thread.block_on(mongo::calls::measure(&mongodb()?, quick, report)),
        "zookeeper-uncontended" => zoo::uncontended::measure(&zookeeper()?, rounds, report),
        "zookeeper-handover" => {
            one_thread.block_on(zoo::handover::measure(&zookeeper()?, rounds / 3, report))
        }
        "zookeeper-calls" => one_thread.block_on(zoo::calls::measure(&zookeeper()?, quick, report)),
        "zookeeper-peers" => {
            one_thread.block_on(zoo::peers::measure(&zookeeper()?, rounds / 2, report))
        }
        "zookeeper-languages" => {
            one_thread.block_on(languages::on_zookeeper(&zookeeper()?, rounds, report))
        }
        "engines" => one_thread.block_on(engines::measure(rounds / 3, quick, report)),
        other => bail!("the section {other} is not measured anywhere"),
    }
}

fn one_thread() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Of the last minute. Without others on the machine it is 0 before.
fn load() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or_default().to_owned()
}

fn version(server: &str) -> Result<String> {
    let url = url_of(server)?;
    match server {
        "redis" => {
            let mut connection = redis::Client::open(url)?.get_connection()?;
            let info: redis::InfoDict = redis::cmd("INFO").arg("server").query(&mut connection)?;
            Ok(format!("Redis {}", info.get::<String>("redis_version").context("no version")?))
        }
        "mongodb" => one_thread()?.block_on(mongo::version(&url)),
        _ => one_thread()?.block_on(zoo::version(&url)),
    }
}

/// Where a service of `tests/services` answers.
fn url_of(server: &str) -> Result<String> {
    let variable = format!("FENCELOCK_TEST_{}_URL", server.to_uppercase());
    std::env::var(&variable).with_context(|| format!("{variable} is not set"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<&'static str> {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        let sections = chosen(&words).expect("names of sections");
        sections.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_word_means_a_section_those_that_continue_it_and_those_of_a_server() {
        assert_eq!(names(&[]).len(), SECTIONS.len());
        assert_eq!(names(&["python-handover"]), ["python-handover"]);
        assert_eq!(names(&["engines", "python"]), ["python", "python-handover", "engines"]);
        assert_eq!(names(&["redis"]).len(), 7);
        assert_eq!(names(&["mongodb"]).len(), 3);
        assert!(chosen(&["mongo".to_owned()]).is_err());
    }
}
