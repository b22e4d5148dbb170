//! Renews all leases of a client from one task, in batches, and ends those whose time is over.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::backend::{Backend, Renewal};
use crate::clock::{Alarm, Instant};
use crate::error::Error;
use crate::lease::Held;
use crate::owner::OwnerId;
use crate::schedule::{self, Answers, Failure, Schedule};
use crate::wakeups::Wakeups;

/// What the rest of the client sees of the watchdog.
pub(crate) struct Watchdog {
    schedule: Mutex<Schedule>,
    bell: Notify,
    request_timeout: Duration,
}

impl Watchdog {
    pub(crate) fn new(backend: &dyn Backend, request_timeout: Duration) -> Self {
        let schedule = Schedule::new(backend.pace(), backend.keeps_sessions());
        Watchdog { schedule: Mutex::new(schedule), bell: Notify::new(), request_timeout }
    }

    pub(crate) fn add(&self, held: &Arc<Held>, handed_off: bool) {
        let now = Instant::now();
        let early = self.schedule().add(held, handed_off, now, schedule::jitter(held));
        if early {
            self.bell.notify_one();
        }
    }

    pub(crate) fn remove(&self, owner: OwnerId) {
        self.schedule().remove(owner);
    }

    /// The lease was renewed by its holder.
    pub(crate) fn extended(&self, held: &Arc<Held>) {
        self.schedule().extended(held);
    }

    pub(crate) fn stop(&self) {
        self.schedule().stopped = true;
        self.bell.notify_one();
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Batch = Pin<Box<dyn Future<Output = Option<Answers>> + Send>>;

/// The watchdog's task. Ends after [`Watchdog::stop`].
pub(crate) async fn run(
    watchdog: Arc<Watchdog>,
    backend: Arc<dyn Backend>,
    wakeups: Arc<Wakeups>,
    mut alarm: Alarm,
) {
    let mut batches: FuturesUnordered<Batch> = FuturesUnordered::new();
    loop {
        let next = {
            let mut schedule = watchdog.schedule();
            if schedule.stopped {
                return;
            }
            schedule.arm(Instant::now())
        };
        tokio::select! {
            alarmed = alarm.until(next) => if let Err(error) = alarmed {
                tracing::error!(%error, "the timer of the watchdog failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            },
            () = watchdog.bell.notified() => {}
            Some(answers) = batches.next() => if let Some(answers) = answers {
                let failures = watchdog.schedule().judge(answers, Instant::now());
                failures.iter().for_each(Failure::log);
            },
        }
        let work = watchdog.schedule().collect(Instant::now(), watchdog.request_timeout);
        for due in by_shard(&*backend, work.renew) {
            batches.push(renew(&*backend, due, watchdog.request_timeout));
        }
        for held in work.ended {
            tracing::warn!(lock = %held.place.name, token = held.token.get(), "lease lost");
            wakeups.forget(held.place.owner);
            batches.push(clean_up(&*backend, &held, watchdog.request_timeout));
        }
    }
}

/// So many that round trips do not count, so few that their answers all come within the limit.
const LARGEST_BATCH: usize = 2_000;

/// Batches of leases of one shard: a batch is answered as a whole, so a shard that has gone silent
/// would take the leases of all others with it.
fn by_shard(backend: &dyn Backend, due: Vec<(Renewal, u64)>) -> Vec<Vec<(Renewal, u64)>> {
    let mut shards: Vec<(usize, Vec<(Renewal, u64)>)> = Vec::new();
    for renewal in due {
        let shard = backend.shard(&renewal.0.place.name);
        let has_room =
            |(known, batch): &&mut (usize, Vec<_>)| *known == shard && batch.len() < LARGEST_BATCH;
        match shards.iter_mut().find(has_room) {
            Some((_, batch)) => batch.push(renewal),
            None => shards.push((shard, vec![renewal])),
        }
    }
    shards.into_iter().map(|(_, batch)| batch).collect()
}

fn renew(backend: &dyn Backend, due: Vec<(Renewal, u64)>, limit: Duration) -> Batch {
    let (renewals, rounds): (Vec<_>, Vec<_>) = due
        .into_iter()
        .map(|(renewal, round)| {
            let owner = renewal.place.owner;
            (renewal, (owner, round))
        })
        .unzip();
    let sent = Instant::now();
    let request = backend.renew(renewals);
    Box::pin(async move {
        // Each lease goes on by itself when its own time for an answer is over; this limit only
        // ends the request.
        let results =
            timeout(limit, request).await.unwrap_or_else(|_| Err(Error::no_answer(limit)));
        Some(Answers { sent, rounds, results })
    })
}

/// One release for a lease that was lost, so that others need not wait for its ttl. Its verdict
/// is of no interest any more.
fn clean_up(backend: &dyn Backend, held: &Held, limit: Duration) -> Batch {
    let request = backend.release(&held.place, Some(held.token), held.unanswered);
    Box::pin(async move {
        let _ = timeout(limit, request).await;
        None
    })
}
