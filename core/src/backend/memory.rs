//! `memory:` – the lock inside one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::table::{Entry, Party, Surroundings};
use super::{Backend, Look, Mode, Place, Renewal, Renewed, Request, Verdict};
use crate::clock::{Instant, unix_micros};
use crate::error::{Error, Result};
use crate::info::{LockInfo, LockState};
use crate::name::Name;
use crate::owner::ClientId;
use crate::process::PerProcess;
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;

/// A client of one space.
pub(super) struct Memory {
    space: Arc<Mutex<Space>>,
    client: ClientId,
}

impl Memory {
    /// `memory:` is private to the client; `memory:NAME` is shared in the process.
    pub(super) fn open(target: &Target, wakeups: &Arc<Wakeups>) -> Result<Self> {
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
        let memory = Memory { space, client: ClientId::random() };
        memory.space().surroundings.clients.insert(memory.client, Arc::downgrade(wakeups));
        Ok(memory)
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.space().surroundings.clients.remove(&self.client);
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
        let me = Party::new(place, self.client);
        done(self.space().at(&place.name, |entry, around| entry.contend(me, mode, around)))
    }

    fn release(&self, place: &Arc<Place>, token: Option<Token>, _mark: bool) -> Request<Verdict> {
        // Nothing is ever under way here, so no late request needs a mark.
        let owner = place.owner;
        done(self.space().at(&place.name, |entry, around| entry.release(owner, token, around)))
    }

    fn renew(&self, leases: Vec<Renewal>) -> Request<Vec<Result<Renewed>>> {
        let mut space = self.space();
        let renewed = leases.iter().map(|Renewal { place, .. }| {
            Ok(space.at(&place.name, |entry, around| entry.renew(place.owner, around)))
        });
        done(renewed.collect())
    }

    fn inspect(&self, name: &Name) -> Request<LockInfo> {
        done(self.space().at(name, |entry, around| entry.info(name, around)))
    }

    fn list(&self) -> Request<Vec<LockInfo>> {
        let mut space = self.space();
        let names: Vec<_> = space.locks.keys().cloned().collect();
        let mut infos: Vec<_> = names
            .iter()
            .map(|name| space.at(name, |entry, around| entry.info(name, around)))
            .filter(|info| info.state != LockState::Free || !info.queue.is_empty())
            .collect();
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        done(infos)
    }

    fn force_release(&self, name: &Name) -> Request<bool> {
        done(self.space().at(name, |entry, around| entry.force_release(around)))
    }

    fn close(&self) -> Request<()> {
        done(())
    }
}

/// All locks of one space.
#[derive(Default)]
struct Space {
    locks: HashMap<Name, Entry>,
    surroundings: Around,
}

/// A name that is free and not waited for takes no memory, so the last token is kept for all
/// names together.
#[derive(Default)]
struct Around {
    clients: HashMap<ClientId, Weak<Wakeups>>,
    last_token: u64,
}

impl Space {
    fn at<T>(&mut self, name: &Name, step: impl FnOnce(&mut Entry, &mut Around) -> T) -> T {
        let mut entry = self.locks.remove(name).unwrap_or_default();
        let result = step(&mut entry, &mut self.surroundings);
        if !entry.is_empty() {
            self.locks.insert(name.clone(), entry);
        }
        result
    }
}

impl Around {
    fn tell(&self, client: ClientId, what: impl FnOnce(&Wakeups)) {
        if let Some(wakeups) = self.clients.get(&client).and_then(Weak::upgrade) {
            what(&wakeups);
        }
    }
}

impl Surroundings for Around {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn mint(&mut self) -> Token {
        self.last_token = self.floor();
        Token::at_least(self.last_token)
    }

    fn floor(&self) -> u64 {
        unix_micros().max(self.last_token + 1)
    }

    /// What a client left behind ends with its ttl, as it would on a server.
    fn is_alive(&mut self, _client: ClientId) -> bool {
        true
    }

    fn granted(&mut self, to: &Party, token: Token) {
        self.tell(to.client, |wakeups| wakeups.granted(to.owner, token.get()));
    }

    fn revoked(&mut self, from: &Party) {
        self.tell(from.client, |wakeups| wakeups.revoked(from.owner));
    }
}
