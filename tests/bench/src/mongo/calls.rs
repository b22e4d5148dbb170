//! What a lock costs the server, and how often the link is crossed.

use std::time::Duration;

use anyhow::Result;
use fencelock::Client;
use fencelock_test_support::clock::ms;

use super::{Counters, Profile, primary};
use crate::report::{Report, Target};
use crate::round_trips::{Links, of_lock};
use crate::waiting::{CONTENDERS, Held, per_contender};

const CYCLES: u64 = 200;

pub(crate) async fn measure(url: &str, quick: bool, report: &mut Report) -> Result<()> {
    report.section("mongodb-calls", "MongoDB: what a lock costs the server");
    let client = Client::connect(url).await?;
    let lock = client.lock("bench/counted")?;
    for _ in 0..2 {
        lock.acquire().await?.release().await?;
    }
    let counters = Counters::new(url).await?;
    let profile = Profile::start(url).await?;
    for _ in 0..CYCLES {
        lock.acquire().await?.release().await?;
    }
    let commands: u64 = profile.take().await?.iter().sum();
    let changes = counters.writes().await?;
    let figures = format!("{commands} commands and {changes} changes in {CYCLES} cycles");
    let per = commands as f64 / CYCLES as f64;
    report.row("MongoDB, commands per uncontended cycle", figures, Target::AtMost(2.0), per);

    let links = Links::to(primary(&mongodb::Client::with_uri_str(url).await?).await?)?;
    let urls = links.urls(|port| format!("mongodb://127.0.0.1:{port}/?directConnection=true"))?;
    let [acquire, release] = of_lock(&urls).await?;
    let row = "MongoDB, round trips of acquire";
    report.row(row, acquire.figures(), Target::AtMost(1.1), acquire.trips);
    let row = "MongoDB, round trips of release";
    report.row(row, release.figures(), Target::AtMost(1.1), release.trips);

    let waiting = Held::new(url, "bench/held").await?.contenders().await?;
    // The stream, and the look that follows it.
    tokio::time::sleep(ms(1000)).await;
    let seconds = if quick { 6 } else { 20 };
    let profile = Profile::start(url).await?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let [writes, more, others] = profile.take().await?;
    waiting.end().await?;
    let figures = format!("{writes} of {CONTENDERS} contenders in {seconds} s");
    let row = "MongoDB, writes per second of an idle contender, ttl 30 s";
    report.row(row, figures, Target::AtMost(0.1), per_contender(writes, seconds));
    let row = "MongoDB, getMore per second of their client";
    let figures = format!("{more} in {seconds} s");
    report.row(row, figures, Target::AtMost(0.4), more as f64 / seconds as f64);
    let row = "MongoDB, other commands per second of an idle contender";
    let figures = format!("{others} of {CONTENDERS} contenders in {seconds} s");
    report.row(row, figures, Target::None, per_contender(others, seconds));
    Ok(())
}
