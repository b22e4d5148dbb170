//! The one connection that carries all requests of a client, and its replacement.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ConnectionInfo, Pipeline, RedisError, RedisResult, Value};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::fault::Fault;
use super::socket::Socket;

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
}

struct Shared {
    server: ConnectionInfo,
    connect_timeout: Duration,
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
type Outcome = watch::Receiver<Option<RedisResult<Arc<Line>>>>;

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
    pub(super) fn new(server: ConnectionInfo, connect_timeout: Duration) -> Self {
        let state = Mutex::new(State::Closed(Retry::at_once()));
        Link { shared: Arc::new(Shared { server, connect_timeout, state }) }
    }

    /// Sends one command. Server errors come as an error; nothing is ever sent twice.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, Fault> {
        let line = self.shared.line().await?;
        let sent = Sent::on(&line);
        let reply = line.connection.clone().send_packed_command(command).await;
        sent.answered(&reply);
        match reply? {
            Value::ServerError(error) => Err(RedisError::from(error).into()),
            value => Ok(value),
        }
    }

    /// Sends commands in one go. Each reply stands alone, an error reply as
    /// [`Value::ServerError`].
    pub(super) async fn send_all(&self, commands: &Pipeline) -> Result<Vec<Value>, Fault> {
        let line = self.shared.line().await?;
        let sent = Sent::on(&line);
        let count = commands.len();
        let replies = line.connection.clone().send_packed_commands(commands, 0, count).await;
        sent.answered(&replies);
        Ok(replies?)
    }

    /// Closes the connection for good.
    pub(super) fn end(&self) {
        *self.shared.state() = State::Ended;
    }
}

impl Shared {
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
        result: watch::Sender<Option<RedisResult<Arc<Line>>>>,
    ) {
        tokio::time::sleep_until(retry.at.into()).await;
        let opened = match timeout(self.connect_timeout, Line::open(&self.server)).await {
            Ok(opened) => opened,
            Err(_) => Err(no_connection_within(self.connect_timeout).into()),
        };
        let mut state = self.state();
        if !matches!(*state, State::Ended) {
            *state = match &opened {
                Ok(line) => State::Open(line.clone()),
                Err(error) => {
                    tracing::debug!(%error, "cannot connect to Redis");
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
    async fn open(server: &ConnectionInfo) -> RedisResult<Arc<Self>> {
        let socket = Socket::open(server).await?;
        let arrivals = socket.arrivals();
        // The core limits each request by itself.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(BUFFERED_REQUESTS);
        let (connection, driver) =
            MultiplexedConnection::new_with_config(server.redis_settings(), socket, config).await?;
        let broken = Arc::new(AtomicBool::new(false));
        // Knowing when the driver ends, a connection that the server closed while it was idle is
        // replaced before the next request is lost on it.
        let at_the_end = SetOnDrop(broken.clone());
        let driver = tokio::spawn(async move {
            let _at_the_end = at_the_end;
            driver.await;
        });
        Ok(Arc::new(Line {
            connection,
            driver: driver.abort_handle(),
            broken,
            arrivals,
            given_up: Mutex::new(None),
            doubtful: AtomicBool::new(false),
        }))
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
