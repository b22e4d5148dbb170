//! Processes are killed at random moments, while they hold the lock and while they wait for it.
//! What they write inside the lock shows every overlap, every lost update and every gap.

mod ledger;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::{ms, now};
use fencelock_test_support::redis_server::RedisServer;
use tempfile::TempDir;

use self::ledger::Ledger;
use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 8)]
    processes: usize,
    /// For how long processes are killed
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

/// Where it happens, and what is promised there.
pub(crate) struct Site {
    pub(crate) url: String,
    pub(crate) ttl: Duration,
    /// The longest that the death of one blocks the others, and that of several together.
    pub(crate) one: Duration,
    pub(crate) many: Duration,
    /// How many are killed together.
    pub(crate) together: usize,
}

/// Processes that were killed together.
pub(crate) struct Kill {
    at: u64,
    victims: Vec<u32>,
    /// One of them was inside the lock.
    holder: bool,
}

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let server = RedisServer::start()?;
    let ttl = ms(1000);
    let site = Site {
        url: server.url(),
        ttl,
        one: ttl + ms(1000),
        // Any number that die together: the sign of life of the last look, then one claim window,
        // then one look period; all three shrink with the ttl.
        many: ttl * 2 + ttl / 3 + ms(1000),
        together: 3,
    };
    run_at(&site, options.processes, options.seconds).await
}

pub(crate) async fn run_at(site: &Site, processes: usize, seconds: u64) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let mut fleet = Fleet::start(site, &folder, processes)?;
    fleet.all_enter_since(now()).await?;

    let mut kills = Vec::new();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(ms(fastrand::u64(20..200))).await;
        // In turn, so that each kind happens in every run.
        let kill = match kills.len() % 6 {
            1 | 3 => fleet.kill(1).await?,
            5 => fleet.kill(site.together).await?,
            _ => fleet.kill_holder().await?,
        };
        // Until everybody has had a turn, so that each gap belongs to one kill.
        fleet.all_enter_since(kill.at).await?;
        kills.push(kill);
        fleet.fill_up(processes)?;
    }
    let ledger = fleet.end().await?;
    Ok(judge(&ledger, &kills, site))
}

fn judge(ledger: &Ledger, kills: &[Kill], site: &Site) -> Outcome {
    let mut outcome = Outcome::default();
    let holders = kills.iter().filter(|k| k.holder).count();
    outcome.figure("kills, of which of a holder", format!("{}, {holders}", kills.len()));
    outcome.figure("leases", ledger.entries.len().to_string());
    let (gaps, violations) = ledger.judge(kills);
    outcome.violations(violations);
    let millis = |span: Duration| span.as_millis() as f64;
    let mut longest = [0.0_f64; 3];
    for (kill, gap) in kills.iter().zip(gaps) {
        let kind = if kill.victims.len() > 1 { 2 } else { usize::from(!kill.holder) };
        longest[kind] = longest[kind].max(gap);
        let limit = millis(if kill.victims.len() > 1 { site.many } else { site.one });
        outcome.promise(gap <= limit, || {
            format!(
                "blocked for {gap:.0} ms after {} were killed (holder: {})",
                kill.victims.len(),
                kill.holder
            )
        });
    }
    outcome.figure(
        format!("longest block after a kill: holder / contender / {}", site.together),
        format!(
            "{:.0} / {:.0} / {:.0} ms (ttl {:.0} ms)",
            longest[0],
            longest[1],
            longest[2],
            millis(site.ttl)
        ),
    );
    outcome
}

struct Fleet {
    url: String,
    ttl: Duration,
    ledger: PathBuf,
    counter: PathBuf,
    agents: Vec<Agent>,
}

impl Fleet {
    fn start(site: &Site, folder: &TempDir, processes: usize) -> Result<Self> {
        let ledger = folder.path().join("ledger");
        let counter = folder.path().join("counter");
        std::fs::write(&ledger, "")?;
        std::fs::write(&counter, "0\n")?;
        let (url, ttl) = (site.url.clone(), site.ttl);
        let mut fleet = Fleet { url, ttl, ledger, counter, agents: Vec::new() };
        fleet.fill_up(processes)?;
        Ok(fleet)
    }

    fn fill_up(&mut self, processes: usize) -> Result<()> {
        while self.agents.len() < processes {
            let (ledger, counter) = (self.ledger.to_string_lossy(), self.counter.to_string_lossy());
            let ttl = self.ttl.as_millis().to_string();
            self.agents.push(Agent::start(&[
                "agent", "clerk", &self.url, "crash", &ttl, &ledger, &counter,
            ])?);
        }
        Ok(())
    }

    fn read(&self) -> Result<Ledger> {
        Ledger::parse(&std::fs::read_to_string(&self.ledger)?)
    }

    /// Waits until every process alive has got the lock after an instant.
    async fn all_enter_since(&self, since: u64) -> Result<()> {
        let start = Instant::now();
        loop {
            let ledger = self.read()?;
            let recent = ledger.entries.iter().rev().take_while(|e| e.entered > since);
            let entered: HashSet<u32> = recent.map(|e| e.pid).collect();
            if self.agents.iter().all(|a| entered.contains(&a.pid())) {
                return Ok(());
            }
            if start.elapsed() > Duration::from_secs(60) {
                bail!("not everybody gets the lock within 60 s");
            }
            tokio::time::sleep(ms(10)).await;
        }
    }

    /// Kills that many at random.
    async fn kill(&mut self, count: usize) -> Result<Kill> {
        let mut victims = Vec::new();
        for _ in 0..count {
            victims.push(self.agents.swap_remove(fastrand::usize(0..self.agents.len())));
        }
        for victim in &victims {
            victim.freeze()?;
        }
        self.kill_frozen(victims).await
    }

    /// Kills one that is inside the lock.
    async fn kill_holder(&mut self) -> Result<Kill> {
        loop {
            tokio::time::sleep(ms(fastrand::u64(1..10))).await;
            let Some(pid) = self.read()?.inside() else { continue };
            let Some(at) = self.agents.iter().position(|a| a.pid() == pid) else { continue };
            self.agents[at].freeze()?;
            if self.read()?.inside() == Some(pid) {
                let victim = self.agents.swap_remove(at);
                return self.kill_frozen(vec![victim]).await;
            }
            self.agents[at].thaw()?;
        }
    }

    async fn kill_frozen(&mut self, victims: Vec<Agent>) -> Result<Kill> {
        let inside = self.read()?.inside();
        let pids: Vec<u32> = victims.iter().map(Agent::pid).collect();
        for victim in victims {
            victim.kill().await?;
        }
        let holder = inside.is_some_and(|pid| pids.contains(&pid));
        Ok(Kill { at: now(), victims: pids, holder })
    }

    async fn end(mut self) -> Result<Ledger> {
        for agent in self.agents.drain(..) {
            agent.kill().await?;
        }
        self.read()
    }
}
