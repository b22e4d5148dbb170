//! Keeps one session alive and says until when it certainly lives, for all leases in it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::address::Root;
use super::deadline::Stamps;
use super::fault::Fault;
use super::seat::Seat;
use super::session::{Line, Node, Session};
use crate::clock::Instant;
use crate::owner::OwnerId;
use crate::wakeups::Wakeups;

/// How many nodes one write checks.
const CHECKED_AT_ONCE: usize = 200;
/// How many lock directories are remembered as ones we may delete in.
const REMEMBERED: usize = 4_096;
/// A name that no node has. Deleting it is a write all the same.
pub(super) const NOBODY: &str = "~fl-beat";

/// One session and its upkeep.
pub(super) struct Keeper {
    pub(super) session: Session,
    root: Root,
    wakeups: Arc<Wakeups>,
    stamps: Mutex<Stamps>,
    seats: Mutex<HashMap<OwnerId, Arc<Seat>>>,
    beats: watch::Sender<Beats>,
    bell: Notify,
    reconnects: watch::Sender<u64>,
    over: CancellationToken,
    /// Directories in which a delete was allowed.
    deletable: Mutex<HashSet<String>>,
    /// The leader's wall clock at an instant of ours, for what people are shown.
    wall_clock: Mutex<Option<(i64, Instant)>>,
}

/// Counts beats, so that one can wait for a beat that begins after it asked.
#[derive(Clone, Copy, Default)]
struct Beats {
    begun: u64,
    answered: u64,
}

impl Keeper {
    pub(super) fn new(session: Session, ttl: Duration, root: Root, wakeups: Arc<Wakeups>) -> Self {
        let stamps = Stamps::new(session.opened(), session.timeout(), ttl);
        Keeper {
            session,
            root,
            wakeups,
            stamps: Mutex::new(stamps),
            seats: Mutex::default(),
            beats: watch::Sender::new(Beats::default()),
            bell: Notify::new(),
            reconnects: watch::Sender::new(0),
            over: CancellationToken::new(),
            deletable: Mutex::default(),
            wall_clock: Mutex::default(),
        }
    }

    /// Returns when the session has ended, for whatever reason.
    pub(super) async fn run(&self) {
        let mut lines = self.session.lines();
        let mut line = self.session.line();
        let mut next = self.session.opened().plus(self.beat_period());
        loop {
            let is_up = line == Line::Up;
            let wait = Instant::now().until(next);
            let is_due = tokio::select! {
                () = self.over.cancelled() => return,
                changed = lines.next() => {
                    line = changed;
                    match line {
                        Line::Ended => return self.end(),
                        Line::Down => false,
                        Line::Up => {
                            self.reconnected().await;
                            true
                        }
                    }
                }
                () = self.bell.notified(), if is_up => true,
                () = tokio::time::sleep(wait), if is_up => true,
            };
            if is_due {
                next = Instant::now().plus(self.beat_period());
                tokio::select! {
                    () = self.over.cancelled() => return,
                    () = self.beat() => {}
                }
            }
        }
    }

    /// Ends the upkeep: everybody in this session is told.
    pub(super) fn end(&self) {
        self.over.cancel();
    }

    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    pub(super) fn is_connected(&self) -> bool {
        !self.over.is_cancelled() && self.session.line() == Line::Up
    }

    /// This session is not the one that our nodes are in. It is left alone, for good.
    pub(super) fn abandon(&self, why: &str) {
        tracing::error!(session = self.session.id(), why, "a ZooKeeper session was abandoned");
        self.end();
    }

    /// Increases with each connection after the first.
    pub(super) fn reconnects(&self) -> watch::Receiver<u64> {
        self.reconnects.subscribe()
    }

    /// A write sent at `sent` was answered.
    pub(super) fn written(&self, sent: Instant) {
        locked(&self.stamps).answered(sent);
    }

    pub(super) fn beat_period(&self) -> Duration {
        locked(&self.stamps).beat_period()
    }

    /// Until when the session certainly lives, and with it its leases.
    pub(super) fn deadline(&self) -> Instant {
        locked(&self.stamps).deadline()
    }

    /// The deadline, once it is far enough away for a lease to begin; an error when the session
    /// ends first.
    pub(super) async fn lasting(&self) -> Result<Instant, Fault> {
        let period = self.beat_period();
        loop {
            let deadline = self.deadline();
            if Instant::now().until(deadline) >= period {
                return Ok(deadline);
            }
            self.fresh_beat().await?;
            if Instant::now().until(self.deadline()) < period {
                // Two writes close together prove nothing.
                tokio::time::sleep(period / 4).await;
            }
        }
    }

    /// Returns when a beat that began after this call has been answered.
    pub(super) async fn fresh_beat(&self) -> Result<(), Fault> {
        let mut beats = self.beats.subscribe();
        let wanted = beats.borrow().begun + 1;
        self.bell.notify_one();
        tokio::select! {
            () = self.over.cancelled() => Err(Fault::Ended),
            answered = beats.wait_for(|beats| beats.answered >= wanted) => match answered {
                Ok(_) => Ok(()),
                Err(_) => Err(Fault::Ended),
            },
        }
    }

    /// This seat has a node now.
    pub(super) fn seated(&self, seat: &Arc<Seat>) {
        locked(&self.seats).insert(seat.owner(), seat.clone());
    }

    pub(super) fn left(&self, owner: OwnerId) {
        locked(&self.seats).remove(&owner);
    }

    /// One write, of whatever kind, that the leader takes through its log: a check of the nodes of
    /// all held leases, which also tells of those that somebody deleted.
    async fn beat(&self) {
        let mut number = 0;
        self.beats.send_modify(|beats| {
            beats.begun += 1;
            number = beats.begun;
        });
        let held = self.seats_where(|seat| seat.is_granted() && !seat.is_leaving());
        let answered = if held.is_empty() {
            let nobody = self.root.child(NOBODY);
            let sent = Instant::now();
            match self.session.delete(&nobody).await {
                Ok(()) => Ok(()),
                Err(fault) if fault.is_answer_to_a_write() => Ok(()),
                Err(fault) => Err(fault),
            }
            .map(|()| self.written(sent))
        } else {
            let checks = held.chunks(CHECKED_AT_ONCE).map(|seats| self.check(seats));
            join_all(checks).await.into_iter().collect()
        };
        if let Err(fault) = answered {
            tracing::debug!(?fault, "a beat of a ZooKeeper session was not answered");
            return;
        }
        let deadline = self.deadline();
        for seat in held {
            self.wakeups.extended(seat.owner(), deadline);
        }
        // Again: a lease that began just now may not have been there to be told.
        for seat in self.seats_where(|seat| seat.is_dismissed() && !seat.is_leaving()) {
            self.wakeups.revoked(seat.owner());
        }
        self.beats.send_modify(|beats| beats.answered = number);
    }

    async fn check(&self, seats: &[Arc<Seat>]) -> Result<(), Fault> {
        let mut seats: Vec<&Arc<Seat>> = seats.iter().collect();
        loop {
            let paths: Vec<&str> = seats.iter().filter_map(|seat| seat.path()).collect();
            if paths.is_empty() {
                return Ok(());
            }
            let sent = Instant::now();
            match self.session.check(&paths).await {
                Ok(()) => {
                    self.written(sent);
                    return Ok(());
                }
                Err((Some(index), fault)) if index < seats.len() => {
                    self.written(sent);
                    let seat = seats.remove(index);
                    if fault == Fault::NoNode {
                        self.vanished(seat);
                    }
                }
                Err((_, fault)) => return Err(fault),
            }
        }
    }

    /// Somebody else deleted the node.
    fn vanished(&self, seat: &Seat) {
        // It may be its own release, which was sent after the check's list was made.
        if !seat.is_leaving() {
            seat.dismiss();
            self.wakeups.revoked(seat.owner());
        }
    }

    /// A new connection. That it is still the same session is for us to check: the crate accepts
    /// another one without a word, which some look-alikes of ZooKeeper give it.
    async fn reconnected(&self) {
        let seats = self.seats_where(|seat| !seat.is_leaving());
        let nodes = match self.session.ephemerals(self.root.path()).await {
            Ok(nodes) => nodes.into_iter().collect::<HashSet<_>>(),
            // Before 3.6 there is no such request.
            Err(_) => match self.present(&seats).await {
                Ok(nodes) => nodes,
                // The line is down again, or the session over; either is told by itself.
                Err(_) => return,
            },
        };
        let (present, missing): (Vec<_>, Vec<_>) =
            seats.iter().partition(|seat| seat.path().is_none_or(|path| nodes.contains(path)));
        if present.is_empty() && !missing.is_empty() {
            for seat in missing {
                self.wakeups.revoked(seat.owner());
            }
            return self.abandon("it has none of our nodes after a reconnect");
        }
        missing.into_iter().for_each(|seat| self.vanished(seat));
        self.reconnects.send_modify(|count| *count += 1);
    }

    /// Those of the seats' nodes that are there and belong to this session.
    async fn present(&self, seats: &[Arc<Seat>]) -> Result<HashSet<String>, Fault> {
        let mut present = HashSet::new();
        for path in seats.iter().filter_map(|seat| seat.path()) {
            let node = self.session.exists(path).await?;
            if node.is_some_and(|node| node.owner == self.session.id()) {
                present.insert(path.to_owned());
            }
        }
        Ok(present)
    }

    fn seats_where(&self, wanted: impl Fn(&Seat) -> bool) -> Vec<Arc<Seat>> {
        locked(&self.seats).values().filter(|seat| wanted(seat)).cloned().collect()
    }

    pub(super) fn may_delete_in(&self, directory: &str) -> bool {
        locked(&self.deletable).contains(directory)
    }

    pub(super) fn found_deletable(&self, directory: &str) {
        let mut known = locked(&self.deletable);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(directory.to_owned());
    }

    /// A node was created by a request sent at `sent`.
    pub(super) fn created(&self, node: Node, sent: Instant) {
        *locked(&self.wall_clock) = Some((node.created_at, sent));
    }

    /// The leader's wall clock now, in milliseconds, if it is known.
    pub(super) fn wall_clock(&self) -> Option<i64> {
        let (millis, at) = (*locked(&self.wall_clock))?;
        Some(millis + i64::try_from(at.until(Instant::now()).as_millis()).ok()?)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
