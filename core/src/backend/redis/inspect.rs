//! What is known of locks: for people and tools, never for decisions.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::{Cmd, Value, from_redis_value};

use super::link::Link;
use super::replies::{bytes, newer_layout, remaining_time, unsigned};
use super::value;
use super::{BATCH, Route, Shared, scripts};
use crate::error::Result;
use crate::info::{LockInfo, LockState, WaiterInfo};
use crate::name::Name;
use crate::token::Token;

/// How much of a foreign value is shown. Values of ours are shorter.
const SHOWN_BYTES: usize = 1024;
const SHOWN_WAITERS: usize = 1000;
/// How many keys the server looks at in one step of a list.
const SCAN_STEP: usize = 500;

impl Shared {
    pub(super) async fn inspect(&self, name: &Name) -> Result<LockInfo> {
        let (call, slot) = self.inspection(name);
        let reply = self.run(&scripts::INSPECT, &call, slot).await?;
        let known = Known::of(&reply).ok_or_else(|| self.server.unexpected("an inspection"))?;
        if known.is_newer() {
            return Err(newer_layout());
        }
        Ok(known.info(name))
    }

    /// Held locks, and those that are waited for. With an empty prefix every string key could be
    /// a foreign lock, so then only names that this library uses are shown.
    pub(super) async fn list(&self) -> Result<Vec<LockInfo>> {
        let names: Vec<Name> = self.names().await?.into_iter().collect();
        let mut infos = Vec::new();
        for batch in names.chunks(BATCH) {
            let mut inspections = self.batch(batch.len());
            for name in batch {
                let (call, slot) = self.inspection(name);
                self.add(&mut inspections, call, slot);
            }
            let replies = self.run_all(&scripts::INSPECT, &inspections, None).await;
            for (name, reply) in batch.iter().zip(replies) {
                let reply = match reply {
                    Ok(reply) => reply,
                    // A list, a hash …, whose key only begins like one of ours.
                    Err(fault) if fault.is_wrong_type() => continue,
                    Err(fault) => return Err(self.server.explain(&fault)),
                };
                let known =
                    Known::of(&reply).ok_or_else(|| self.server.unexpected("an inspection"))?;
                let info = known.info(name);
                let shown = match info.state {
                    LockState::Held => true,
                    LockState::Foreign => !self.prefix.is_empty() || !info.queue.is_empty(),
                    LockState::Free => !info.queue.is_empty(),
                };
                if shown {
                    infos.push(info);
                }
            }
        }
        Ok(infos)
    }

    /// The names of all lock keys and queues, of all nodes of a cluster.
    async fn names(&self) -> Result<BTreeSet<Name>> {
        let mut names = BTreeSet::new();
        match &self.route {
            Route::One(link) => self.scan(link, &mut names).await?,
            Route::Cluster(cluster) => {
                let masters = cluster.masters().await;
                for (link, _) in masters.map_err(|fault| self.server.explain(&fault))? {
                    self.scan(&link, &mut names).await?;
                }
            }
        }
        Ok(names)
    }

    /// SCAN may show a key twice, and may miss one that came while it went on.
    async fn scan(&self, link: &Link, names: &mut BTreeSet<Name>) -> Result<()> {
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(self.prefix.glob()).arg("COUNT").arg(SCAN_STEP);
            let reply = link.send(&scan).await.map_err(|fault| self.server.explain(&fault))?;
            let (next, keys): (String, Vec<Vec<u8>>) =
                from_redis_value(reply).map_err(|_| self.server.unexpected("SCAN"))?;
            names.extend(keys.iter().filter_map(|key| self.prefix.name_of(key)));
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    fn inspection(&self, name: &Name) -> (Cmd, u16) {
        let keys = self.prefix.keys(name);
        let mut call = scripts::INSPECT.call(3);
        call.arg(&keys.lock).arg(keys.queue()).arg(keys.record());
        call.arg(SHOWN_BYTES).arg(SHOWN_WAITERS);
        (call, keys.slot)
    }
}

/// The answer of `lua/inspect.lua`.
struct Known<'a> {
    value: Option<&'a [u8]>,
    remaining: Option<Duration>,
    token: Option<Token>,
    /// Owner values and orders, in turn.
    queue: &'a [Value],
    /// Server time in microseconds.
    now: u64,
}

impl<'a> Known<'a> {
    fn of(reply: &'a Value) -> Option<Self> {
        let Value::Array(fields) = reply else {
            return None;
        };
        let [value, remaining, record, Value::Array(queue), now] = fields.as_slice() else {
            return None;
        };
        Some(Known {
            value: bytes(value),
            remaining: remaining_time(remaining)?,
            token: bytes(record).and_then(token_of),
            queue,
            now: unsigned(now)?,
        })
    }

    fn is_newer(&self) -> bool {
        self.value.is_some_and(|value| value::Value::of(value) == value::Value::Newer)
    }

    fn info(&self, name: &Name) -> LockInfo {
        let mut info = LockInfo {
            name: name.as_str().to_owned(),
            state: LockState::Free,
            owner: None,
            token: None,
            held: None,
            ttl_left: None,
            metadata: None,
            queue: self.waiters(),
        };
        let Some(holder) = self.value else {
            return info;
        };
        info.ttl_left = self.remaining;
        if let value::Value::Ours { owner, text } = value::Value::of(holder) {
            info.state = LockState::Held;
            info.owner = Some(owner.to_string());
            info.token = self.token;
            // A token is the server's time at the grant, or a little more.
            info.held = self.token.map(|token| self.since(token.get()));
            info.metadata = text.map(str::to_owned);
        } else {
            info.state = LockState::Foreign;
            info.owner = Some(String::from_utf8_lossy(holder).into_owned());
        }
        info
    }

    fn waiters(&self) -> Vec<WaiterInfo> {
        let waiter = |entry: &[Value]| {
            let [owner, order] = entry else { return None };
            let value::Value::Ours { owner, text } = value::Value::of(bytes(owner)?) else {
                return None;
            };
            let order: f64 = std::str::from_utf8(bytes(order)?).ok()?.parse().ok()?;
            Some(WaiterInfo {
                owner: owner.to_string(),
                waiting: self.since(order as u64),
                metadata: text.map(str::to_owned),
            })
        };
        self.queue.chunks(2).filter_map(waiter).collect()
    }

    fn since(&self, micros: u64) -> Duration {
        Duration::from_micros(self.now.saturating_sub(micros))
    }
}

/// The token in a token record.
fn token_of(record: &[u8]) -> Option<Token> {
    let text = std::str::from_utf8(record).ok()?;
    Token::new(text.split(' ').next()?.parse().ok()?)
}
