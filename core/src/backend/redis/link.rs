//! The one connection that carries all requests of a client to one server, and its replacement.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::dial::{Dialer, Whereabouts};
use super::fault::Fault;
use super::replies;

/// How many requests may wait to be written; more wait outside, in order.
const BUFFERED_REQUESTS: usize = 4096;
/// A connection from which nothing came for this long, although a request was given up on it
/// unanswered, is taken for dead. Longer than any sane round trip: a request may have been given
/// up early because of a short ttl.
const SILENCE: Duration = Duration::from_millis(250);
/// A request given up sooner than this may never have been written, so that no answer means
/// nothing.
const SURELY_WRITTEN: Duration = Duration::from_millis(10);
/// Between attempts to connect, doubled each time.
const BACKOFF: Duration = Duration::from_millis(20);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// The connection for requests: opened when it is needed, shared by all, replaced when it broke
/// or has gone silent. A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct Link {
    shared: Arc<Shared>,
    /// Another connection to the same server, opened when it is needed.
    waiting: Arc<Shared>,
}

struct Shared {
    whereabouts: Whereabouts,
    dialer: Dialer,
    state: Mutex<State>,
}

enum State {
    Closed(Retry),
    Opening(Outcome),
    Open(Arc<Line>),
    /// For good.
    Ended,
}

/// When the next attempt to connect may begin, and how long the one after it has to wait.
#[derive(Clone, Copy)]
struct Retry {
    at: Instant,
    backoff: Duration,
}

impl Retry {
    fn at_once() -> Self {
        Retry { at: Instant::now(), backoff: BACKOFF }
    }

    fn after_failure(self) -> Self {
        let backoff = (self.backoff * 2).min(LONGEST_BACKOFF);
        Retry { at: Instant::now() + self.backoff, backoff }
    }
}

/// What came of an attempt; `None` while it goes on.
type Outcome = watch::Receiver<Option<Result<Arc<Line>, Fault>>>;

/// One connection. Requests under way keep it alive after it was replaced.
struct Line {
    connection: MultiplexedConnection,
    driver: AbortHandle,
    broken: Arc<AtomicBool>,
    arrivals: Arc<AtomicU64>,
    /// The first request given up unanswered: when it was sent, and what had arrived by then.
    given_up: Mutex<Option<(Instant, u64)>>,
    doubtful: AtomicBool,
}

impl Link {
    pub(super) fn new(whereabouts: Whereabouts, dialer: Dialer) -> Self {
        let shared = |whereabouts, dialer| {
            let state = Mutex::new(State::Closed(Retry::at_once()));
            Arc::new(Shared { whereabouts, dialer, state })
        };
        let waiting = shared(whereabouts.clone(), dialer.clone());
        Link { shared: shared(whereabouts, dialer), waiting }
    }

    /// The same server through the connection for requests that wait for its replicas: the
    /// server answers nothing else on a connection meanwhile, and a release is not to wait.
    pub(super) fn waiting(&self) -> Link {
        Link { shared: self.waiting.clone(), waiting: self.waiting.clone() }
    }

    /// Whether both are handles to the same link.
    pub(super) fn is(&self, other: &Link) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Sends one command. Server errors come as an error; nothing is ever sent twice.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, Fault> {
        let line = self.shared.line().await?;
        let sent = Sent::on(&line);
        let reply = line.connection.clone().send_packed_command(command).await;
        sent.answered(&reply);
        match reply? {
            Value::ServerError(error) => {
                let fault = Fault::from(RedisError::from(error));
                self.shared.distrust_replica(&line, &fault);
                Err(fault)
            }
            value => Ok(value),
        }
    }

    /// Sends commands in one go, on one connection. Each reply stands alone.
    pub(super) async fn send_all(
        &self,
        commands: &Pipeline,
    ) -> Result<Vec<Result<Value, Fault>>, Fault> {
        let line = self.shared.line().await?;
        let sent = Sent::on(&line);
        let count = commands.len();
        let replies = line.connection.clone().send_packed_commands(commands, 0, count).await;
        sent.answered(&replies);
        let judged = |reply| match reply {
            Value::ServerError(error) => {
                let fault = Fault::from(RedisError::from(error));
                self.shared.distrust_replica(&line, &fault);
                Err(fault)
            }
            value => Ok(value),
        };
        Ok(replies?.into_iter().map(judged).collect())
    }

    /// Closes the connections for good.
    pub(super) fn end(&self) {
        *self.shared.state() = State::Ended;
        *self.waiting.state() = State::Ended;
    }
}

impl Shared {
    /// A primary that was demoted answers as a replica: look for the new one.
    fn distrust_replica(&self, line: &Line, fault: &Fault) {
        if self.whereabouts.may_be_a_replica() && fault.is_of_a_replica() {
            line.broken.store(true, Ordering::Release);
        }
    }

    /// The connection to use now, opened if need be.
    async fn line(self: &Arc<Self>) -> Result<Arc<Line>, Fault> {
        let mut outcome = match &mut *self.state() {
            State::Open(line) if line.is_usable() => return Ok(line.clone()),
            State::Ended => return Err(Fault::Closed),
            // Without its sender an attempt has ended with its runtime: then begin another here.
            State::Opening(outcome) if outcome.has_changed().is_ok() => outcome.clone(),
            state => {
                let retry =
                    if let State::Closed(retry) = state { *retry } else { Retry::at_once() };
                let (result, outcome) = watch::channel(None);
                *state = State::Opening(outcome.clone());
                // A task of its own, so that the short time limit of one request does not end an
                // attempt that others wait for as well.
                tokio::spawn(self.clone().open(retry, result));
                outcome
            }
        };
        match outcome.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(result)) => Ok(result.clone()?),
            _ => Err(Fault::Interrupted),
        }
    }

    async fn open(
        self: Arc<Self>,
        retry: Retry,
        result: watch::Sender<Option<Result<Arc<Line>, Fault>>>,
    ) {
        tokio::time::sleep_until(retry.at.into()).await;
        let limit = self.dialer.limit();
        let opened = match timeout(limit, Line::open(&self.whereabouts, &self.dialer)).await {
            Ok(opened) => opened,
            Err(_) => Err(no_connection_within(limit).into()),
        };
        let mut state = self.state();
        if !matches!(*state, State::Ended) {
            *state = match &opened {
                Ok(line) => State::Open(line.clone()),
                Err(fault) => {
                    tracing::debug!(error = fault.text(), "cannot connect to Redis");
                    State::Closed(retry.after_failure())
                }
            };
        }
        drop(state);
        result.send_replace(Some(opened));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_connection_within(limit: Duration) -> io::Error {
    let text = format!("no connection within {} ms", limit.as_millis());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl Line {
    async fn open(whereabouts: &Whereabouts, dialer: &Dialer) -> Result<Arc<Self>, Fault> {
        let socket = whereabouts.open(dialer).await?;
        let (arrivals, refusal, plain) =
            (socket.arrivals(), socket.refusal(), socket.is_plain_tcp());
        // The core limits each request by itself.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(BUFFERED_REQUESTS);
        let (connection, driver) =
            MultiplexedConnection::new_with_config(dialer.settings(), socket, config)
                .await
                .map_err(|error| match refusal.get() {
                    Some(refusal) => refusal.clone(),
                    None if plain && error.is_connection_dropped() => Fault::HungUp(error),
                    None => Fault::Redis(error),
                })?;
        let broken = Arc::new(AtomicBool::new(false));
        // Knowing when the driver ends, a connection that the server closed while it was idle is
        // replaced before the next request is lost on it.
        let at_the_end = SetOnDrop(broken.clone());
        let driver = tokio::spawn(async move {
            let _at_the_end = at_the_end;
            driver.await;
        });
        let line = Line {
            connection,
            driver: driver.abort_handle(),
            broken,
            arrivals,
            given_up: Mutex::new(None),
            doubtful: AtomicBool::new(false),
        };
        if whereabouts.may_be_a_replica() {
            line.check_role().await?;
        }
        Ok(Arc::new(line))
    }

    /// Sentinels may be behind: what they name can be a primary no more, or not yet.
    async fn check_role(&self) -> Result<(), Fault> {
        let role = self.connection.clone().send_packed_command(&redis::cmd("ROLE")).await;
        let role = match role? {
            Value::Array(fields) => fields.into_iter().next(),
            // A user without this right finds out by its first write.
            Value::ServerError(_) => return Ok(()),
            _ => None,
        };
        match role.as_ref().and_then(replies::bytes) {
            Some(b"master") => Ok(()),
            _ => Err(Fault::Sentinel {
                refused: false,
                text: "the server that the sentinels name is not the primary (yet)".into(),
            }),
        }
    }

    fn is_usable(&self) -> bool {
        !self.broken.load(Ordering::Acquire)
            && (!self.doubtful.load(Ordering::Acquire) || !self.has_gone_silent())
    }

    /// Whether nothing has come for a while since a request was given up.
    fn has_gone_silent(&self) -> bool {
        let mut given_up = self.given_up();
        match *given_up {
            Some((sent, arrived)) if arrived == self.arrivals.load(Ordering::Relaxed) => {
                sent.elapsed() >= SILENCE
            }
            _ => {
                *given_up = None;
                self.doubtful.store(false, Ordering::Release);
                false
            }
        }
    }

    fn given_up(&self) -> MutexGuard<'_, Option<(Instant, u64)>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The driver would wait for the answers to requests that nobody waits for any more, on a
        // dead connection for ever.
        self.driver.abort();
    }
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A request under way. Dropped without an answer, it casts doubt on its connection: a black hole
/// in the network must not cost more than the time limit of one request.
struct Sent<'a> {
    line: &'a Line,
    at: Instant,
    arrivals: u64,
    answered: bool,
}

impl<'a> Sent<'a> {
    fn on(line: &'a Line) -> Self {
        let arrivals = line.arrivals.load(Ordering::Relaxed);
        Sent { line, at: Instant::now(), arrivals, answered: false }
    }

    fn answered<T>(mut self, reply: &RedisResult<T>) {
        self.answered = true;
        if let Err(error) = reply
            && (error.is_io_error() || error.is_unrecoverable_error())
        {
            self.line.broken.store(true, Ordering::Release);
        }
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        let silent = self.arrivals == self.line.arrivals.load(Ordering::Relaxed);
        if !self.answered && silent && self.at.elapsed() >= SURELY_WRITTEN {
            let mut given_up = self.line.given_up();
            if given_up.is_none_or(|(_, arrivals)| arrivals != self.arrivals) {
                *given_up = Some((self.at, self.arrivals));
            }
            self.line.doubtful.store(true, Ordering::Release);
        }
    }
}
