//! Our lock in a process of its own, driven like those of `peers.py` and of Curator. The lock
//! "blocking" is the same through the blocking API.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use fencelock::{Client, blocking};
use fencelock_test_support::agent::{Agent, Parent};
use fencelock_test_support::clock::{ms, now};
use tokio::task::spawn_blocking;

pub(crate) fn agent(url: &str) -> Result<Agent> {
    Agent::start(&["agent", "peer", url])
}

pub(crate) async fn run(url: &str) -> Result<()> {
    let mut parent = Parent::new();
    let lock = Client::connect(url).await?.lock("bench/rust")?;
    let mut held = None;
    while let Some((what, which, number)) = parent.hear::<(String, String, u64)>().await? {
        match &*what {
            "cycle" if which == "blocking" => {
                let url = url.to_owned();
                let turn = spawn_blocking(move || blocking_cycles(&url, number));
                Parent::tell(&turn.await??)?;
            }
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

/// From the program's one blocking client, made by the first call.
fn blocking_cycles(url: &str, number: u64) -> Result<Vec<u64>> {
    static LOCK: Mutex<Option<(blocking::Client, blocking::Lock)>> = Mutex::new(None);
    let mut made = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, lock) = match &mut *made {
        Some(made) => made,
        none => {
            let client = blocking::Client::connect(url)?;
            let lock = client.lock("bench/rust-blocking")?;
            none.insert((client, lock))
        }
    };
    let mut times = Vec::new();
    for _ in 0..number {
        let start = Instant::now();
        lock.acquire()?.release()?;
        times.push(start.elapsed().as_nanos() as u64);
    }
    Ok(times)
}
