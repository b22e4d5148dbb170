//! The wait loop: from the first request to a lease, a time-out or a withdrawal.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::backend::{Look, Mode, Place, Request};
use crate::client::Core;
use crate::clock::Instant;
use crate::contender::{Contender, Grant, Step};
use crate::error::{Error, Result};
use crate::lease::{Held, Lease};
use crate::lock::Spec;
use crate::owner::OwnerId;
use crate::wakeups::{Mail, Mailbox};

/// For how long a contender that was queued bears a backend that does not answer.
const OUTAGE: Duration = Duration::from_secs(30);
/// For how long a time-out waits for its withdrawal. 50 ms are promised until the caller has its answer:
/// timers count whole milliseconds, and the way back goes through threads that have to be woken.
const GRACE: Duration = Duration::from_millis(35);
/// Between tries after an error; doubled each time, up to a look period.
const FIRST_BACKOFF: Duration = Duration::from_millis(20);

/// Takes the lock if it is free and nobody waits for it; never queues.
pub(crate) async fn attempt(core: &Arc<Core>, spec: &Spec) -> Result<Option<Lease>> {
    let mut patience = Patience::new(core, None);
    match Candidate::new(core, spec)?.run(Mode::Try, &mut patience).await? {
        End::Held(lease) => Ok(Some(lease)),
        End::Busy | End::StartAgain => Ok(None),
    }
}

/// Waits for the lock; `limit` none = for ever.
pub(crate) async fn wait(
    core: &Arc<Core>,
    spec: &Spec,
    limit: Option<Duration>,
    cancelled: impl Future<Output = ()> + Send,
) -> Result<Lease> {
    tokio::pin!(cancelled);
    let mut patience = Patience { cancelled: Some(cancelled), ..Patience::new(core, limit) };
    loop {
        if let End::Held(lease) =
            Candidate::new(core, spec)?.run(Mode::Intro, &mut patience).await?
        {
            return Ok(lease);
        }
    }
}

/// How long a whole wait may go on, over all places that it takes in the queue.
struct Patience<'a> {
    cancelled: Option<Pin<&'a mut (dyn Future<Output = ()> + Send)>>,
    started: Instant,
    limit: Option<Duration>,
    connect_timeout: Duration,
    answered: bool,
    /// When it was first seen that the backend does not answer, since it last did. Not the time
    /// since that answer: a machine that slept has asked nothing meanwhile.
    silent_since: Option<Instant>,
    last_error: Option<Error>,
}

impl Patience<'_> {
    fn new(core: &Core, limit: Option<Duration>) -> Self {
        Patience {
            cancelled: None,
            started: Instant::now(),
            limit,
            connect_timeout: core.settings.connect_timeout,
            answered: false,
            silent_since: None,
            last_error: None,
        }
    }

    fn times_out_at(&self) -> Instant {
        self.limit.map_or(Instant::NEVER, |limit| self.started.plus(limit))
    }

    fn gives_up_at(&self) -> Instant {
        if self.answered {
            self.silent_since.map_or(Instant::NEVER, |since| since.plus(OUTAGE))
        } else {
            self.started.plus(self.connect_timeout)
        }
    }

    fn heard(&mut self) {
        self.answered = true;
        self.silent_since = None;
        self.last_error = None;
    }

    fn missed(&mut self, error: Error, now: Instant) {
        self.silent_since.get_or_insert(now);
        self.last_error = Some(error);
    }

    /// The error when nothing more is worth waiting for.
    fn exhausted(&mut self, place: &Place, now: Instant) -> Option<Error> {
        let waited = self.started.until(now);
        if now >= self.times_out_at() {
            let error = Error::timeout(&place.name, waited);
            return Some(match self.last_error.take() {
                Some(source) => error.with_source(source),
                None => error,
            });
        }
        if now >= self.gives_up_at() {
            let error = self.last_error.take().unwrap_or_else(|| Error::no_answer(waited));
            return Some(error.of_lock(&place.name));
        }
        None
    }
}

/// How one place ended without an error.
enum End {
    Held(Lease),
    Busy,
    StartAgain,
}

/// One place in the queue. Dropping it before it became a lease withdraws it: a request under way
/// runs to its reply in a task of the client, and the withdrawal follows.
struct Candidate<'a> {
    core: &'a Arc<Core>,
    spec: &'a Spec,
    place: Arc<Place>,
    mailbox: Arc<Mailbox>,
    contender: Contender,
    outstanding: Option<Outstanding>,
    next_request: Instant,
    backoff: Duration,
    look_wanted: bool,
    /// A request that can introduce us was sent and never answered, so it may still arrive.
    unanswered: bool,
    rest: Rest,
    /// Closing the client waits until this place has ended and begun its withdrawal.
    _tracked: TaskTrackerToken,
}

/// What a place leaves behind when it is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing is left in the backend.
    Nothing,
    /// A queue entry or a grant may be there, or a request on its way.
    Place,
    /// It became a lease, or its withdrawal has begun.
    Settled,
}

struct Outstanding {
    request: Request<Look>,
    mode: Mode,
    sent: Instant,
}

impl<'a> Candidate<'a> {
    fn new(core: &'a Arc<Core>, spec: &'a Spec) -> Result<Self> {
        core.check_usable()?;
        let place = Arc::new(Place {
            owner: OwnerId::random(),
            name: spec.name.clone(),
            ttl: spec.options.ttl,
            metadata: spec.metadata.clone(),
        });
        Ok(Candidate {
            core,
            spec,
            mailbox: core.wakeups.await_grant(place.owner),
            contender: Contender::new(place.ttl, core.pace()),
            outstanding: None,
            next_request: Instant::from_nanos(0),
            backoff: FIRST_BACKOFF,
            look_wanted: false,
            unanswered: false,
            rest: Rest::Nothing,
            _tracked: core.track(),
            place,
        })
    }

    async fn run(mut self, first: Mode, patience: &mut Patience<'_>) -> Result<End> {
        loop {
            let event = self.next_event(first, patience).await;
            let now = Instant::now();
            let step = match event {
                Event::Answer(sent, _, Ok(look)) => {
                    patience.heard();
                    self.answered(sent, look, now)
                }
                Event::Answer(_, _, Err(error)) if error.is_to_be_undone() => {
                    // Marked, so that no request still under way is granted again.
                    self.unanswered = true;
                    let error = error.of_lock(&self.place.name);
                    self.withdraw().await;
                    return Err(error);
                }
                Event::Answer(_, mode, Err(error)) => {
                    self.failed(mode, error, now, patience)?;
                    None
                }
                Event::Mail(Mail::Granted(token)) => self.contender.pushed(token, now),
                Event::Mail(Mail::Look) => {
                    self.look_wanted = true;
                    None
                }
                Event::Mail(Mail::Woken) | Event::Time => None,
                Event::Cancelled => {
                    let error = Error::cancelled(&self.place.name);
                    self.withdraw().await;
                    return Err(error);
                }
            };
            match step {
                Some(Step::Hold(grant)) => return self.hold(grant).map(End::Held),
                Some(Step::StartAgain) => return Ok(End::StartAgain),
                Some(Step::Busy) => return Ok(End::Busy),
                Some(Step::Look) => self.look_wanted = true,
                Some(Step::Wait(until)) => self.next_request = until,
                None => {}
            }
            self.core.check_usable()?;
            if let Some(error) = patience.exhausted(&self.place, now) {
                self.withdraw().await;
                return Err(error);
            }
            if let Some(error) = self.overdue(first, now, patience) {
                return Err(error);
            }
        }
    }

    /// Sends a request when one is due, then waits for an answer, mail or the next instant at
    /// which something must happen.
    async fn next_event(&mut self, first: Mode, patience: &mut Patience<'_>) -> Event {
        let now = Instant::now();
        if self.outstanding.is_none() && (self.look_wanted || now >= self.next_request) {
            self.send(first, now);
        }
        let limit = self.request_limit();
        let due = self.outstanding.as_ref().map_or(self.next_request, |o| o.sent.plus(limit));
        let until = due.min(patience.times_out_at()).min(patience.gives_up_at());
        let cancelled = async {
            match &mut patience.cancelled {
                Some(cancelled) => cancelled.as_mut().await,
                None => std::future::pending().await,
            }
        };
        let answer = async {
            match &mut self.outstanding {
                Some(outstanding) => outstanding.request.as_mut().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            look = answer => {
                let (sent, mode) =
                    self.outstanding.take().map_or((now, first), |o| (o.sent, o.mode));
                Event::Answer(sent, mode, look)
            }
            mail = self.mailbox.next() => Event::Mail(mail),
            () = cancelled => {
                patience.cancelled = None;
                Event::Cancelled
            }
            () = sleep(now.until(until)) => Event::Time,
        }
    }

    fn send(&mut self, first: Mode, now: Instant) {
        let mode = if self.contender.was_queued() { Mode::Again } else { first };
        self.look_wanted = false;
        self.rest = Rest::Place;
        let request = self.core.backend.contend(&self.place, mode);
        self.outstanding = Some(Outstanding { request, mode, sent: now });
    }

    fn request_limit(&self) -> Duration {
        self.core.request_limit(self.place.ttl)
    }

    fn look_period(&self) -> Duration {
        self.core.pace().look_period(self.place.ttl)
    }

    fn answered(&mut self, sent: Instant, look: Look, now: Instant) -> Option<Step> {
        self.backoff = FIRST_BACKOFF;
        if matches!(look, Look::Busy | Look::Gone) && !self.unanswered {
            self.rest = Rest::Nothing;
        }
        let jitter = self.place.owner.share_of(self.look_period() / 10);
        Some(self.contender.answered(sent, look, now, jitter))
    }

    /// A passing error is tried again; any other ends the wait.
    fn failed(
        &mut self,
        mode: Mode,
        error: Error,
        now: Instant,
        patience: &mut Patience<'_>,
    ) -> Result<()> {
        if !error.is_passing() {
            // The backend answered, and refused before it wrote anything.
            if !self.unanswered && !self.contender.was_queued() {
                self.rest = Rest::Nothing;
            }
            return Err(error.of_lock(&self.place.name));
        }
        self.unanswered |= mode != Mode::Again;
        if mode == Mode::Try {
            return Err(error.of_lock(&self.place.name));
        }
        patience.missed(error, now);
        self.next_request = now.plus(self.backoff);
        self.backoff = (self.backoff * 2).min(self.look_period().max(FIRST_BACKOFF));
        Ok(())
    }

    /// Gives up the outstanding request when its time is over; its late answer is dropped. An
    /// error if no second try is allowed.
    fn overdue(&mut self, first: Mode, now: Instant, patience: &mut Patience<'_>) -> Option<Error> {
        let limit = self.request_limit();
        let late = self.outstanding.take_if(|o| now >= o.sent.plus(limit))?;
        self.unanswered |= late.mode != Mode::Again;
        self.next_request = now;
        let error = Error::no_answer(limit);
        if first == Mode::Try {
            return Some(error.of_lock(&self.place.name));
        }
        patience.missed(error, now);
        None
    }

    fn hold(mut self, grant: Grant) -> Result<Lease> {
        self.rest = Rest::Settled;
        let held = Arc::new(Held::new(
            self.place.clone(),
            grant,
            self.spec.options.max_hold,
            self.spec.options.renew,
            self.unanswered,
            Instant::now(),
        ));
        self.core.wakeups.hold(self.place.owner, held.clone());
        self.core.watchdog.add(&held, grant.handed_off);
        let lease = Lease::new(held, self.core.clone());
        // Closing releases what it finds in the list above; what comes after it, such as a grant
        // that its own releases hand to us, ends here.
        self.core.check_usable().map(|()| lease)
    }

    /// Waits a little for the withdrawal; what is not done by then goes on in the background.
    async fn withdraw(mut self) {
        if let Some(withdrawal) = self.withdrawal() {
            let _ = timeout(GRACE, self.core.spawn(withdrawal)).await;
        }
    }

    /// What is left to do in the backend when this place ends without a lease.
    fn withdrawal(&mut self) -> Option<impl Future<Output = ()> + Send + 'static> {
        match std::mem::replace(&mut self.rest, Rest::Settled) {
            Rest::Settled => return None,
            Rest::Nothing => {
                self.core.wakeups.forget(self.place.owner);
                return None;
            }
            Rest::Place => {}
        }
        let core = self.core.clone();
        let place = self.place.clone();
        let outstanding = self.outstanding.take();
        let mut mark = self.unanswered;
        Some(async move {
            let until = Instant::now().plus(core.pace().sign_of_life(place.ttl));
            let limit = core.request_limit(place.ttl);
            if let Some(Outstanding { request, mode, .. }) = outstanding {
                let answered = matches!(timeout(limit, request).await, Ok(Ok(_)));
                mark |= !answered && mode != Mode::Again;
            }
            core.release_until(&place, None, mark, until).await;
            core.wakeups.forget(place.owner);
        })
    }
}

impl Drop for Candidate<'_> {
    fn drop(&mut self) {
        if self.core.is_forked() {
            return;
        }
        if let Some(withdrawal) = self.withdrawal() {
            drop(self.core.spawn(withdrawal));
        }
    }
}

enum Event {
    Answer(Instant, Mode, Result<Look>),
    Mail(Mail),
    Cancelled,
    Time,
}
