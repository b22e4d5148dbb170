//! `memory:` – the lock inside one process, and the reference that other backends are compared
//! with: the same steps as the Redis scripts, on plain structures.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::{Backend, Look, Mode, Place, Queued, Renewal, Renewed, Request, Verdict};
use crate::clock::{Instant, unix_micros};
use crate::error::{Error, Result};
use crate::info::{LockInfo, LockState, WaiterInfo};
use crate::name::Name;
use crate::period::{claim_window, sign_of_life};
use crate::process::PerProcess;
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;

/// A client of one space.
pub(super) struct Memory {
    space: Arc<Mutex<Space>>,
    wakeups: Arc<Wakeups>,
}

impl Memory {
    /// `memory:` is private to the client; `memory:NAME` is shared in the process.
    pub(super) fn open(target: &Target, wakeups: Arc<Wakeups>) -> Result<Self> {
        let name = target.after_scheme();
        let space = if name.is_empty() {
            Arc::default()
        } else if name.contains(['/', '?']) {
            return Err(Error::invalid(
                "a memory URL is memory: or memory:NAME, without slashes or options of its own",
            ));
        } else {
            shared_space(name)
        };
        Ok(Memory { space, wakeups })
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn caller(&self, place: &Arc<Place>) -> Contender {
        Contender {
            place: place.clone(),
            wakeups: Arc::downgrade(&self.wakeups),
            since: Instant::now(),
            alive_until: Instant::now().plus(sign_of_life(place.ttl)),
        }
    }
}

fn shared_space(name: &str) -> Arc<Mutex<Space>> {
    static SPACES: PerProcess<Mutex<HashMap<String, Arc<Mutex<Space>>>>> = PerProcess::new();
    SPACES
        .get()
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(name.to_owned())
        .or_default()
        .clone()
}

fn done<T: Send + 'static>(value: T) -> Request<T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl Backend for Memory {
    fn contend(&self, place: &Arc<Place>, mode: Mode) -> Request<Look> {
        done(self.space().contend(self.caller(place), mode, Instant::now()))
    }

    fn release(&self, place: &Arc<Place>, token: Option<Token>, _mark: bool) -> Request<Verdict> {
        // Nothing is ever under way here, so no late request needs a mark.
        done(self.space().release(place, token, Instant::now()))
    }

    fn renew(&self, leases: Vec<Renewal>) -> Request<Vec<Result<Renewed>>> {
        let mut space = self.space();
        let now = Instant::now();
        done(leases.into_iter().map(|lease| Ok(space.renew(&lease.place, now))).collect())
    }

    fn inspect(&self, name: &Name) -> Request<LockInfo> {
        done(self.space().inspect(name, Instant::now()))
    }

    fn list(&self) -> Request<Vec<LockInfo>> {
        let space = self.space();
        let now = Instant::now();
        let mut infos: Vec<_> = space.locks.keys().map(|name| space.inspect(name, now)).collect();
        infos.retain(|info| info.state != LockState::Free || !info.queue.is_empty());
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        done(infos)
    }

    fn force_release(&self, name: &Name) -> Request<bool> {
        done(self.space().force_release(name, Instant::now()))
    }

    fn close(&self) -> Request<()> {
        done(())
    }
}

/// All locks of one space. A name that is free and not waited for takes no memory, so the last
/// token is kept for all names together.
#[derive(Default)]
struct Space {
    locks: HashMap<Name, Entry>,
    last_token: u64,
}

#[derive(Default)]
struct Entry {
    holder: Option<Holder>,
    queue: VecDeque<Contender>,
}

struct Holder {
    place: Arc<Place>,
    wakeups: Weak<Wakeups>,
    token: Token,
    since: Instant,
    until: Instant,
}

struct Contender {
    place: Arc<Place>,
    wakeups: Weak<Wakeups>,
    since: Instant,
    alive_until: Instant,
}

impl Space {
    fn contend(&mut self, me: Contender, mode: Mode, now: Instant) -> Look {
        let owner = me.place.owner;
        let name = me.place.name.clone();
        let mut entry = self.locks.remove(&name).unwrap_or_default();
        let look = self.look(&mut entry, me, mode, now);
        if entry.holder.is_some() || !entry.queue.is_empty() {
            self.locks.insert(name, entry);
        }
        debug_assert!(mode != Mode::Try || !matches!(look, Look::Queued(_)), "{owner} queued");
        look
    }

    fn look(&mut self, entry: &mut Entry, me: Contender, mode: Mode, now: Instant) -> Look {
        let owner = me.place.owner;
        entry.expire(now);
        if let Some(holder) = entry.holder.as_mut().filter(|h| h.place.owner == owner) {
            holder.until = now.plus(me.place.ttl);
            return Look::Granted(holder.token);
        }
        match entry.queue.iter_mut().find(|c| c.place.owner == owner) {
            Some(contender) => contender.alive_until = me.alive_until,
            None if mode == Mode::Again => return Look::Gone,
            None => {}
        }
        if entry.holder.is_none() {
            while let Some(head) = entry.queue.pop_front() {
                if head.place.owner == owner {
                    let ttl = head.place.ttl;
                    return Look::Granted(self.grant(entry, head, ttl, now));
                }
                if head.alive_until > now {
                    self.hand_to(entry, head, now);
                    break;
                }
            }
        }
        let Some(holder) = &entry.holder else {
            let ttl = me.place.ttl;
            return Look::Granted(self.grant(entry, me, ttl, now));
        };
        if mode == Mode::Try {
            return Look::Busy;
        }
        let remaining = Some(now.until(holder.until));
        let floor = self.next_token();
        let rank = match entry.queue.iter().position(|c| c.place.owner == owner) {
            Some(rank) => rank,
            None => {
                entry.queue.push_back(me);
                entry.queue.len() - 1
            }
        };
        Look::Queued(Queued { remaining, floor, first: rank == 0, foreign: false })
    }

    fn release(&mut self, place: &Place, token: Option<Token>, now: Instant) -> Verdict {
        let Some(mut entry) = self.locks.remove(&place.name) else {
            return Verdict::Lost;
        };
        entry.queue.retain(|c| c.place.owner != place.owner);
        let ours = entry.holder.take_if(|h| h.place.owner == place.owner);
        let verdict = match ours {
            Some(holder) if now < holder.until && token.is_none_or(|t| t == holder.token) => {
                Verdict::Released
            }
            _ => Verdict::Lost,
        };
        entry.expire(now);
        self.hand_off(&mut entry, now);
        if entry.holder.is_some() {
            self.locks.insert(place.name.clone(), entry);
        }
        verdict
    }

    fn renew(&mut self, place: &Place, now: Instant) -> Renewed {
        let holder = self.locks.get_mut(&place.name).and_then(|entry| entry.holder.as_mut());
        match holder {
            Some(holder) if holder.place.owner == place.owner && now < holder.until => {
                holder.until = now.plus(place.ttl);
                Renewed::Ours
            }
            _ => Renewed::NotOurs,
        }
    }

    fn force_release(&mut self, name: &Name, now: Instant) -> bool {
        let Some(mut entry) = self.locks.remove(name) else {
            return false;
        };
        entry.expire(now);
        let former = entry.holder.take();
        if let Some(holder) = &former
            && let Some(wakeups) = holder.wakeups.upgrade()
        {
            wakeups.revoked(holder.place.owner);
        }
        self.hand_off(&mut entry, now);
        if entry.holder.is_some() {
            self.locks.insert(name.clone(), entry);
        }
        former.is_some()
    }

    /// Gives a free lock to the first live contender.
    fn hand_off(&mut self, entry: &mut Entry, now: Instant) {
        while entry.holder.is_none()
            && let Some(head) = entry.queue.pop_front()
        {
            if head.alive_until > now {
                self.hand_to(entry, head, now);
            }
        }
    }

    fn hand_to(&mut self, entry: &mut Entry, head: Contender, now: Instant) {
        let owner = head.place.owner;
        let wakeups = head.wakeups.upgrade();
        let window = claim_window(head.place.ttl);
        let token = self.grant(entry, head, window, now);
        if let Some(wakeups) = wakeups {
            wakeups.granted(owner, token.get());
        }
    }

    fn grant(&mut self, entry: &mut Entry, to: Contender, period: Duration, now: Instant) -> Token {
        self.last_token = self.next_token();
        let token = Token::new(self.last_token).unwrap_or(FIRST);
        let Contender { place, wakeups, .. } = to;
        let until = now.plus(period);
        entry.holder = Some(Holder { place, wakeups, token, since: now, until });
        token
    }

    fn next_token(&self) -> u64 {
        unix_micros().max(self.last_token + 1)
    }

    fn inspect(&self, name: &Name, now: Instant) -> LockInfo {
        let entry = self.locks.get(name);
        let holder =
            entry.and_then(|entry| entry.holder.as_ref()).filter(|holder| now < holder.until);
        let queue = entry.map(|entry| &entry.queue).into_iter().flatten();
        LockInfo {
            name: name.as_str().to_owned(),
            state: if holder.is_some() { LockState::Held } else { LockState::Free },
            owner: holder.map(|h| h.place.owner.to_string()),
            token: holder.map(|h| h.token),
            held: holder.map(|h| h.since.until(now)),
            ttl_left: holder.map(|h| now.until(h.until)),
            metadata: holder.map(|h| h.place.metadata.to_string()),
            queue: queue
                .filter(|c| c.alive_until > now)
                .map(|c| WaiterInfo {
                    owner: c.place.owner.to_string(),
                    waiting: c.since.until(now),
                    metadata: Some(c.place.metadata.to_string()),
                })
                .collect(),
        }
    }
}

/// The smallest token.
const FIRST: Token = match Token::new(1) {
    Some(token) => token,
    None => unreachable!(),
};

impl Entry {
    fn expire(&mut self, now: Instant) {
        self.holder.take_if(|holder| now >= holder.until);
    }
}
