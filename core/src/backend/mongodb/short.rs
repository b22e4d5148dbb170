//! The short form of the steps, for a name that nobody else wants: a filter in place of most of
//! the pipeline. What it does not match goes to the full step, which also answers after a short
//! one whose answer was lost.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use mongodb::bson::{RawArrayBuf, RawBson, rawdoc};

use super::document::LAYOUT;
use super::fault::Fault;
use super::{Shared, document, steps};
use crate::backend::Place;
use crate::error::Result;
use crate::name::Name;
use crate::token::Token;

/// How many names are remembered. The table never grows; a name that lost its entry to another
/// takes the full step once.
const NAMES: usize = 4096;
/// The last bit of an entry: somebody else waited.
const MET: u64 = 1;

/// Whether this client's last turn on a name met nobody. A hint only: a wrong one costs a command
/// that matches nothing.
pub(super) struct Loneliness {
    hasher: RandomState,
    entries: Box<[AtomicU64]>,
}

impl Loneliness {
    pub(super) fn new() -> Self {
        let entries = (0..NAMES).map(|_| AtomicU64::new(0)).collect();
        Loneliness { hasher: RandomState::new(), entries }
    }

    pub(super) fn is(&self, name: &Name) -> bool {
        let (entry, mark) = self.entry(name);
        entry.load(Ordering::Relaxed) == mark
    }

    /// A turn on this name met somebody.
    pub(super) fn met(&self, name: &Name) {
        let (entry, mark) = self.entry(name);
        entry.store(mark | MET, Ordering::Relaxed);
    }

    /// A turn ended and left nobody waiting; it counts unless it met somebody before.
    pub(super) fn ended_alone(&self, name: &Name) {
        let (entry, mark) = self.entry(name);
        let next = if entry.load(Ordering::Relaxed) == mark | MET { 0 } else { mark };
        entry.store(next, Ordering::Relaxed);
    }

    fn entry(&self, name: &Name) -> (&AtomicU64, u64) {
        let hash = self.hasher.hash_one(name);
        // Not zero, which is an empty entry, and without the last bit.
        (&self.entries[hash as usize % NAMES], (hash | 1 << 63) & !MET)
    }
}

impl Shared {
    /// Takes the lock if it is free, nobody waits and nobody's end is on record.
    pub(super) async fn short_grant(&self, place: &Place) -> Result<Option<Token>, Fault> {
        let filter = rawdoc! {
            "_id": place.name.as_str(),
            "v": LAYOUT,
            "h": RawBson::Null,
            "q": {},
            "x": [],
            "t": { "$gt": 0_i64 },
        };
        let pipeline = steps::short_grant(place, self.client);
        let fields = rawdoc! { "v": 1, "t": 1 };
        let limit = self.limit(place.ttl);
        let Some(found) = self.store.step(filter, pipeline, false, fields, limit).await? else {
            return Ok(None);
        };
        // Of another name, by a collation: the full step says so.
        if document::check(&found, place.name.as_str()).is_err() {
            return Ok(None);
        }
        let token = found.get_i64("t").ok().and_then(|token| u64::try_from(token).ok());
        Ok(token.and_then(Token::new))
    }

    /// Releases the lease if it is ours and nobody waits; false if the full step has to find out.
    pub(super) async fn short_release(&self, place: &Place, token: Token) -> Result<bool, Fault> {
        let mut statements = RawArrayBuf::new();
        statements.push(rawdoc! {
            "q": {
                "_id": place.name.as_str(),
                "v": LAYOUT,
                "h.o": place.owner.to_string(),
                "t": token.get() as i64,
                "q": {},
                "$expr": { "$gt": ["$u", "$$NOW"] },
            },
            "u": steps::short_release(),
        });
        Ok(self.store.update(statements, self.limit(place.ttl)).await? == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g5_the_short_form_is_for_names_whose_last_turn_met_nobody() {
        let loneliness = Loneliness::new();
        let name = Name::new("n").unwrap();
        assert!(!loneliness.is(&name));
        loneliness.ended_alone(&name);
        assert!(loneliness.is(&name));
        loneliness.met(&name);
        assert!(!loneliness.is(&name));
        loneliness.ended_alone(&name);
        assert!(!loneliness.is(&name), "that turn met somebody");
        loneliness.ended_alone(&name);
        assert!(loneliness.is(&name));
        assert!(!loneliness.is(&Name::new("m").unwrap()));
    }
}
