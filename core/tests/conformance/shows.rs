//! Judges what `inspect` shows.

use std::collections::{HashMap, HashSet};

use fencelock::{LockInfo, Token};
use serde_json::Value;

use crate::cases::{Object, array};
use crate::values::{text, texts_of, within};

/// An error that says what is different. What the backend does not know must be missing.
pub(crate) fn judge(
    unknown: &[&str],
    shows: &Object,
    info: &LockInfo,
    tokens: &HashMap<String, Token>,
) -> Result<(), String> {
    for (key, wanted) in shows {
        let wanted = if unknown.contains(&key.as_str()) { &Value::Null } else { wanted };
        let fine = match key.as_str() {
            "state" => wanted == info.state.as_str(),
            "owner" => match wanted.as_str() {
                Some("id") => info.owner.as_deref().is_some_and(is_id),
                _ => same_text(wanted, info.owner.as_deref())?,
            },
            "token" => match wanted.as_str() {
                Some(lease) => {
                    info.token == Some(*tokens.get(lease).ok_or(format!("no lease {lease}"))?)
                }
                None => wanted.is_null() && info.token.is_none(),
            },
            "metadata" => same_text(wanted, info.metadata.as_deref())?,
            "metadata_says" => {
                let found = info.metadata.as_deref().unwrap_or_default();
                texts_of(shows, key)?.iter().all(|part| found.contains(part))
            }
            "held_ms" | "ttl_left_ms" => {
                let found = if key == "held_ms" { info.held } else { info.ttl_left };
                match found {
                    Some(found) if !wanted.is_null() => {
                        within(key, found, wanted)?;
                        true
                    }
                    other => other.is_none() && wanted.is_null(),
                }
            }
            "queue_length" => wanted.as_u64() == Some(info.queue.len() as u64),
            "queue_metadata" => {
                let wanted = array(shows, key)?;
                let mut fine = wanted.len() == info.queue.len();
                for (wanted, waiter) in wanted.iter().zip(&info.queue) {
                    fine &= same_text(wanted, waiter.metadata.as_deref())?;
                }
                fine
            }
            "queue_owners" if wanted == "ids" => {
                let owners: HashSet<_> =
                    info.queue.iter().map(|w| &w.owner).chain(&info.owner).collect();
                let people = info.queue.len() + usize::from(info.owner.is_some());
                owners.len() == people && info.queue.iter().all(|w| is_id(&w.owner))
            }
            "queue_waiting_ms" => {
                for waiter in &info.queue {
                    within(key, waiter.waiting, wanted)?;
                }
                true
            }
            _ => return Err(format!("unknown key {key:?} or value {wanted} in shows")),
        };
        if !fine {
            return Err(format!("{key} is not {wanted} in {info:?}"));
        }
    }
    Ok(())
}

fn same_text(wanted: &Value, found: Option<&str>) -> Result<bool, String> {
    match (wanted, found) {
        (Value::Null, found) => Ok(found.is_none()),
        (wanted, Some(found)) => Ok(text(wanted)? == found),
        (wanted, None) => text(wanted).map(|_| false),
    }
}

fn is_id(owner: &str) -> bool {
    owner.len() == 32 && owner.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
