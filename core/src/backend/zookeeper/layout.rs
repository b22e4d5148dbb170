//! What our nodes are called, by layout, and what stands in them.

use crate::backend::Place;
use crate::options::NodeLayout;
use crate::owner::OwnerId;

/// The version of what stands in a node.
const VERSION: &str = "fl1";

/// What a node of ours is called before the server appends its number.
pub(super) fn prefix(layout: NodeLayout, owner: OwnerId) -> String {
    match layout {
        NodeLayout::Curator => format!("_c_{owner}-lock-"),
        NodeLayout::Kazoo => format!("{owner}__lock__"),
        NodeLayout::Plain => String::new(),
    }
}

/// What stands in a node of ours. It is never changed: that would wake the contender behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) owner: OwnerId,
    pub(super) text: String,
}

impl Note {
    pub(super) fn of(place: &Place) -> Vec<u8> {
        let ttl = place.ttl.as_millis();
        format!("{VERSION} {} {ttl} {}", place.owner, place.metadata).into_bytes()
    }

    /// None if a foreign client, or a later version of this library, wrote it.
    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let mut fields = std::str::from_utf8(data).ok()?.splitn(4, ' ');
        if fields.next()? != VERSION {
            return None;
        }
        let owner = fields.next()?.parse().ok()?;
        let _ttl: u64 = fields.next()?.parse().ok()?;
        Some(Note { owner, text: fields.next()?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::name::Name;

    #[test]
    fn g6_a_note_comes_back_and_foreign_data_is_none() {
        let place = Place {
            owner: OwnerId::random(),
            name: Name::new("a").unwrap(),
            ttl: Duration::from_secs(30),
            metadata: "host=a pid=1 lang=rust".into(),
        };
        let note = Note::parse(&Note::of(&place)).unwrap();
        assert_eq!(note, Note { owner: place.owner, text: "host=a pid=1 lang=rust".to_owned() });
        for foreign in [&b""[..], b"192.168.0.1", b"\xff", b"fl2 x", b"fl1 short 1 x"] {
            assert_eq!(Note::parse(foreign), None);
        }
    }

    #[test]
    fn g1_each_layout_ends_as_its_fleet_expects() {
        let owner = OwnerId::random();
        assert_eq!(prefix(NodeLayout::Curator, owner), format!("_c_{owner}-lock-"));
        assert_eq!(prefix(NodeLayout::Kazoo, owner), format!("{owner}__lock__"));
        assert_eq!(prefix(NodeLayout::Plain, owner), "");
    }
}
