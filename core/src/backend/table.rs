//! The steps of the lock on a plain structure: what the backends without a server keep, and the
//! reference that the Redis scripts are compared with.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::{Look, Mode, Place, Queued, Renewed, Verdict};
use crate::clock::Instant;
use crate::info::{LockInfo, LockState, WaiterInfo};
use crate::name::Name;
use crate::owner::{ClientId, OwnerId};
use crate::period::{Pace, Term, claim_window};
use crate::token::Token;

/// What is kept of one name while it is held or waited for.
#[derive(Default)]
#[cfg_attr(feature = "file", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Entry {
    pub(super) holder: Option<Holder>,
    pub(super) queue: VecDeque<Contender>,
}

/// Who holds or waits.
#[derive(Clone)]
#[cfg_attr(feature = "file", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Party {
    pub(super) owner: OwnerId,
    pub(super) client: ClientId,
    ttl: Duration,
    metadata: Arc<str>,
}

#[cfg_attr(feature = "file", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Holder {
    party: Party,
    token: Token,
    since: Instant,
    until: Instant,
}

#[cfg_attr(feature = "file", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Contender {
    party: Party,
    since: Instant,
    alive_until: Instant,
}

/// What the steps need from around the table.
pub(super) trait Surroundings {
    fn now(&self) -> Instant;
    /// A token above all earlier ones.
    fn mint(&mut self) -> Token;
    /// The smallest token that a later grant can have.
    fn floor(&self) -> u64;
    /// Whether the client still runs. False ends what it holds before its time is over.
    fn is_alive(&mut self, client: ClientId) -> bool;
    fn granted(&mut self, to: &Party, token: Token);
    fn revoked(&mut self, from: &Party);
}

impl Party {
    pub(super) fn new(place: &Place, client: ClientId) -> Self {
        Party { owner: place.owner, client, ttl: place.ttl, metadata: place.metadata.clone() }
    }
}

impl Entry {
    /// Whether there is nothing to keep.
    pub(super) fn is_empty(&self) -> bool {
        self.holder.is_none() && self.queue.is_empty()
    }

    pub(super) fn contend(
        &mut self,
        me: Party,
        mode: Mode,
        around: &mut impl Surroundings,
    ) -> Look {
        let now = around.now();
        let alive_until = now.plus(Pace::BRISK.sign_of_life(me.ttl));
        self.expire(around);
        if let Some(holder) = self.holder.as_mut().filter(|h| h.party.owner == me.owner) {
            holder.until = now.plus(me.ttl);
            return Look::Granted(holder.token, Term::FullTtl);
        }
        match self.queue.iter_mut().find(|c| c.party.owner == me.owner) {
            Some(contender) => contender.alive_until = alive_until,
            None if mode == Mode::Again => return Look::Gone,
            None => {}
        }
        // No barging: who waits goes first, also before a newcomer that finds the lock free.
        while self.holder.is_none()
            && let Some(head) = self.queue.pop_front()
        {
            if head.party.owner == me.owner {
                let token = self.grant(me.clone(), me.ttl, around);
                return Look::Granted(token, Term::FullTtl);
            }
            self.hand_to(head, around);
        }
        let Some(holder) = &self.holder else {
            let token = self.grant(me.clone(), me.ttl, around);
            return Look::Granted(token, Term::FullTtl);
        };
        if mode == Mode::Try {
            return Look::Busy;
        }
        let remaining = Some(now.until(holder.until));
        let rank = match self.queue.iter().position(|c| c.party.owner == me.owner) {
            Some(rank) => rank,
            None => {
                self.queue.push_back(Contender { party: me, since: now, alive_until });
                self.queue.len() - 1
            }
        };
        let floor = around.floor();
        Look::Queued(Queued { remaining, floor, first: rank == 0, foreign: false })
    }

    /// No answer is ever lost here, so a release that comes again has been answered before.
    pub(super) fn release(
        &mut self,
        owner: OwnerId,
        token: Option<Token>,
        around: &mut impl Surroundings,
    ) -> Verdict {
        self.queue.retain(|c| c.party.owner != owner);
        let now = around.now();
        let verdict = match self.holder.take_if(|h| h.party.owner == owner) {
            Some(held) if now < held.until && token.is_none_or(|t| t == held.token) => {
                Verdict::Released
            }
            _ => Verdict::Lost,
        };
        self.expire(around);
        self.hand_off(around);
        verdict
    }

    pub(super) fn renew(&mut self, owner: OwnerId, around: &impl Surroundings) -> Renewed {
        let now = around.now();
        match self.holder.as_mut().filter(|h| h.party.owner == owner && now < h.until) {
            Some(holder) => {
                holder.until = now.plus(holder.party.ttl);
                Renewed::Ours(Term::FullTtl)
            }
            None => Renewed::NotOurs,
        }
    }

    /// Whether somebody held it.
    pub(super) fn force_release(&mut self, around: &mut impl Surroundings) -> bool {
        self.expire(around);
        let former = self.holder.take();
        if let Some(holder) = &former {
            around.revoked(&holder.party);
        }
        self.hand_off(around);
        former.is_some()
    }

    pub(super) fn info(&self, name: &Name, around: &mut impl Surroundings) -> LockInfo {
        let now = around.now();
        let holder = self
            .holder
            .as_ref()
            .filter(|holder| now < holder.until && around.is_alive(holder.party.client));
        let mut queue = Vec::new();
        for contender in &self.queue {
            if contender.alive_until > now && around.is_alive(contender.party.client) {
                queue.push(WaiterInfo {
                    owner: contender.party.owner.to_string(),
                    waiting: contender.since.until(now),
                    metadata: Some(contender.party.metadata.to_string()),
                });
            }
        }
        LockInfo {
            name: name.as_str().to_owned(),
            state: if holder.is_some() { LockState::Held } else { LockState::Free },
            owner: holder.map(|h| h.party.owner.to_string()),
            token: holder.map(|h| h.token),
            held: holder.map(|h| h.since.until(now)),
            ttl_left: holder.map(|h| now.until(h.until)),
            metadata: holder.map(|h| h.party.metadata.to_string()),
            queue,
        }
    }

    fn expire(&mut self, around: &mut impl Surroundings) {
        let now = around.now();
        self.holder.take_if(|holder| now >= holder.until || !around.is_alive(holder.party.client));
    }

    /// Gives a free lock to the first live contender.
    fn hand_off(&mut self, around: &mut impl Surroundings) {
        while self.holder.is_none()
            && let Some(head) = self.queue.pop_front()
        {
            self.hand_to(head, around);
        }
    }

    /// Grants for the claim window only, so that a contender that died unnoticed does not block
    /// the others for its ttl. A dead one gets nothing.
    fn hand_to(&mut self, head: Contender, around: &mut impl Surroundings) {
        if head.alive_until > around.now() && around.is_alive(head.party.client) {
            let window = claim_window(head.party.ttl);
            let token = self.grant(head.party.clone(), window, around);
            around.granted(&head.party, token);
        }
    }

    fn grant(&mut self, party: Party, period: Duration, around: &mut impl Surroundings) -> Token {
        let token = around.mint();
        let since = around.now();
        self.holder = Some(Holder { party, token, since, until: since.plus(period) });
        token
    }
}
