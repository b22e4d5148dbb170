//! The document of a name, and what the answers of the steps say.
//!
//! | field | content |
//! |---|---|
//! | `_id` | the name |
//! | `v` | the layout, 1 |
//! | `t` | the last token given; 0 = none yet |
//! | `f` | `H`: that grant is not released; `R`: it was |
//! | `l` | the newest token known to have ended without release |
//! | `h` | the holder: owner `o`, client `c`, `ttl`, granted at `a`, metadata `m`; `k` is `hand` after a hand-off that nobody confirmed yet, else `own` |
//! | `u` | until when the lease lasts; in the past = free, whatever `h` says |
//! | `q` | the queue, in the order of service: `o<owner>` → client `c`, `ttl`, last sign of life `s`, enqueued at `e`, metadata `m`. A document and not an array, because taking the head off an array writes all that follow |
//! | `n` | `client:owner` of the first in the queue |
//! | `w` | `client:owner:token` of the last hand-off |
//! | `x` | owner ids that never come back, each for two minutes |
//! | `z` | when it was last changed |
//! | `purge` | when it may be deleted |

use std::time::Duration;

use mongodb::bson::{Bson, Document, RawDocumentBuf, rawdoc};

use super::steps;
use crate::backend::{Look, Mode, Place, Queued, Verdict};
use crate::error::{Error, ErrorKind, Result};
use crate::owner::{ClientId, OwnerId};
use crate::period::Term;
use crate::token::Token;

/// The version of the layout.
pub(super) const LAYOUT: i32 = 1;

/// What came of a look, and what the backend itself wants to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    pub(super) look: Look,
    /// What is left of the holder's time.
    pub(super) left: Duration,
}

/// What came of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) verdict: Verdict,
    /// The lock is free and nobody waits.
    pub(super) alone: bool,
}

/// The fields that the answer to a look needs; of the queue just the one entry.
pub(super) fn look_fields(owner: OwnerId) -> RawDocumentBuf {
    let mut fields = rawdoc! { "v": 1, "t": 1, "h.o": 1, "u": 1, "z": 1, "n": 1 };
    let own = format!("q.{}", steps::key(owner));
    if let Ok(path) = mongodb::bson::raw::CString::try_from(own) {
        fields.append(path, 1);
    }
    fields
}

pub(super) fn release_fields() -> RawDocumentBuf {
    // Of the queue nothing but that there is one.
    rawdoc! { "v": 1, "t": 1, "f": 1, "l": 1, "h.o": 1, "u": 1, "n": 1, "q.none": 1 }
}

pub(super) fn looked(
    answer: Option<&Document>,
    place: &Place,
    client: ClientId,
    mode: Mode,
) -> Result<Looked> {
    let without_a_place = match mode {
        Mode::Try => Look::Busy,
        Mode::Again => Look::Gone,
        // Who never had a place cannot have lost it, so there was no room.
        Mode::Intro => Look::Full,
    };
    let Some(document) = answer else {
        return Ok(Looked { look: without_a_place, left: Duration::ZERO });
    };
    check(document, place.name.as_str())?;
    parse_looked(document, place, client, without_a_place).ok_or_else(foreign)
}

fn parse_looked(
    document: &Document,
    place: &Place,
    client: ClientId,
    without_a_place: Look,
) -> Option<Looked> {
    let token = u64::try_from(document.get_i64("t").ok()?).ok()?;
    let first = document.get_str("n").ok()?;
    let until = document.get_datetime("u").ok()?;
    let changed = document.get_datetime("z").ok()?;
    let left = until.timestamp_millis().saturating_sub(changed.timestamp_millis());
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    let owner = place.owner.to_string();
    let look = if holder(document) == Some(owner.as_str()) {
        Look::Granted(Token::new(token)?, Term::FullTtl)
    } else if document.get_document("q").ok()?.contains_key(steps::key(place.owner)) {
        Look::Queued(Queued {
            // The backend watches the holder's time by itself, with reads: a look is a write.
            remaining: None,
            floor: token + 1,
            first: first == format!("{client}:{owner}"),
            foreign: false,
        })
    } else {
        without_a_place
    };
    Some(Looked { look, left })
}

/// What became of the lease with this token, judged by the document *after* the release, so that
/// a release that is sent again is told the same.
pub(super) fn ended(answer: Option<&Document>, name: &str, token: Option<Token>) -> Result<Ended> {
    let Some(document) = answer else {
        return Ok(Ended { verdict: Verdict::Unknown, alone: false });
    };
    check(document, name)?;
    parse_ended(document, token.map_or(0, Token::get)).ok_or_else(foreign)
}

fn parse_ended(document: &Document, token: u64) -> Option<Ended> {
    let last = u64::try_from(document.get_i64("t").ok()?).ok()?;
    let lost = u64::try_from(document.get_i64("l").ok()?).ok()?;
    let released = document.get_str("f").ok()? == "R";
    document.get_document("q").ok()?;
    document.get_datetime("u").ok()?;
    let verdict = if last == 0 || token > last {
        Verdict::Unknown
    } else if token == last {
        if released { Verdict::Released } else { Verdict::Lost }
    } else {
        match token.cmp(&lost) {
            std::cmp::Ordering::Greater => Verdict::Released,
            std::cmp::Ordering::Equal => Verdict::Lost,
            std::cmp::Ordering::Less => Verdict::Unknown,
        }
    };
    let alone = holder(document).is_none() && document.get_str("n").is_ok_and(str::is_empty);
    Some(Ended { verdict, alone })
}

fn holder(document: &Document) -> Option<&str> {
    document.get_document("h").ok()?.get_str("o").ok()
}

/// Whether the document is one of ours, of this layout and of this very name.
pub(super) fn check(document: &Document, name: &str) -> Result<()> {
    match document.get("v").and_then(number) {
        Some(version) if version == f64::from(LAYOUT) => {}
        Some(version) if version > f64::from(LAYOUT) && version.fract() == 0.0 => {
            return Err(newer_layout());
        }
        _ => return Err(foreign()),
    }
    if document.get_str("_id").is_ok_and(|id| id == name) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Conflict,
        "the collection has a collation for which this name is another one; give locks a collection without collation",
    ))
}

/// The same of a document that was read whole: each field that a step relies on is there.
pub(super) fn check_whole(document: &Document, name: &str) -> Result<()> {
    check(document, name)?;
    let has_its_shape = document.get_i64("t").is_ok()
        && document.get_datetime("u").is_ok()
        && document.get_document("q").is_ok()
        && document.get_array("x").is_ok()
        && matches!(document.get("h"), Some(Bson::Document(_) | Bson::Null));
    if has_its_shape { Ok(()) } else { Err(foreign()) }
}

pub(super) fn newer_layout() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "a newer version of fencelock, with another layout, uses this name; update this one",
    )
}

pub(super) fn foreign() -> Error {
    Error::new(
        ErrorKind::Conflict,
        "a document that is no lock of this library stands under this name; it was left untouched",
    )
}

fn number(value: &Bson) -> Option<f64> {
    match *value {
        Bson::Int32(number) => Some(f64::from(number)),
        Bson::Int64(number) => Some(number as f64),
        Bson::Double(number) => Some(number),
        _ => None,
    }
}

/// `client:owner` or `client:owner:token`, if it is this client's.
pub(super) fn word(text: &str, client: ClientId) -> Option<(OwnerId, Option<u64>)> {
    let mut parts = text.split(':');
    if parts.next()? != client.to_string() {
        return None;
    }
    let owner = parts.next()?.parse().ok()?;
    match parts.next() {
        None => Some((owner, None)),
        Some(token) => Some((owner, Some(token.parse().ok()?))),
    }
}
