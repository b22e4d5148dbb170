//! Renewals: many leases in one command.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use mongodb::bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

use super::document::LAYOUT;
use super::{Shared, steps};
use crate::backend::{Renewal, Renewed};
use crate::error::Result;
use crate::period::Term;

/// How many leases go in one command.
pub(super) const BATCH: usize = 500;
/// How many commands of one renewal are under way at once: few enough that an acquire finds a
/// connection free.
const UNDER_WAY: usize = 16;
/// Into how many parts a batch is cut in which some lease is not ours.
const PARTS: usize = 8;

type Renewing = Pin<Box<dyn Future<Output = Vec<Result<Renewed>>> + Send>>;

impl Shared {
    /// The server says how many it found, not which. So a batch that is not complete is asked for
    /// again in smaller parts, down to single leases; a renewal sent twice has the effect of one.
    pub(super) fn renew(self: Arc<Self>, leases: Vec<Renewal>) -> Renewing {
        Box::pin(async move {
            if leases.len() > BATCH {
                return self.renew_parts(&leases, BATCH).await;
            }
            let statements: RawArrayBuf = leases.iter().map(statement).collect();
            let shortest = leases.iter().map(|lease| lease.place.ttl).min().unwrap_or_default();
            match self.store.update(statements, self.limit(shortest)).await {
                Ok(found) if found >= leases.len() => {
                    leases.iter().map(|_| Ok(Renewed::Ours(Term::FullTtl))).collect()
                }
                Ok(_) if leases.len() == 1 => vec![Ok(Renewed::NotOurs)],
                Ok(_) => self.renew_parts(&leases, leases.len().div_ceil(PARTS)).await,
                Err(fault) => leases.iter().map(|_| Err(self.store.explain(&fault))).collect(),
            }
        })
    }

    async fn renew_parts(self: Arc<Self>, leases: &[Renewal], size: usize) -> Vec<Result<Renewed>> {
        let parts: Vec<_> = leases.chunks(size).map(<[Renewal]>::to_vec).collect();
        let results = stream::iter(parts).map(|part| self.clone().renew(part)).buffered(UNDER_WAY);
        results.flat_map(stream::iter).collect().await
    }
}

/// Never re-creates what is gone: it updates a lease of this owner id and token, whose time is
/// not over, or nothing.
fn statement(lease: &Renewal) -> RawDocumentBuf {
    let Renewal { place, token } = lease;
    rawdoc! {
        "q": {
            "_id": place.name.as_str(),
            "v": LAYOUT,
            "h.o": place.owner.to_string(),
            "t": token.get() as i64,
            "$expr": { "$gt": ["$u", "$$NOW"] },
        },
        "u": steps::renew(place.ttl),
    }
}
