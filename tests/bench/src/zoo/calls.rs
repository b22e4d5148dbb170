//! What a lock costs the servers, and how often the link is crossed.

use std::time::Duration;

use anyhow::{Context, Result};
use fencelock::Client;
use fencelock_test_support::clock::ms;

use super::{Requests, follower, requests};
use crate::report::{Report, Target};
use crate::round_trips::{Links, of_lock};
use crate::waiting::{CONTENDERS, Held, per_contender};

const CYCLES: u64 = 500;

pub(crate) async fn measure(url: &str, quick: bool, report: &mut Report) -> Result<()> {
    report.section("zookeeper-calls", "ZooKeeper: what a lock costs the servers");
    let others = requests(url)?;
    let client = Client::connect(url).await?;
    let lock = client.lock("bench/counted")?;
    for _ in 0..2 {
        lock.acquire().await?.release().await?;
    }
    let ours = requests(url)?;
    let idle: Vec<_> = ours.keys().filter(|session| !others.contains_key(*session)).collect();
    let mut counter = Requests::new(url)?;
    for _ in 0..CYCLES {
        lock.acquire().await?.release().await?;
    }
    let spent = counter.total()?;
    let figures = format!("{spent} in {CYCLES} cycles");
    let per = spent as f64 / CYCLES as f64;
    report.row("ZooKeeper, requests per uncontended cycle", figures, Target::None, per);

    let host = follower(url)?;
    let links = Links::to(host.rsplit(':').next().context("no port")?.parse()?)?;
    let urls = links.urls(|port| format!("zookeeper://127.0.0.1:{port}/"))?;
    let [acquire, release] = of_lock(&urls).await?;
    let row = "ZooKeeper, round trips of acquire";
    report.row(row, acquire.figures(), Target::AtMost(1.1), acquire.trips);
    let row = "ZooKeeper, round trips of release";
    report.row(row, release.figures(), Target::AtMost(1.1), release.trips);

    let held = Held::new(url, "bench/held").await?;
    let known = requests(url)?;
    let waiting = held.contenders().await?;
    tokio::time::sleep(ms(1000)).await;
    let seconds = if quick { 3 } else { 20 };
    let before = requests(url)?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after = requests(url)?;
    let spent = |session: &String| Some(after.get(session)? - before.get(session)?);
    let new = before.keys().filter(|session| !known.contains_key(*session));
    let of_waiting: u64 = new.filter_map(spent).sum();
    let of_idle: u64 = idle.into_iter().filter_map(spent).sum();
    waiting.end().await?;
    let figures = format!("{of_waiting} of {CONTENDERS} contenders in {seconds} s");
    let row = "ZooKeeper, requests per second of an idle contender, ttl 30 s";
    report.row(row, figures, Target::None, per_contender(of_waiting, seconds));
    let figures = format!("{of_waiting}, and {of_idle} of a session where nobody waits");
    let row = "ZooKeeper, the same, beyond the session's renewal";
    let beyond = of_waiting.saturating_sub(of_idle);
    report.row(row, figures, Target::AtMost(0.02), per_contender(beyond, seconds));
    Ok(())
}
