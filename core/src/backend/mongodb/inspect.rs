//! What is known of locks: for people and tools, never for decisions.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, DateTime, Document, RawBson, RawDocumentBuf, rawdoc};

use super::document::{self, LAYOUT};
use super::fault::Fault;
use super::{Shared, steps};
use crate::error::{Error, Result};
use crate::info::{LockInfo, LockState, WaiterInfo};
use crate::name::Name;
use crate::token::Token;

/// How much of a foreign document is shown.
const SHOWN_CHARS: usize = 1024;
const SHOWN_WAITERS: usize = 1000;
const BATCH: i32 = 500;

/// A document, and the server's time when it was read.
struct Known<'a> {
    document: &'a Document,
    now: i64,
}

impl Shared {
    pub(super) async fn inspect(&self, name: &Name) -> Result<LockInfo> {
        let Some(row) = self.find(name).await? else {
            return Ok(free(name.as_str()));
        };
        let known = self.known(&row)?;
        match document::check_whole(known.document, name.as_str()) {
            Ok(()) => Ok(known.info(name.as_str())),
            Err(error) if error.kind() == crate::ErrorKind::Unsupported => Err(error),
            Err(_) => Ok(known.foreign(name.as_str())),
        }
    }

    /// Held locks, and those that are waited for.
    pub(super) async fn list(&self) -> Result<Vec<LockInfo>> {
        let command = rawdoc! {
            "aggregate": self.store.collection.as_str(),
            "pipeline": [
                { "$match": {
                    "v": LAYOUT,
                    "_id": { "$type": "string" },
                    "$or": [{ "h": { "$ne": RawBson::Null } }, { "n": { "$ne": "" } }],
                } },
                with_server_time(),
            ],
            "cursor": { "batchSize": BATCH },
            "readConcern": { "level": "majority" },
        };
        let mut infos = Vec::new();
        let explain = |error: mongodb::error::Error| self.store.explain(&Fault::from(error));
        let listing = self.store.database.run_raw_cursor_command(command).await;
        let mut rows = listing.map_err(explain)?;
        while let Some(row) = rows.try_next().await.map_err(explain)? {
            let known = self.known(&row)?;
            let Ok(name) = known.document.get_str("_id") else { continue };
            if document::check_whole(known.document, name).is_err() {
                continue;
            }
            let info = known.info(name);
            if info.state == LockState::Held || !info.queue.is_empty() {
                infos.push(info);
            }
        }
        Ok(infos)
    }

    pub(super) async fn force_release(&self, name: &Name) -> Result<bool> {
        // The lease that is there now, and once more if it changes in between.
        for _ in 0..2 {
            let Some(row) = self.find(name).await? else {
                return Ok(false);
            };
            let known = self.known(&row)?;
            document::check_whole(known.document, name.as_str())?;
            let info = known.info(name.as_str());
            let (Some(owner), Some(token)) = (info.owner, info.token) else {
                return Ok(false);
            };
            let filter = rawdoc! {
                "_id": name.as_str(),
                "v": LAYOUT,
                "h.o": owner,
                "t": token.get() as i64,
            };
            let pipeline = steps::force_release(self.client);
            let fields = rawdoc! { "_id": 1 };
            let step = self.store.step(filter, pipeline, false, fields, self.request_timeout);
            if step.await.map_err(|fault| self.store.explain(&fault))?.is_some() {
                return Ok(true);
            }
        }
        Err(Error::unavailable(
            "the lock changed hands meanwhile; nothing was released, look again",
        ))
    }

    async fn find(&self, name: &Name) -> Result<Option<Document>> {
        let command = rawdoc! {
            "aggregate": self.store.collection.as_str(),
            "pipeline": [{ "$match": { "_id": name.as_str() } }, with_server_time()],
            "cursor": {},
            "readConcern": { "level": "majority" },
            "maxTimeMS": steps::millis(self.request_timeout).max(1),
        };
        let answer = self.store.run(command).await.map_err(|fault| self.store.explain(&fault))?;
        let batch = answer.get_document("cursor").and_then(|c| c.get_array("firstBatch"));
        let rows = batch.map_err(|_| self.store.server.unexpected("an inspection"))?;
        Ok(rows.first().and_then(Bson::as_document).cloned())
    }

    fn known<'a>(&self, row: &'a Document) -> Result<Known<'a>> {
        match (row.get_document("document"), row.get_datetime("now")) {
            (Ok(document), Ok(now)) => Ok(Known { document, now: now.timestamp_millis() }),
            _ => Err(self.store.server.unexpected("an inspection")),
        }
    }
}

/// The document as it is: what is shown is worked out here, where no shape of it can fail.
fn with_server_time() -> RawDocumentBuf {
    rawdoc! { "$project": { "document": "$$ROOT", "now": "$$NOW" } }
}

fn free(name: &str) -> LockInfo {
    LockInfo {
        name: name.to_owned(),
        state: LockState::Free,
        owner: None,
        token: None,
        held: None,
        ttl_left: None,
        metadata: None,
        queue: Vec::new(),
    }
}

impl Known<'_> {
    fn info(&self, name: &str) -> LockInfo {
        let mut info = LockInfo { queue: self.waiters(), ..free(name) };
        let until = self.document.get_datetime("u").map_or(0, |until| until.timestamp_millis());
        if let Ok(holder) = self.document.get_document("h")
            && until > self.now
        {
            let token = self.document.get_i64("t").ok().and_then(|t| u64::try_from(t).ok());
            info.state = LockState::Held;
            info.owner = text(holder, "o");
            info.token = token.and_then(Token::new);
            info.held = self.since(holder.get_datetime("a").ok());
            info.ttl_left = Some(span(until - self.now));
            info.metadata = text(holder, "m");
        }
        info
    }

    fn foreign(&self, name: &str) -> LockInfo {
        let shown = self.document.to_string().chars().take(SHOWN_CHARS).collect();
        LockInfo { state: LockState::Foreign, owner: Some(shown), ..free(name) }
    }

    fn waiters(&self) -> Vec<WaiterInfo> {
        let Ok(queue) = self.document.get_document("q") else {
            return Vec::new();
        };
        let waiter = |(key, entry): (&String, &Bson)| {
            let entry = entry.as_document()?;
            Some(WaiterInfo {
                owner: key.strip_prefix('o')?.to_owned(),
                waiting: self.since(entry.get_datetime("e").ok())?,
                metadata: text(entry, "m"),
            })
        };
        queue.iter().filter_map(waiter).take(SHOWN_WAITERS).collect()
    }

    fn since(&self, at: Option<&DateTime>) -> Option<Duration> {
        at.map(|at| span(self.now - at.timestamp_millis()))
    }
}

fn text(document: &Document, field: &str) -> Option<String> {
    document.get_str(field).ok().map(str::to_owned)
}

fn span(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
