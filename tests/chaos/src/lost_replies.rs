//! The links of several clients break, fall silent and cut replies, again and again, while their
//! tasks take the same locks. What the server really did, MONITOR tells.

mod site;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use fencelock::{Client, LockOptions};
use fencelock_test_support::clock::{ms, now};
use fencelock_test_support::monitor::{Command, Monitor};
use fencelock_test_support::redis_server::RedisServer;
use fencelock_test_support::toxiproxy::{Proxy, Way};
use serde_json::json;

use self::site::{Finished, Site};
use crate::cancel::{eternal, leftovers};
use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 25)]
    seconds: u64,
    /// Each with a link of its own
    #[arg(long, default_value_t = 4)]
    clients: u32,
    /// Tasks of each client
    #[arg(long, default_value_t = 8)]
    tasks: u32,
    #[arg(long, default_value_t = 4)]
    names: u32,
}

const TTL: Duration = ms(1000);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let server = RedisServer::start()?;
    let mut connection = server.connection().await?;
    let monitor = Monitor::start(server.port())?;
    let sites: Vec<Arc<Site>> =
        (0..options.names).map(|i| Site::new(&format!("name-{i}"))).collect();
    let until = Instant::now() + Duration::from_secs(options.seconds);

    let stop = Arc::new(AtomicBool::new(false));
    let mut faults = Vec::new();
    let mut tasks = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..options.clients {
        let proxy = Proxy::to(server.port())?;
        let client = Client::connect(&proxy.redis_url()).await?;
        for i in 0..options.tasks {
            let site = sites[i as usize % sites.len()].clone();
            let lock = client.lock_with(&site.name, LockOptions::new().ttl(TTL))?;
            tasks.push(tokio::spawn(site::work(lock, site, until)));
        }
        let stop = stop.clone();
        faults.push(std::thread::spawn(move || torment(&proxy, &stop).map(|n| (n, proxy))));
        clients.push(client);
    }
    let mut finished = Vec::new();
    for task in tasks {
        finished.extend(task.await?);
    }
    stop.store(true, Ordering::Relaxed);
    let mut outcome = Outcome::default();
    let mut count = 0;
    let mut proxies = Vec::new();
    for fault in faults {
        let (n, proxy) = fault.join().map_err(|_| anyhow!("a thread ended"))??;
        count += n;
        proxies.push(proxy);
    }
    outcome.figure("faults", count.to_string());

    let ended = Instant::now();
    while !leftovers(&mut connection).await?.is_empty() && ended.elapsed() < Duration::from_secs(15)
    {
        tokio::time::sleep(ms(20)).await;
    }
    outcome.figure("clean after the last lease", format!("{:.0?}", ended.elapsed()));
    let left = leftovers(&mut connection).await?;
    outcome.promise(left.is_empty(), || format!("left 15 s later: {left:?}"));
    let eternal = eternal(&mut connection).await?;
    outcome.promise(eternal.is_empty(), || format!("keys without a ttl: {eternal:?}"));

    let mark = format!("mark-{}", now());
    let _: String = redis::cmd("ECHO").arg(&mark).query_async(&mut connection).await?;
    let released = released(&monitor.take_until(&mark)?);
    for site in &sites {
        outcome.violations(site.violations());
    }
    judge(&finished, &released, &mut outcome);
    Ok(outcome)
}

/// Faults on one link, one after the other.
fn torment(proxy: &Proxy, stop: &AtomicBool) -> Result<u32> {
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(ms(fastrand::u64(50..400)));
        let way = if fastrand::bool() { Way::Up } else { Way::Down };
        match fastrand::u32(0..4) {
            0 => proxy.add("fault", "reset_peer", way, json!({ "timeout": fastrand::u32(0..20) })),
            // A black hole: nothing passes, and nobody is told.
            1 => proxy.add("fault", "timeout", way, json!({ "timeout": 0 })),
            2 => proxy.add("fault", "limit_data", way, json!({ "bytes": fastrand::u32(1..2000) })),
            _ => proxy.add("fault", "latency", way, json!({ "latency": fastrand::u32(50..600) })),
        }?;
        std::thread::sleep(ms(fastrand::u64(20..500)));
        proxy.remove("fault")?;
        count += 1;
    }
    Ok(count)
}

/// The owner ids whose lock a release of theirs has deleted.
fn released(commands: &[Command]) -> HashSet<String> {
    let mut released = HashSet::new();
    let mut releasing = None;
    for command in commands {
        if !command.in_script {
            let value = command.words.get(8).filter(|_| command.words.len() == 12);
            let is_release = command.words.last().is_some_and(|mark| mark == "0" || mark == "1");
            let owner = value.and_then(|value| value.split(':').nth(1));
            releasing = owner.filter(|_| is_release).map(str::to_owned);
        } else if command.words.first().is_some_and(|word| word == "DEL") {
            released.extend(releasing.take());
        }
    }
    released
}

/// Whether each release was told the truth.
fn judge(finished: &[Finished], released: &HashSet<String>, outcome: &mut Outcome) {
    let said = |what: &str| finished.iter().filter(|f| f.verdict == what).count();
    outcome.figure(
        "releases: ok / lost / outcome unknown / no answer",
        format!(
            "{} / {} / {} / {}",
            said("OK"),
            said("LOST"),
            said("UNKNOWN"),
            said("UNAVAILABLE")
        ),
    );
    outcome.figure(
        "asked again after no answer, then told",
        finished.iter().filter(|f| f.again).count().to_string(),
    );
    outcome.promise(said("OK") > 100, || "too few leases to tell anything".into());
    for f in finished {
        let was_released = released.contains(&f.owner);
        outcome.promise(f.verdict != "OK" || was_released, || {
            format!("told OK, but the server never released it: {f:?}")
        });
        // Found lost here first, it is cleaned up in the server, which then releases it.
        outcome.promise(f.verdict != "LOST" || !f.held_before || !was_released, || {
            format!("told LOST, but the server did release it: {f:?}")
        });
        let known = ["OK", "LOST", "UNKNOWN", "UNAVAILABLE"].contains(&f.verdict.as_str());
        outcome.promise(known, || format!("an error that no fault explains: {f:?}"));
    }
}
