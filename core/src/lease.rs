//! A held lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;

use crate::backend::{Place, Renewal, Renewed, Request, Verdict};
use crate::client::{Core, CoreRef};
use crate::clock::Instant;
use crate::contender::Grant;
use crate::error::{Error, ErrorKind, Result};
use crate::period::{Term, deadline};
use crate::token::Token;

/// A held lock, the value that `acquire` returns. The lease is the ownership: whoever has it may
/// release it, from any thread or task.
///
/// Dropping it releases it in the background; [`release`](Lease::release) tells you whether the
/// lock was yours to the end.
///
/// `held` is judged locally: it is false from the deadline on, without asking anybody. What it
/// cannot do is stop you between checking it and writing; the [fencing token](Lease::token)
/// protects the data then.
#[must_use = "a lease that is dropped is released"]
pub struct Lease {
    held: Arc<Held>,
    core: CoreRef,
}

impl Lease {
    pub(crate) fn new(held: Arc<Held>, core: Arc<Core>) -> Self {
        Lease { held, core: CoreRef::new(core) }
    }

    /// The fencing token: strictly greater than every earlier token of this name.
    pub fn token(&self) -> Token {
        self.held.token
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.held.place.name.as_str()
    }

    /// The owner id, 32 hexadecimal digits, as [`inspect`](crate::Client::inspect) shows it.
    pub fn owner(&self) -> String {
        self.held.place.owner.to_string()
    }

    /// Whether the lock is ours now. Computed from the clock: exact also first thing after the
    /// process was stopped. False in a forked child.
    pub fn is_held(&self) -> bool {
        !self.core.is_forked() && self.held.is_held()
    }

    /// Whether the lease was lost. False after a release that succeeded.
    pub fn is_lost(&self) -> bool {
        !self.core.is_forked() && self.held.is_lost()
    }

    /// For how long the lock is certainly ours without another renewal; zero when it is not held.
    pub fn remaining(&self) -> Duration {
        if self.is_held() { Instant::now().until(self.held.deadline()) } else { Duration::ZERO }
    }

    pub(crate) fn check_process(&self) -> Result<()> {
        self.core.check_fork()
    }

    /// [`is_held`](Lease::is_held) as a result, for use between two steps of the work. No I/O.
    ///
    /// # Errors
    ///
    /// `Lost` when the lease is lost or was released, `Forked` in a forked child.
    pub fn check(&self) -> Result<()> {
        self.core.check_fork()?;
        match self.held.state() {
            State::Held => Ok(()),
            State::Lost => Err(self.lost_error()),
            State::Releasing | State::Released => {
                Err(Error::new(ErrorKind::Lost, "the lease was released")
                    .of_lock(&self.held.place.name))
            }
        }
    }

    /// Returns when the lease is lost: at the deadline plus scheduling delay at the latest,
    /// whatever the server does. Never returns once the lease was released.
    ///
    /// Cancel-safe.
    pub async fn lost(&self) {
        if self.ended().await == Ended::Released {
            std::future::pending().await
        }
    }

    /// Returns when the lease ends, either way. Cancel-safe.
    pub async fn ended(&self) -> Ended {
        self.held.ended().await
    }

    /// What only watches this lease and does not keep it: when the lease is dropped meanwhile, a
    /// watcher sees that as a release.
    pub fn watch(&self) -> Watch {
        Watch { held: self.held.clone(), pid: std::process::id() }
    }

    /// Sets the lease to a full ttl from now; needed only with
    /// [`renew(false)`](crate::LockOptions::renew). Never longer than `max_hold`.
    ///
    /// Cancel-safe: a request once sent may still lengthen the lease.
    ///
    /// # Errors
    ///
    /// `Lost` when it is not ours any more; `Unavailable` when the backend does not answer within
    /// the request timeout, the lease then goes on until its deadline.
    pub async fn renew(&self) -> Result<()> {
        self.core.check_usable()?;
        self.check()?;
        let held = &self.held;
        let limit = self.core.request_limit(held.place.ttl);
        let sent = Instant::now();
        let request = self.core.backend.renew(vec![held.renewal()]);
        let outcome = match timeout(limit, request).await {
            Ok(Ok(mut results)) => results.pop().unwrap_or(Ok(Renewed::NotOurs)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::no_answer(limit)),
        };
        match outcome.map_err(|e| e.of_lock(&held.place.name))? {
            Renewed::Ours(term) => {
                held.extend(sent, term, Instant::now());
                self.core.watchdog.extended(held);
                self.check()
            }
            Renewed::NotOurs => {
                held.lose();
                self.check()
            }
        }
    }

    /// Releases the lock and hands it to the next contender. `is_held` is false from the call on.
    ///
    /// May be called again: after a success it does nothing, after an error it asks again and is
    /// told the truth. Cancel-safe: a cancelled release goes on in the background.
    ///
    /// # Errors
    ///
    /// `Lost` when the lease had ended before; at once, without I/O, when that is known here.
    /// `Unavailable` when the backend does not answer within the request timeout; the release
    /// then goes on in the background until the deadline.
    pub async fn release(&self) -> Result<()> {
        self.core.check_fork()?;
        match begin_release(&self.core, &self.held) {
            State::Releasing | State::Held => {}
            State::Released => return Ok(()),
            State::Lost => return Err(self.lost_error()),
        }
        let mut release = Release { core: &self.core, held: &self.held, request: None };
        let until = Instant::now().plus(self.core.settings.request_timeout);
        match release.until(until).await {
            Ok(verdict) => {
                release.request = None;
                std::mem::forget(release);
                self.judge(verdict)
            }
            Err(error) => Err(error.of_lock(&self.held.place.name)),
        }
    }

    fn judge(&self, verdict: Verdict) -> Result<()> {
        self.held.released(verdict);
        match verdict {
            Verdict::Released => Ok(()),
            Verdict::Lost => Err(self.lost_error()),
            Verdict::Unknown => Err(Error::new(
                ErrorKind::Lost,
                "outcome unknown: the server lost its data, or a later lease ended meanwhile",
            )
            .of_lock(&self.held.place.name)),
        }
    }

    fn lost_error(&self) -> Error {
        Error::lost(&self.held.place.name)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.core.is_forked() {
            return;
        }
        release_in_background(&self.core, &self.held);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("name", &self.held.place.name)
            .field("token", &self.held.token)
            .field("held", &self.is_held())
            .finish_non_exhaustive()
    }
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was lost.
    Lost,
    /// It was released here.
    Released,
}

/// Watches a [`Lease`] without keeping it; see [`Lease::watch`].
#[derive(Clone)]
pub struct Watch {
    held: Arc<Held>,
    pid: u32,
}

impl Watch {
    /// As [`Lease::is_lost`].
    pub fn is_lost(&self) -> bool {
        self.pid == std::process::id() && self.held.is_lost()
    }

    /// As [`Lease::ended`]. Cancel-safe.
    pub async fn ended(&self) -> Ended {
        self.held.ended().await
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("name", &self.held.place.name).finish_non_exhaustive()
    }
}

/// Releases the lease unless it has ended or its release has begun.
pub(crate) fn release_in_background(core: &Arc<Core>, held: &Arc<Held>) {
    if begin_release(core, held) == State::Held {
        drop(Release { core, held, request: None });
    }
}

fn begin_release(core: &Core, held: &Held) -> State {
    let state = held.begin_release();
    let owner = held.place.owner;
    // A lost lease stays with the watchdog, which cleans up in the backend.
    if state != State::Lost {
        core.watchdog.remove(owner);
    }
    core.wakeups.forget(owner);
    state
}

/// A release under way. Dropped before its verdict, it goes on in a task of the client.
struct Release<'a> {
    core: &'a Arc<Core>,
    held: &'a Arc<Held>,
    request: Option<Request<Verdict>>,
}

impl Release<'_> {
    async fn until(&mut self, until: Instant) -> Result<Verdict> {
        let place = &self.held.place;
        let limit = self.core.request_limit(place.ttl);
        let waiting = Instant::now().until(until);
        let _turn = timeout(waiting, self.held.release.lock())
            .await
            .map_err(|_| Error::no_answer(waiting))?;
        match self.held.state() {
            State::Released => return Ok(Verdict::Released),
            State::Lost => return Ok(Verdict::Lost),
            State::Held | State::Releasing => {}
        }
        loop {
            let request = self.request.insert(self.core.backend.release(
                place,
                Some(self.held.token),
                self.held.unanswered,
            ));
            let error = match timeout(limit, request.as_mut()).await {
                Ok(Ok(verdict)) => {
                    // Before the next one's turn, which would ask the backend once more.
                    self.held.released(verdict);
                    return Ok(verdict);
                }
                Ok(Err(error)) => error,
                Err(_) => Error::no_answer(limit),
            };
            self.request = None;
            if !error.is_passing() || Instant::now() >= until {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(20).min(limit)).await;
        }
    }
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if self.core.is_forked() {
            return;
        }
        let core = self.core.clone();
        let held = self.held.clone();
        let request = self.request.take();
        let limit = core.request_limit(held.place.ttl);
        drop(self.core.spawn(async move {
            let _turn = held.release.lock().await;
            if held.state() == State::Released {
                return;
            }
            let first = match request {
                Some(request) => timeout(limit, request).await.ok().and_then(Result::ok),
                None => None,
            };
            let verdict = match first {
                Some(verdict) => Some(verdict),
                None => {
                    let until = held.deadline();
                    core.release_until(&held.place, Some(held.token), held.unanswered, until).await
                }
            };
            match verdict {
                Some(verdict) => held.released(verdict),
                None => tracing::warn!(
                    lock = %held.place.name,
                    "release got no answer; the lock is free when its ttl has passed"
                ),
            }
        }));
    }
}

/// The part of a lease that the watchdog and the wake-up channel share with it.
pub(crate) struct Held {
    pub(crate) place: Arc<Place>,
    pub(crate) token: Token,
    /// Nanoseconds of [`Instant`]; only ever raised.
    deadline: AtomicU64,
    /// The end of `max_hold`; no deadline goes beyond it.
    limit: Instant,
    /// The end of a fixed lease's ttl, in nanoseconds of [`Instant`]: it may live in a session
    /// that goes on. No deadline goes beyond it, and only renewing the lease raises it.
    fixed_end: AtomicU64,
    state: AtomicU8,
    changed: Notify,
    /// One release at a time: of two under way, the second would find nothing left to release and
    /// take it for a loss.
    release: Mutex<()>,
    pub(crate) renews: bool,
    /// A request that can introduce this owner id was never answered, so its end leaves a mark.
    pub(crate) unanswered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Held,
    Lost,
    Releasing,
    Released,
}

impl Held {
    pub(crate) fn new(
        place: Arc<Place>,
        grant: Grant,
        max_hold: Option<Duration>,
        renews: bool,
        unanswered: bool,
        now: Instant,
    ) -> Self {
        let limit = max_hold.map_or(Instant::NEVER, |max| now.plus(max));
        let fixed_end = if renews { Instant::NEVER } else { deadline(grant.sent, place.ttl) };
        Held {
            place,
            token: grant.token,
            deadline: AtomicU64::new(grant.deadline.min(limit).min(fixed_end).as_nanos()),
            limit,
            fixed_end: AtomicU64::new(fixed_end.as_nanos()),
            state: AtomicU8::new(State::Held as u8),
            changed: Notify::new(),
            release: Mutex::new(()),
            renews,
            unanswered,
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    /// Whether renewing can still move the deadline.
    pub(crate) fn can_extend(&self) -> bool {
        self.deadline() < self.limit
    }

    pub(crate) fn renewal(&self) -> Renewal {
        Renewal { place: self.place.clone(), token: self.token }
    }

    /// A renewal sent at `sent` was answered: ours. Of no effect on a lease that has ended.
    pub(crate) fn extend(&self, sent: Instant, term: Term, now: Instant) {
        self.fixed_end.fetch_max(deadline(sent, self.place.ttl).as_nanos(), Ordering::AcqRel);
        self.extend_to(term.deadline(sent, self.place.ttl), now);
    }

    /// The lease is certainly ours until then, as far as the backend is concerned.
    pub(crate) fn extend_to(&self, until: Instant, now: Instant) {
        let fixed_end = Instant::from_nanos(self.fixed_end.load(Ordering::Acquire));
        let deadline = until.min(self.limit).min(fixed_end);
        // Past its deadline a lease is lost for good, even if the backend still says ours.
        if self.state_at(now) == State::Held {
            self.deadline.fetch_max(deadline.as_nanos(), Ordering::AcqRel);
        }
    }

    /// The state now.
    pub(crate) fn state(&self) -> State {
        self.state_at(Instant::now())
    }

    /// A lease past its deadline is lost before anybody has marked it so; this marks it.
    pub(crate) fn state_at(&self, now: Instant) -> State {
        if self.marked() == State::Held && now >= self.deadline() {
            self.lose();
        }
        self.marked()
    }

    fn marked(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Held,
            1 => State::Lost,
            2 => State::Releasing,
            _ => State::Released,
        }
    }

    async fn ended(&self) -> Ended {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.state() {
                State::Lost => return Ended::Lost,
                State::Releasing | State::Released => return Ended::Released,
                State::Held => {}
            }
            // The watchdog tells, but it ends with its runtime, and whoever waits may do so on
            // another one.
            let left = Instant::now().until(self.deadline());
            match tokio::runtime::Handle::try_current() {
                Ok(_) => drop(timeout(left, changed).await),
                Err(_) => changed.await,
            }
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.state() == State::Held
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state() == State::Lost
    }

    /// Marks the lease lost, for good, unless it has been released. It says so in no log: the
    /// caller may hold a lock that a log's reader needs. The watchdog does.
    pub(crate) fn lose(&self) {
        if self.change(State::Held, State::Lost) {
            self.changed.notify_waiters();
        }
    }

    /// Held → Releasing; returns the state before.
    fn begin_release(&self) -> State {
        let state = self.state();
        if state == State::Held {
            if !self.change(State::Held, State::Releasing) {
                return self.begin_release();
            }
            self.changed.notify_waiters();
        }
        state
    }

    fn released(&self, verdict: Verdict) {
        let end = if verdict == Verdict::Released { State::Released } else { State::Lost };
        if self.change(State::Releasing, end) {
            self.changed.notify_waiters();
        }
    }

    fn change(&self, from: State, to: State) -> bool {
        self.state
            .compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
