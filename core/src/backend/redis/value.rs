//! Owner values: what a lock key holds, and the member that a contender is in the queue.
//!
//! `fl1:<32 hex owner id>:<16 hex client id>:<ttl ms>[:text for people]`. The hand-off script
//! reads the channel and the claim window out of it, so nothing else is stored per contender.
//! `shape` in `lua/common.lua` must agree with [`Value::of`].

use std::fmt::Write;

use crate::backend::Place;
use crate::owner::{ClientId, OwnerId};

/// Bytes before the text: `fl1:` + 32 + `:` + 16 + `:` + at most 8 digits (24 h) + `:`.
const HEAD: usize = 4 + 32 + 1 + 16 + 1 + 8 + 1;

/// The owner value of a place.
pub(super) fn owner_value(place: &Place, client: ClientId) -> String {
    let text = &*place.metadata;
    let mut value = String::with_capacity(HEAD + text.len());
    // Writing to a string does not fail.
    let _ = write!(value, "fl1:{}:{client}:{}:{text}", place.owner, place.ttl.as_millis());
    value
}

/// The value of a lock key, by its shape.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A lease of this layout.
    Ours { owner: OwnerId, text: Option<&'a str> },
    /// A lease of a layout that this version does not know.
    Newer,
    /// Anything else: a client of another kind holds the lock.
    Foreign,
}

impl<'a> Value<'a> {
    pub(super) fn of(value: &'a [u8]) -> Self {
        let Some(layout) = value.strip_prefix(b"fl") else {
            return Value::Foreign;
        };
        let digits = layout.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || layout.get(digits) != Some(&b':') {
            return Value::Foreign;
        }
        match Self::ours(value) {
            Some(ours) => ours,
            None if layout.starts_with(b"1:") => Value::Foreign,
            None => Value::Newer,
        }
    }

    fn ours(value: &'a [u8]) -> Option<Self> {
        // Text that is not UTF-8 makes no lease of ours; the writer puts only valid text there.
        let value = std::str::from_utf8(value).ok()?.strip_prefix("fl1:")?;
        let (owner, rest) = value.split_once(':')?;
        let (client, rest) = rest.split_once(':')?;
        let (ttl, text) = match rest.split_once(':') {
            Some((ttl, text)) => (ttl, Some(text)),
            None => (rest, None),
        };
        let hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
        if client.len() != 16 || !hex(client) {
            return None;
        }
        if ttl.is_empty() || !ttl.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Value::Ours { owner: owner.parse().ok()?, text })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::name::Name;

    fn place(metadata: &str) -> Place {
        Place {
            owner: OwnerId::random(),
            name: Name::new("n").unwrap(),
            ttl: Duration::from_millis(86_400_000),
            metadata: Arc::from(metadata),
        }
    }

    #[test]
    fn g6_an_owner_value_comes_back_from_its_text() {
        for text in ["", "host=a pid=1", "a:b:c", "🔒 é"] {
            let place = place(text);
            let value = owner_value(&place, ClientId::random());
            assert!(value.len() <= HEAD + text.len());
            let expected = Value::Ours { owner: place.owner, text: Some(text) };
            assert_eq!(Value::of(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn g1_values_of_another_shape_are_foreign_and_other_layouts_are_newer() {
        let ours = owner_value(&place(""), ClientId::random());
        let foreign = [
            "",
            "1",
            "fl",
            "fl:",
            "fl1",
            "flock",
            "fl1:",
            "fl1:x:y:z",
            "fl1:0:0:0",
            "d7cf2f08-6b7e-4c35-8a0e-2a3f5b1d9c11",
            &ours[..ours.len() - 9],
            &format!(" {ours}"),
            &format!("{}x", ours.trim_end_matches(':')),
        ];
        for value in foreign {
            assert_eq!(Value::of(value.as_bytes()), Value::Foreign, "{value}");
        }
        assert_eq!(Value::of(b"fl1:\xff"), Value::Foreign);
        for value in ["fl2:", "fl12:abc", "fl0:x"] {
            assert_eq!(Value::of(value.as_bytes()), Value::Newer, "{value}");
        }
    }
}
