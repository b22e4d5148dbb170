//! Processes that take one lock again and again while servers fail, and what their leases show.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::{ms, ms_between, now};
use fencelock_test_support::records::{Record, disorder, overlaps};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::agents::{News, Order};
use crate::outcome::Outcome;

/// What no fault explains, if it takes longer.
const PATIENCE: Duration = Duration::from_secs(90);

/// Some processes at work.
pub(crate) struct Workers {
    seen: Arc<Mutex<Seen>>,
    stop: watch::Sender<bool>,
    readers: Vec<JoinHandle<Result<()>>>,
}

/// What they told.
#[derive(Default)]
struct Seen {
    leases: Vec<(Record, String)>,
    /// By the code of the error, with the last text.
    failures: BTreeMap<String, (u32, String)>,
}

impl Workers {
    /// Starts them; returns when all are connected and each has had the lock.
    pub(crate) async fn start(url: &str, name: &str, ttl: Duration, count: usize) -> Result<Self> {
        let ttl_ms = ttl.as_millis().to_string();
        let mut agents = Vec::new();
        for _ in 0..count {
            agents.push(Agent::start(&["agent", "worker", url, name, &ttl_ms])?);
        }
        let (stop, _) = watch::channel(false);
        let seen = Arc::<Mutex<Seen>>::default();
        let mut readers = Vec::new();
        for mut agent in agents {
            let News::Ready = agent.hear(PATIENCE).await? else { bail!("a worker is not ready") };
            readers.push(tokio::spawn(read(agent, seen.clone(), stop.subscribe())));
        }
        let workers = Workers { seen, stop, readers };
        workers.grants_since(now(), count).await?;
        Ok(workers)
    }

    /// Waits for so many leases that began after an instant; returns when the first did.
    pub(crate) async fn grants_since(&self, since: u64, count: usize) -> Result<u64> {
        let start = Instant::now();
        loop {
            let first = self.seen(|seen| {
                let grants = seen.leases.iter().map(|(record, _)| record.acquired);
                let mut grants: Vec<u64> = grants.filter(|at| *at > since).collect();
                grants.sort_unstable();
                grants.get(count - 1).map(|_| grants[0])
            });
            if let Some(first) = first {
                return Ok(first);
            }
            if start.elapsed() > PATIENCE {
                bail!("no progress: fewer than {count} leases in {PATIENCE:?}");
            }
            if self.readers.iter().any(JoinHandle::is_finished) {
                bail!("a worker has ended");
            }
            tokio::time::sleep(ms(5)).await;
        }
    }

    fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends them and judges all their leases.
    pub(crate) async fn finish(self, outcome: &mut Outcome) -> Result<()> {
        self.stop.send_replace(true);
        for reader in self.readers {
            reader.await.context("a reader")??;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        judge(std::mem::take(&mut *seen), outcome);
        Ok(())
    }
}

async fn read(
    mut agent: Agent,
    seen: Arc<Mutex<Seen>>,
    mut stop: watch::Receiver<bool>,
) -> Result<()> {
    loop {
        let news = tokio::select! {
            _ = stop.changed() => None,
            news = agent.hear::<News>(PATIENCE * 2) => Some(news?),
        };
        let Some(news) = news else {
            let _ = agent.tell(&Order::Go).await;
            return Ok(());
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        match news {
            News::Done { record, verdict } => seen.leases.push((record, verdict)),
            News::Failed { code, error } => {
                let entry = seen.failures.entry(code).or_default();
                *entry = (entry.0 + 1, error);
            }
            other => bail!("a worker said {other:?}"),
        }
    }
}

fn judge(seen: Seen, outcome: &mut Outcome) {
    let mut verdicts: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, verdict) in &seen.leases {
        *verdicts.entry(verdict).or_default() += 1;
    }
    outcome.figure("leases, by what their release said", format!("{verdicts:?}"));
    outcome.figure("acquires that failed", format!("{:?}", seen.failures));
    for (code, (count, error)) in &seen.failures {
        outcome.promise(code == "UNAVAILABLE", || {
            format!("{count} acquires failed with {code}, which no fault explains: {error}")
        });
    }
    let mut records: Vec<Record> = seen.leases.into_iter().map(|(record, _)| record).collect();
    judge_records(&mut records, outcome);
}

/// No overlap, no repeated token, tokens that rise in the order of the leases; the longest gap.
pub(crate) fn judge_records(records: &mut Vec<Record>, outcome: &mut Outcome) {
    records.sort_by_key(|record| record.token);
    let repeated = records.windows(2).filter(|pair| pair[0].token == pair[1].token).count();
    outcome.promise(repeated == 0, || format!("{repeated} tokens were given twice"));
    // A lease that its process did not live to see has no place in the order of what was seen.
    records.retain(|record| record.acquired < record.ended);
    let overlapping = overlaps(records);
    outcome.figure("overlaps", overlapping.len().to_string());
    outcome.violations(overlapping);
    outcome.violations(disorder(records));
    records.sort_by_key(|record| record.acquired);
    let gaps = records.windows(2).map(|pair| ms_between(pair[0].ended, pair[1].acquired));
    let longest = gaps.fold(0.0, f64::max);
    outcome.figure("longest time without a holder", format!("{longest:.0} ms"));
}

/// The progress after faults: how long an election took, and how long after it the first grant.
#[derive(Default)]
pub(crate) struct Progress {
    elections: Vec<f64>,
    grants: Vec<f64>,
}

impl Progress {
    /// A fault at `fault`, over at `over`, and the first grant after that.
    pub(crate) fn note(&mut self, fault: u64, over: u64, grant: u64) {
        self.elections.push(ms_between(fault, over));
        self.grants.push(ms_between(over, grant));
    }

    /// Each grant has to come within this time.
    pub(crate) fn judge(&self, within: Duration, outcome: &mut Outcome) {
        let longest = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
        outcome.figure("longest election", format!("{:.0} ms", longest(&self.elections)));
        outcome.figure(
            "election over → next grant, longest",
            format!("{:.0} ms (limit {} ms)", longest(&self.grants), within.as_millis()),
        );
        let late = self.grants.iter().filter(|t| **t > within.as_millis() as f64).count();
        outcome.promise(late == 0, || format!("{late} times no grant within {within:?}"));
    }
}

/// Runs what waits without yielding, as the fixtures do, beside the other tasks.
pub(crate) fn waiting<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}
