//! What a lock costs the server: calls of an uncontended cycle, and of contenders that wait.

use std::time::Duration;

use anyhow::Result;
use fencelock::{Client, LockOptions};
use fencelock_test_support::clock::{ms, now};
use fencelock_test_support::monitor::Monitor;
use fencelock_test_support::redis_server::{RedisServer, SCRIPTS, calls};

use crate::report::{Report, Target};

const CYCLES: u64 = 1000;
const CONTENDERS: usize = 8;

pub(crate) async fn measure(quick: bool, report: &mut Report) -> Result<()> {
    report.section("server-calls", "What a lock costs the server");
    // A server of its own: nobody else's commands are to be counted.
    let server = RedisServer::start()?;
    let mut connection = server.connection().await?;
    let client = Client::connect(&server.url()).await?;
    let lock = client.lock("free")?;
    lock.acquire().await?.release().await?;
    let before = calls(&mut connection, SCRIPTS).await?;
    for _ in 0..CYCLES {
        lock.acquire().await?.release().await?;
    }
    let spent = calls(&mut connection, SCRIPTS).await? - before;
    let figures = format!("{spent} in {CYCLES} cycles");
    let per = spent as f64 / CYCLES as f64;
    report.row("script calls per uncontended cycle", figures, Target::AtMost(2.0), per);

    // The holder's own renewal comes after 20 s.
    let patient = LockOptions::new().ttl(Duration::from_secs(60));
    let lease = client.lock_with("held", patient)?.acquire().await?;
    let waiting = Client::connect(&server.url()).await?;
    let tasks: Vec<_> = (0..CONTENDERS)
        .map(|_| {
            let lock = waiting.lock("held");
            tokio::spawn(async move { anyhow::Ok(lock?.acquire().await?) })
        })
        .collect();
    while client.inspect("held").await?.queue.len() < CONTENDERS {
        tokio::time::sleep(ms(5)).await;
    }
    // The subscription, and the look that follows it.
    tokio::time::sleep(ms(500)).await;
    let seconds = if quick { 3 } else { 12 };
    let monitor = Monitor::start(server.port())?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let mark = format!("mark-{}", now());
    let _: String = redis::cmd("ECHO").arg(&mark).query_async(&mut connection).await?;
    let seen = monitor.take_until(&mark)?.into_iter().filter(|c| !c.in_script).count();
    let per = seen as f64 / seconds as f64 / CONTENDERS as f64;
    let figures = format!("{seen} of {CONTENDERS} contenders in {seconds} s");
    let row = "commands per second of an idle contender, ttl 30 s";
    report.row(row, figures, Target::AtMost(0.5), per);
    for task in tasks {
        task.abort();
    }
    Ok(lease.release().await?)
}
