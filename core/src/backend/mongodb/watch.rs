//! The wake-ups of a client: one change stream, whatever the number of locks.
//!
//! An event is more than a hint: it tells only what a majority has, so a hand-off that it reports
//! is a grant. It is read with plain commands and not with the driver's cursor, so that a
//! connection that died in silence is noticed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mongodb::ClientSession;
use mongodb::bson::{Bson, DateTime, Document, RawDocumentBuf, rawdoc};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::document;
use super::fault::Fault;
use super::peek::Peeker;
use crate::clock::Instant;

/// For how long the server lets a question for events wait.
const AWAIT: Duration = Duration::from_millis(2_500);
/// How much longer we wait for its answer before the connection counts as dead.
const GRACE: Duration = Duration::from_millis(500);
/// For how long the stream is kept after the last contender.
const KEPT: Duration = Duration::from_secs(30);
/// Between attempts to open it, doubled each time.
const BACKOFF: Duration = Duration::from_millis(20);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);
/// Until a server that refused to be watched is asked again.
const AFTER_REFUSAL: Duration = Duration::from_secs(60);
/// How often it is checked whether anybody still waits, where no stream does that by the way.
const CHECK: Duration = Duration::from_secs(1);

/// Listens from the first contender that has to wait until some time after the last one.
pub(super) struct Watch {
    watcher: Arc<Watcher>,
    task: Mutex<Option<AbortHandle>>,
}

struct Watcher {
    peeker: Peeker,
    running: AtomicBool,
    ended: AtomicBool,
}

impl Watch {
    pub(super) fn new(peeker: Peeker) -> Self {
        let watcher =
            Watcher { peeker, running: AtomicBool::new(false), ended: AtomicBool::new(false) };
        Watch { watcher: Arc::new(watcher), task: Mutex::default() }
    }

    /// Somebody waits, and has been entered among those who do.
    pub(super) fn start(&self) {
        if self.watcher.running.swap(true, Ordering::AcqRel) {
            self.watcher.peeker.look_around();
            return;
        }
        let mut task = self.task();
        if !self.watcher.ended.load(Ordering::Acquire) {
            let watcher = self.watcher.clone();
            *task = Some(tokio::spawn(async move { watcher.run().await }).abort_handle());
        }
    }

    /// Stops listening for good.
    pub(super) fn end(&self) {
        let mut task = self.task();
        self.watcher.ended.store(true, Ordering::Release);
        if let Some(task) = task.take() {
            task.abort();
        }
    }

    fn task(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// A watcher whose task runs; when the task ends, with its runtime for instance, the next
/// contender that has to wait starts it again.
struct Running<'a>(&'a Watcher);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::Release);
    }
}

/// An open stream.
struct Stream {
    session: ClientSession,
    cursor: i64,
}

impl Watcher {
    async fn run(&self) {
        loop {
            let running = Running(self);
            tokio::select! {
                () = self.watch() => {}
                () = self.peeker.run() => {}
            }
            drop(running);
            // Somebody may have begun to wait just now, and have found us running.
            if self.peeker.waiting.is_empty() || self.running.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }

    /// Returns when nobody has waited for some time.
    async fn watch(&self) {
        let mut idle = Idle::default();
        let mut backoff = BACKOFF;
        loop {
            let again = match timeout(self.peeker.limit, self.open()).await {
                Ok(Ok(stream)) => {
                    self.peeker.polling.store(false, Ordering::Release);
                    // What happened before it was open has to be found.
                    self.peeker.peek_all();
                    if self.listen(stream, &mut idle).await {
                        return;
                    }
                    tracing::debug!("the change stream ended; opening another");
                    backoff = BACKOFF;
                    continue;
                }
                Ok(Err(fault)) if fault.is_refusal_to_watch() => {
                    self.report(&fault);
                    self.peeker.polling.store(true, Ordering::Release);
                    self.peeker.peek_all();
                    AFTER_REFUSAL
                }
                Ok(Err(fault)) => {
                    tracing::debug!(error = %self.peeker.store.explain(&fault), "no change stream");
                    backoff
                }
                Err(_) => backoff,
            };
            backoff = (backoff * 2).min(LONGEST_BACKOFF);
            let until = Instant::now().plus(again);
            while Instant::now() < until {
                sleep(Instant::now().until(until).min(CHECK)).await;
                if self.is_idle(&mut idle) {
                    return;
                }
            }
        }
    }

    /// A standalone server is for development, where reads will do.
    fn report(&self, fault: &Fault) {
        if !fault.is_of_a_standalone() {
            let error = self.peeker.store.explain(fault);
            tracing::warn!(%error, "cannot watch the collection; contenders read it in turns instead");
        }
    }

    fn is_idle(&self, idle: &mut Idle) -> bool {
        let peeker = &self.peeker;
        peeker.waiting.sweep(|owner| peeker.wakeups.awaits(owner));
        idle.is_over(peeker.waiting.is_empty(), Instant::now())
    }

    async fn open(&self) -> Result<Stream, Fault> {
        let store = &self.peeker.store;
        let client = store.database.client();
        let mut session = client.start_session().causal_consistency(false).await?;
        let command = self.opening();
        let answer = store.run_in(&mut session, command).await?;
        let mut stream = Stream { session, cursor: 0 };
        self.take_batch(&mut stream, &answer, "firstBatch");
        Ok(stream)
    }

    /// Only what concerns this client: a filter that stays the same for its life.
    fn opening(&self) -> RawDocumentBuf {
        let client = self.peeker.client;
        let ours = || rawdoc! { "$gte": format!("{client}:"), "$lt": format!("{client};") };
        // Servers before 5.0 report an update by pipeline as a replacement.
        let whole = rawdoc! {
            "operationType": { "$in": ["replace", "insert"] },
            "$or": [{ "fullDocument.w": ours() }, { "fullDocument.n": ours() }],
        };
        let field = |name: &str| {
            rawdoc! { "$ifNull": [
                format!("$updateDescription.updatedFields.{name}"),
                format!("$fullDocument.{name}"),
            ] }
        };
        rawdoc! {
            "aggregate": self.peeker.store.collection.as_str(),
            "pipeline": [
                { "$changeStream": {} },
                { "$match": { "$or": [
                    { "updateDescription.updatedFields.w": ours() },
                    { "updateDescription.updatedFields.n": ours() },
                    whole,
                ] } },
                { "$project": {
                    "w": field("w"), "n": field("n"), "u": field("u"), "z": field("z"),
                } },
            ],
            "cursor": {},
            "maxTimeMS": super::steps::millis(self.peeker.limit).max(1),
        }
    }

    /// True when nobody has waited for some time, false when the stream has ended.
    async fn listen(&self, mut stream: Stream, idle: &mut Idle) -> bool {
        while stream.cursor != 0 {
            let command = rawdoc! {
                "getMore": stream.cursor,
                "collection": self.peeker.store.collection.as_str(),
                "maxTimeMS": super::steps::millis(AWAIT),
            };
            let asked = self.peeker.store.run_in(&mut stream.session, command);
            match timeout(AWAIT + GRACE, asked).await {
                Ok(Ok(answer)) => self.take_batch(&mut stream, &answer, "nextBatch"),
                Ok(Err(fault)) => {
                    tracing::debug!(error = %self.peeker.store.explain(&fault), "no more events");
                    return false;
                }
                // The connection is dropped with the question, so the next stream gets another.
                Err(_) => {
                    tracing::debug!("the change stream has gone silent");
                    return false;
                }
            }
            if self.is_idle(idle) {
                let command = rawdoc! {
                    "killCursors": self.peeker.store.collection.as_str(),
                    "cursors": [stream.cursor],
                };
                let _ = timeout(
                    self.peeker.limit,
                    self.peeker.store.run_in(&mut stream.session, command),
                )
                .await;
                return true;
            }
        }
        false
    }

    fn take_batch(&self, stream: &mut Stream, answer: &Document, batch: &str) {
        let Ok(cursor) = answer.get_document("cursor") else {
            stream.cursor = 0;
            return;
        };
        stream.cursor = cursor.get_i64("id").unwrap_or(0);
        for event in cursor.get_array(batch).into_iter().flatten() {
            if let Bson::Document(event) = event {
                self.deliver(event);
            }
        }
    }

    fn deliver(&self, event: &Document) {
        let peeker = &self.peeker;
        let word = |field: &str| {
            event.get_str(field).ok().and_then(|text| document::word(text, peeker.client))
        };
        if let Some((owner, Some(token))) = word("w") {
            peeker.waiting.granted(owner, token);
            peeker.wakeups.granted(owner, token);
        }
        if let Some((owner, None)) = word("n") {
            let at = |field: &str| {
                event.get_datetime(field).ok().map(|at: &DateTime| at.timestamp_millis())
            };
            let left = at("u").zip(at("z")).map(|(until, changed)| {
                Duration::from_millis(u64::try_from(until - changed).unwrap_or(0))
            });
            peeker.waiting.first_now(owner, left, Instant::now());
            peeker.look_around();
        }
    }
}

/// Since when nobody waits.
#[derive(Default)]
struct Idle {
    since: Option<Instant>,
}

impl Idle {
    fn is_over(&mut self, idle: bool, now: Instant) -> bool {
        if !idle {
            self.since = None;
            return false;
        }
        self.since.get_or_insert(now).until(now) >= KEPT
    }
}
