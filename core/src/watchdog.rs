//! Renews all leases of a client from one task, in batches, and ends those whose time is over.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::backend::{Backend, Renewal, Renewed};
use crate::clock::{Alarm, Instant};
use crate::error::{Error, Result};
use crate::lease::Held;
use crate::owner::{OwnerId, random_below};
use crate::period::{claim_window, request_limit};
use crate::wakeups::Wakeups;

/// What the rest of the client sees of the watchdog.
pub(crate) struct Watchdog {
    schedule: Mutex<Schedule>,
    bell: Notify,
    request_timeout: Duration,
}

impl Watchdog {
    pub(crate) fn new(request_timeout: Duration) -> Self {
        Watchdog { schedule: Mutex::default(), bell: Notify::new(), request_timeout }
    }

    pub(crate) fn add(&self, held: &Arc<Held>, handed_off: bool) {
        let now = Instant::now();
        let early = self.schedule().add(held, handed_off, now, jitter(held));
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

/// The answers to one batch of renewals, all sent at one instant.
struct Answers {
    sent: Instant,
    rounds: Vec<(OwnerId, u64)>,
    results: Result<Vec<Result<Renewed>>>,
}

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
            schedule.arm()
        };
        tokio::select! {
            alarmed = alarm.until(next) => if let Err(error) = alarmed {
                tracing::error!(%error, "the timer of the watchdog failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            },
            () = watchdog.bell.notified() => {}
            Some(answers) = batches.next() => if let Some(answers) = answers {
                watchdog.schedule().judge(answers, Instant::now());
            },
        }
        let work = watchdog.schedule().collect(Instant::now(), watchdog.request_timeout);
        if !work.renew.is_empty() {
            batches.push(renew(&*backend, work.renew, watchdog.request_timeout));
        }
        for held in work.ended {
            wakeups.forget(held.place.owner);
            batches.push(clean_up(&*backend, &held, watchdog.request_timeout));
        }
    }
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
        let results = timeout(limit, request).await.unwrap_or_else(|_| Err(Error::no_answer(limit)));
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

/// Jitter only shortens the time to a renewal: up to a tenth of it.
fn jitter(held: &Held) -> Duration {
    Duration::from_nanos(random_below(held.place.ttl.as_nanos() as u64 / 30))
}

/// Which lease needs attention when. No I/O and no clock of its own.
#[derive(Default)]
struct Schedule {
    leases: HashMap<OwnerId, Entry>,
    order: BTreeSet<(Instant, OwnerId)>,
    /// What the alarm is set to.
    armed: Instant,
    stopped: bool,
}

struct Entry {
    held: Arc<Held>,
    next: Instant,
    /// Counts the renewals sent; an answer of an earlier round is dropped.
    round: u64,
    renewals: Renewals,
    jitter: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Renewals {
    Forever,
    /// A hand-off is raised to a full ttl even if the lease is a fixed one.
    Once,
    No,
}

/// What to do now.
#[derive(Default)]
struct Work {
    renew: Vec<(Renewal, u64)>,
    ended: Vec<Arc<Held>>,
}

impl Schedule {
    /// True if the alarm must be set earlier.
    fn add(&mut self, held: &Arc<Held>, handed_off: bool, now: Instant, jitter: Duration) -> bool {
        let renewals = match (held.renews, handed_off) {
            (true, _) => Renewals::Forever,
            (false, true) => Renewals::Once,
            (false, false) => Renewals::No,
        };
        let deadline = held.deadline();
        let wait = if handed_off {
            // Not at once, so that a short hold costs no renewal.
            (claim_window(held.place.ttl) / 10).min(now.until(deadline) / 4)
        } else {
            held.place.ttl / 3 - jitter
        };
        let due = if renewals == Renewals::No || !held.can_extend() { deadline } else { now.plus(wait) };
        let next = due.min(deadline);
        let owner = held.place.owner;
        self.order.insert((next, owner));
        self.leases.insert(owner, Entry { held: held.clone(), next, round: 0, renewals, jitter });
        next < self.armed
    }

    fn remove(&mut self, owner: OwnerId) {
        if let Some(entry) = self.leases.remove(&owner) {
            self.order.remove(&(entry.next, owner));
        }
    }

    fn extended(&mut self, held: &Arc<Held>) {
        let owner = held.place.owner;
        if let Some(entry) = self.leases.get(&owner)
            && entry.renewals == Renewals::No
        {
            self.move_to(owner, held.deadline());
        }
    }

    /// The instant of the next attention; `add` compares with it from now on.
    fn arm(&mut self) -> Instant {
        self.armed = self.order.first().map_or(Instant::NEVER, |(next, _)| *next);
        self.armed
    }

    /// Takes out what has ended, and the renewals that are due. A lease whose renewal is under
    /// way comes back when its time for an answer is over, or at its deadline.
    fn collect(&mut self, now: Instant, request_timeout: Duration) -> Work {
        let mut work = Work::default();
        while let Some(&(next, owner)) = self.order.first() {
            if next > now {
                break;
            }
            let Some(entry) = self.leases.get_mut(&owner) else {
                self.order.pop_first();
                continue;
            };
            let deadline = entry.held.deadline();
            if !entry.held.is_held() {
                if entry.held.is_lost() {
                    work.ended.push(entry.held.clone());
                }
                self.remove(owner);
            } else if entry.renewals == Renewals::No || !entry.held.can_extend() {
                self.move_to(owner, deadline);
            } else {
                entry.round += 1;
                work.renew.push((entry.held.renewal(), entry.round));
                let limit = request_limit(entry.held.place.ttl, request_timeout);
                self.move_to(owner, now.plus(limit).min(deadline));
            }
        }
        work
    }

    fn judge(&mut self, answers: Answers, now: Instant) {
        let Answers { sent, rounds, results } = answers;
        let mut results = results.map(Vec::into_iter);
        for (owner, round) in rounds {
            let result = match &mut results {
                Ok(results) => results.next().unwrap_or_else(|| {
                    Err(Error::new(crate::ErrorKind::Internal, "a renewal has no result"))
                }),
                Err(error) => Err(Error::new(error.kind(), error.to_string())),
            };
            self.judge_one(owner, round, sent, result, now);
        }
    }

    fn judge_one(
        &mut self,
        owner: OwnerId,
        round: u64,
        sent: Instant,
        result: Result<Renewed>,
        now: Instant,
    ) {
        let Some(entry) = self.leases.get_mut(&owner).filter(|entry| entry.round == round) else {
            return;
        };
        let held = &entry.held;
        let next = match result {
            Ok(Renewed::Ours) => {
                held.extend(sent);
                if entry.renewals == Renewals::Once {
                    entry.renewals = Renewals::No;
                }
                if entry.renewals == Renewals::No || !held.can_extend() {
                    held.deadline()
                } else {
                    sent.plus(held.place.ttl / 3 - entry.jitter).max(now)
                }
            }
            Ok(Renewed::NotOurs) => {
                held.lose();
                now
            }
            Err(error) => {
                let left = now.until(held.deadline());
                tracing::warn!(
                    lock = %held.place.name, left_ms = left.as_millis() as u64, %error,
                    "renewal failed; it is tried again until the deadline"
                );
                // Sooner when little time is left, but never in a tight loop.
                now.plus((held.place.ttl / 30).clamp(Duration::from_millis(5), Duration::from_millis(250)))
            }
        };
        let next = next.min(held.deadline());
        self.move_to(owner, next);
    }

    fn move_to(&mut self, owner: OwnerId, next: Instant) {
        if let Some(entry) = self.leases.get_mut(&owner) {
            self.order.remove(&(entry.next, owner));
            entry.next = next;
            self.order.insert((next, owner));
        }
    }
}
