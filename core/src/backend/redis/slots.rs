//! Which node of a cluster has which slot, as one of its nodes told.

use redis::Value;

use super::keys::SLOTS;
use super::replies::{bytes, unsigned};

/// Host and port.
pub(super) type Address = (String, u16);

/// Nobody.
const NONE: u16 = u16::MAX;

/// The nodes, numbered, and the number of each slot's primary.
#[derive(Default)]
pub(super) struct Layout {
    nodes: Vec<Address>,
    /// Empty or one for each slot.
    owners: Vec<u16>,
}

impl Layout {
    /// The answer to CLUSTER SLOTS: for each range its first and last slot and its nodes, the
    /// primary first. A node without a known host is at the host that was asked.
    pub(super) fn of(reply: &Value, asked: &Address) -> Option<Self> {
        let Value::Array(ranges) = reply else {
            return None;
        };
        let mut layout = Layout::default();
        for range in ranges {
            let Value::Array(fields) = range else { return None };
            let [first, last, nodes @ ..] = fields.as_slice() else { return None };
            let (first, last) = (unsigned(first)?, unsigned(last)?);
            for (n, node) in nodes.iter().enumerate() {
                let number = layout.add(address(node, asked)?);
                if n == 0 {
                    for slot in first..=last.min(u64::from(SLOTS) - 1) {
                        layout.set_owner(slot as u16, number);
                    }
                }
            }
        }
        Some(layout)
    }

    /// All nodes that were heard of, replicas too.
    pub(super) fn nodes(&self) -> &[Address] {
        &self.nodes
    }

    pub(super) fn number(&self, node: &Address) -> Option<usize> {
        self.nodes.iter().position(|known| known == node)
    }

    /// The number of this node, which need not be known yet.
    pub(super) fn add(&mut self, node: Address) -> usize {
        self.number(&node).unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        })
    }

    pub(super) fn owner(&self, slot: u16) -> Option<usize> {
        self.owners.get(usize::from(slot)).filter(|&&n| n != NONE).map(|&n| usize::from(n))
    }

    pub(super) fn set_owner(&mut self, slot: u16, node: usize) {
        if self.owners.is_empty() {
            self.owners = vec![NONE; usize::from(SLOTS)];
        }
        self.owners[usize::from(slot)] = u16::try_from(node).unwrap_or(NONE);
    }

    /// Each node that has slots, with the first of them.
    pub(super) fn masters(&self) -> Vec<(usize, u16)> {
        let mut masters: Vec<(usize, u16)> = Vec::new();
        for slot in 0..SLOTS {
            if let Some(node) = self.owner(slot)
                && !masters.iter().any(|(known, _)| *known == node)
            {
                masters.push((node, slot));
            }
        }
        masters
    }
}

fn address(node: &Value, asked: &Address) -> Option<Address> {
    let Value::Array(fields) = node else {
        return None;
    };
    let [host, port, ..] = fields.as_slice() else {
        return None;
    };
    let host = bytes(host).and_then(|host| std::str::from_utf8(host).ok()).unwrap_or_default();
    let host = if matches!(host, "" | "?") { &asked.0 } else { host };
    Some((host.to_owned(), u16::try_from(unsigned(port)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())])
    }

    fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
    }

    #[test]
    fn a_layout_has_primaries_holes_and_nodes_that_do_not_know_their_host() {
        let text = |host: &str| Value::BulkString(host.into());
        let reply = Value::Array(vec![
            range(0, 5, vec![node(text("a"), 1), node(text("r"), 2)]),
            range(7, 16_383, vec![node(text(""), 3)]),
            range(6, 6, vec![node(Value::Nil, 4)]),
        ]);
        let layout = Layout::of(&reply, &("asked".to_owned(), 9)).unwrap();
        let owner = |slot| layout.owner(slot).map(|n| layout.nodes()[n].clone());
        assert_eq!(owner(5), Some(("a".to_owned(), 1)));
        assert_eq!(owner(16_383), Some(("asked".to_owned(), 3)));
        assert_eq!(owner(6), Some(("asked".to_owned(), 4)));
        let masters: Vec<_> = layout.masters().into_iter().map(|(_, slot)| slot).collect();
        assert_eq!(masters, [0, 6, 7]);
        assert_eq!(layout.nodes().len(), 4);
        assert!(Layout::of(&Value::Nil, &("x".to_owned(), 1)).is_none());
        assert_eq!(Layout::default().owner(3), None);
    }
}
