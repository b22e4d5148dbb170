//! Our lock in a process of its own, driven like those of `peers.py` and of Curator.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use fencelock::Client;
use fencelock_test_support::agent::{Agent, Parent};
use fencelock_test_support::clock::{ms, now};

pub(crate) fn agent(url: &str) -> Result<Agent> {
    Agent::start(&["agent", "peer", url])
}

pub(crate) async fn run(url: &str) -> Result<()> {
    let mut parent = Parent::new();
    let lock = Client::connect(url).await?.lock("bench/rust")?;
    let mut held = None;
    while let Some((what, _, number)) = parent.hear::<(String, String, u64)>().await? {
        match &*what {
            "cycle" => {
                let mut times = Vec::new();
                for _ in 0..number {
                    let start = Instant::now();
                    lock.acquire().await?.release().await?;
                    times.push(start.elapsed().as_nanos() as u64);
                }
                Parent::tell(&times)?;
            }
            "acquire" => {
                let asked = now();
                held = Some(lock.acquire().await?);
                Parent::tell(&(asked, now()))?;
            }
            "release" => {
                tokio::time::sleep(ms(number)).await;
                let ended = now();
                held.take().context("nothing is held")?.release().await?;
                Parent::tell(&ended)?;
            }
            other => bail!("{other} is unknown"),
        }
    }
    Ok(())
}
