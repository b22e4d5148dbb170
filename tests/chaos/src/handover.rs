//! Many contenders in several processes pass one lock on: in which order, at what cost, how fast.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Result;
use fencelock::{Client, LockOptions};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::{ms, now};
use fencelock_test_support::monitor::{Command, Monitor};
use fencelock_test_support::racer;
use fencelock_test_support::records::{disorder, hand_overs, overlaps};
use fencelock_test_support::redis_server::{RedisServer, SCRIPTS, calls};
use fencelock_test_support::samples::Samples;
use redis::aio::MultiplexedConnection;

use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 8)]
    processes: u32,
    /// Contenders in each process
    #[arg(long, default_value_t = 8)]
    tasks: u32,
    /// How long they race, in milliseconds
    #[arg(long, default_value_t = 4000)]
    race_ms: u64,
}

const NAME: &str = "baton";

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let server = RedisServer::start()?;
    let mut connection = server.connection().await?;
    let mut agents = Vec::new();
    for _ in 0..options.processes {
        agents.push(racer::agent(&server.url(), NAME).await?);
    }
    let mut outcome = Outcome::default();
    let contenders = options.processes * options.tasks;
    outcome.figure("contenders", format!("{contenders} in {} processes", options.processes));

    staged(&server, &mut agents, contenders, &mut outcome).await?;
    race(&mut agents, &options, &mut connection, &mut outcome).await?;
    watched(&server, &mut agents, &options, &mut connection, &mut outcome).await?;
    Ok(outcome)
}

/// Queues them one by one behind a holder, and compares the order of service with that.
async fn staged(
    server: &RedisServer,
    agents: &mut [Agent],
    contenders: u32,
    outcome: &mut Outcome,
) -> Result<()> {
    let client = Client::connect(&server.url()).await?;
    let lock = client.lock_with(NAME, LockOptions::new().ttl(Duration::from_secs(30)))?;
    for _ in 0..3 {
        let lease = lock.acquire().await?;
        // One lease each: the first round of contenders fills the agents one after the other,
        // and the next contender asks when the one before it stands in the queue.
        let processes = agents.len();
        for (i, agent) in agents.iter_mut().enumerate() {
            racer::start(agent, contenders / processes as u32, None).await?;
            let waiting = (i + 1) * contenders as usize / processes;
            while client.inspect(NAME).await?.queue.len() < waiting {
                tokio::time::sleep(ms(2)).await;
            }
        }
        let queue: Vec<String> =
            client.inspect(NAME).await?.queue.into_iter().map(|waiter| waiter.owner).collect();
        lease.release().await?;
        let mut records = racer::finish(agents).await?;
        records.sort_by_key(|r| r.acquired);
        let served: Vec<String> = records.into_iter().map(|r| r.owner).collect();
        outcome.promise(queue == served, || format!("queue {queue:?}\nserved {served:?}"));
    }
    outcome.figure("3 x all queued, then served", "in the order of the queue");
    Ok(())
}

/// All at once, again and again.
async fn race(
    agents: &mut [Agent],
    options: &Options,
    connection: &mut MultiplexedConnection,
    outcome: &mut Outcome,
) -> Result<()> {
    let before = calls(connection, SCRIPTS).await?;
    let mut records = racer::race(agents, options.tasks, Some(options.race_ms)).await?;
    let spent = calls(connection, SCRIPTS).await? - before;
    let per = spent as f64 / records.len() as f64;
    let mut times = hand_overs(&mut records);
    outcome.figure("leases, of which handed over", format!("{}, {}", records.len(), times.len()));
    outcome.figure("script calls per lease", format!("{per:.2}"));
    outcome.figure(
        "release called → next acquire returned, p50 / p90 / p99",
        format!(
            "{:.0} / {:.0} / {:.0} µs",
            times.median(),
            times.quantile(0.9),
            times.quantile(0.99)
        ),
    );
    let mut waits: Samples = records.iter().map(|r| (r.acquired - r.asked) as f64 / 1e6).collect();
    outcome.figure(
        "wait of one contender, min / p50 / max",
        format!("{:.1} / {:.1} / {:.1} ms", waits.min(), waits.median(), waits.max()),
    );
    outcome.promise(per <= 3.0, || format!("{per:.2} commands per hand-over, more than 3"));
    outcome.violations(overlaps(&mut records));
    outcome.violations(disorder(&mut records));
    Ok(())
}

/// A short race under MONITOR, which shows who queued and who was granted in which order.
async fn watched(
    server: &RedisServer,
    agents: &mut [Agent],
    options: &Options,
    connection: &mut MultiplexedConnection,
    outcome: &mut Outcome,
) -> Result<()> {
    let monitor = Monitor::start(server.port())?;
    let records = racer::race(agents, options.tasks, Some(700)).await?;
    let mark = format!("mark-{}", now());
    let _: String = redis::cmd("ECHO").arg(&mark).query_async(connection).await?;
    let commands = monitor.take_until(&mark)?;
    let (queued, granted) = orders(&commands);
    outcome.figure("under MONITOR: queued and granted", queued.len().to_string());
    outcome.promise(queued.len() > 100, || "too few to tell an order".into());
    outcome.promise(queued == granted, || {
        let at = queued.iter().zip(&granted).take_while(|(a, b)| a == b).count();
        format!("the order of service differs from the queue at {at} of {}", queued.len())
    });
    // What each holder saw is what the server did.
    let tokens: HashMap<&str, u64> = records.iter().map(|r| (&*r.owner, r.token)).collect();
    let seen: Vec<u64> = granted.iter().filter_map(|o| tokens.get(&**o).copied()).collect();
    outcome.promise(seen.is_sorted() && seen.len() == granted.len(), || {
        format!("{} grants, seen {} of them", granted.len(), seen.len())
    });
    Ok(())
}

/// The owner ids that entered the queue, and those of them that got the lock.
fn orders(commands: &[Command]) -> (Vec<String>, Vec<String>) {
    let owner = |value: &str| value.split(':').nth(1).unwrap_or_default().to_owned();
    let (mut queued, mut granted) = (Vec::new(), Vec::new());
    for command in commands.iter().filter(|c| c.in_script) {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        match words[..] {
            ["ZADD", key, .., member] if key.contains("~fl1:q:") => queued.push(owner(member)),
            ["SET", key, value, ..] if key == format!("fencelock:{NAME}") => {
                granted.push(owner(value));
            }
            _ => {}
        }
    }
    // Who found the lock free was never in the queue.
    granted.retain(|owner| queued.contains(owner));
    (queued, granted)
}
