//! The index by which the server deletes documents that nobody has used for a day. Hygiene only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mongodb::bson::rawdoc;

use super::document::LAYOUT;
use super::store::Store;

/// Makes the index once per client, in the background. It may fail, for want of rights for
/// instance, or wait for a member that is down: nothing depends on it.
#[derive(Default)]
pub(super) struct Index {
    begun: AtomicBool,
}

impl Index {
    pub(super) fn start(&self, store: &Arc<Store>) {
        if self.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let store = store.clone();
        drop(tokio::spawn(async move {
            let made = store.run(rawdoc! {
                "createIndexes": store.collection.as_str(),
                "indexes": [{
                    "key": { "purge": 1 },
                    "name": "fencelock_purge",
                    "expireAfterSeconds": 0,
                    // Not a document of somebody else's that has a date of this name.
                    "partialFilterExpression": { "v": LAYOUT, "t": { "$type": "long" } },
                }],
            });
            if let Err(fault) = made.await {
                tracing::debug!(error = %store.explain(&fault), "no index for the purge date");
            }
        }));
    }
}
