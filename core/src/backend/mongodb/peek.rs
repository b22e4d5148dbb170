//! Reads that say whether a look is worth its write. Hints only: what they show may be undone.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mongodb::bson::{Bson, Document, RawArrayBuf, RawBson, rawdoc};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::document;
use super::fault::Fault;
use super::store::Store;
use super::waiting::{Peeked, Waiting};
use crate::clock::Instant;
use crate::name::Name;
use crate::owner::ClientId;
use crate::wakeups::Wakeups;

/// Where nothing tells us of a hand-off, reads go on from the shorter pause to the longer one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
/// After a read that failed.
const AFTER_FAULT: Duration = Duration::from_millis(250);
/// How many names go in one command.
const NAMES: usize = 1000;

pub(super) struct Peeker {
    pub(super) store: Arc<Store>,
    pub(super) waiting: Arc<Waiting>,
    pub(super) wakeups: Arc<Wakeups>,
    pub(super) client: ClientId,
    pub(super) limit: Duration,
    /// Nothing tells us of a hand-off: reads have to find it.
    pub(super) polling: AtomicBool,
    all_wanted: AtomicBool,
    changed: Notify,
}

impl Peeker {
    pub(super) fn new(
        store: Arc<Store>,
        waiting: Arc<Waiting>,
        wakeups: Arc<Wakeups>,
        client: ClientId,
        limit: Duration,
    ) -> Self {
        Peeker {
            store,
            waiting,
            wakeups,
            client,
            limit,
            polling: AtomicBool::new(false),
            all_wanted: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Hand-offs may have been missed: every name that is waited for is read.
    pub(super) fn peek_all(&self) {
        self.all_wanted.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// When the next read is due may have changed.
    pub(super) fn look_around(&self) {
        self.changed.notify_one();
    }

    /// Runs for as long as somebody waits.
    pub(super) async fn run(&self) {
        let mut pause = PAUSES.0;
        loop {
            let polling = self.polling.load(Ordering::Acquire);
            let wait =
                if polling { pause } else { Instant::now().until(self.waiting.next_check()) };
            tokio::select! {
                () = sleep(wait) => pause = (pause * 3 / 2).min(PAUSES.1),
                () = self.changed.notified() => {
                    pause = PAUSES.0;
                    // Somebody began to wait: that alone is nothing to read.
                    if !self.all_wanted.load(Ordering::Acquire) {
                        continue;
                    }
                }
            }
            let all = self.all_wanted.swap(false, Ordering::AcqRel) || polling;
            let names = self.waiting.names((!all).then(Instant::now));
            for names in names.chunks(NAMES) {
                if self.peek(names).await {
                    pause = PAUSES.0;
                }
            }
        }
    }

    /// True if somebody shall look.
    async fn peek(&self, names: &[Name]) -> bool {
        let rows = match timeout(self.limit, self.read(names)).await {
            Ok(Ok(rows)) => rows,
            Ok(Err(fault)) => {
                tracing::debug!(error = %self.store.explain(&fault), "cannot read who holds");
                self.waiting.postpone(names, Instant::now().plus(AFTER_FAULT));
                return false;
            }
            Err(_) => {
                self.waiting.postpone(names, Instant::now().plus(AFTER_FAULT));
                return false;
            }
        };
        let looks = self.waiting.judge(names, &rows, Instant::now());
        for &owner in &looks {
            self.wakeups.look(owner);
        }
        !looks.is_empty()
    }

    async fn read(&self, names: &[Name]) -> Result<HashMap<String, Peeked>, Fault> {
        let ids: RawArrayBuf = names.iter().map(Name::as_str).collect();
        let is_date = rawdoc! { "$eq": [{ "$type": "$u" }, "date"] };
        let answer = self
            .store
            .run(rawdoc! {
                "aggregate": self.store.collection.as_str(),
                "pipeline": [
                    { "$match": { "_id": { "$in": ids } } },
                    { "$project": {
                        "o": "$h.o",
                        "n": 1,
                        // A document of somebody else's may have anything there.
                        "left": { "$cond": [
                            is_date,
                            { "$subtract": ["$u", "$$NOW"] },
                            RawBson::Null,
                        ] },
                    } },
                ],
                "cursor": { "batchSize": NAMES as i32 },
                "maxTimeMS": super::steps::millis(self.limit).max(1),
            })
            .await?;
        let rows = answer.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
        Ok(rows.map_or_else(
            |_| HashMap::new(),
            |rows| {
                rows.iter().filter_map(Bson::as_document).filter_map(|row| self.row(row)).collect()
            },
        ))
    }

    fn row(&self, row: &Document) -> Option<(String, Peeked)> {
        let name = row.get_str("_id").ok()?.to_owned();
        let first = row.get_str("n").ok().and_then(|text| document::word(text, self.client));
        let peeked = Peeked {
            holder: row.get_str("o").ok().and_then(|owner| owner.parse().ok()),
            first: first.map(|(owner, _)| owner),
            left: row.get_i64("left").unwrap_or(i64::MIN / 2),
        };
        Some((name, peeked))
    }
}
