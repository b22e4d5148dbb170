//! Children whose tasks take one lock again and again, and say when they had it.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use fencelock::{Client, Lock};
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Parent};
use crate::clock::{ms, now};
use crate::records::Record;

/// This many tasks at once, each for a while or for one lease.
#[derive(Debug, Serialize, Deserialize)]
struct Race {
    tasks: u32,
    ms: Option<u64>,
}

/// Starts a child; the program has to call [`run`] for the arguments `agent racer URL NAME`.
pub async fn agent(url: &str, name: &str) -> Result<Agent> {
    let mut agent = Agent::start(&["agent", "racer", url, name])?;
    let ready: String = agent.hear(ms(10_000)).await?;
    ensure!(ready == "ready", "a racer said {ready}");
    Ok(agent)
}

/// Starts the tasks of one child.
pub async fn start(agent: &mut Agent, tasks: u32, time: Option<u64>) -> Result<()> {
    agent.tell(&Race { tasks, ms: time }).await
}

/// Waits for the records of all.
pub async fn finish(agents: &mut [Agent]) -> Result<Vec<Record>> {
    let mut all: Vec<Record> = Vec::new();
    for agent in agents {
        all.extend(agent.hear::<Vec<Record>>(ms(60_000)).await?);
    }
    Ok(all)
}

/// Starts all and waits for their records.
pub async fn race(agents: &mut [Agent], tasks: u32, time: Option<u64>) -> Result<Vec<Record>> {
    for agent in agents.iter_mut() {
        start(agent, tasks, time).await?;
    }
    finish(agents).await
}

/// What the child does: inside a runtime of one thread, with the default ttl.
pub async fn run(url: &str, name: &str) -> Result<()> {
    let mut parent = Parent::new();
    let lock = Client::connect(url).await?.lock(name)?;
    Parent::tell(&"ready")?;
    while let Some(Race { tasks, ms }) = parent.hear().await? {
        let until = ms.map(|ms| now() + ms * 1_000_000);
        let records = Arc::new(Mutex::new(Vec::new()));
        let racers: Vec<_> = (0..tasks)
            .map(|_| tokio::spawn(take_turns(lock.clone(), until, records.clone())))
            .collect();
        for racer in racers {
            racer.await??;
        }
        let records = std::mem::take(&mut *records.lock().unwrap_or_else(PoisonError::into_inner));
        Parent::tell(&records)?;
    }
    Ok(())
}

async fn take_turns(
    lock: Lock,
    until: Option<u64>,
    records: Arc<Mutex<Vec<Record>>>,
) -> Result<()> {
    loop {
        let asked = now();
        let lease = lock.acquire().await?;
        let acquired = now();
        let ended = now();
        lease.release().await?;
        let record = Record::of(&lease, asked, acquired, ended);
        records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        if until.is_none_or(|until| now() >= until) {
            return Ok(());
        }
    }
}
