//! Locks in ZooKeeper 3.5 or later: one ephemeral sequential node for each contender, below a
//! container of the lock's name; the lowest number holds.
//!
//! The servers keep what they have by *session*. All locks of one ttl share a session with that
//! timeout, and what keeps it alive is a write every quarter of it, whatever the number of leases.
//! `deadline.rs` says until when that makes them ours. Each place in a queue is a task
//! ([`seat`]) that sees its node through to its end, so that a call that is cancelled leaves
//! nothing behind. All that is used of the client crate is in `session.rs`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;

use self::address::{Address, Root};
use self::fault::{Ensemble, Fault};
use self::seat::{Layout, Seat, Standing};
use self::session::Approach;
use self::sessions::Sessions;
use crate::backend::{Backend, Look, Mode, Place, Queued, Renewal, Renewed, Request, Verdict};
use crate::error::Result;
use crate::info::LockInfo;
use crate::name::Name;
use crate::options::{LockOptions, Settings};
use crate::owner::OwnerId;
use crate::period::Term;
use crate::url::Target;
use crate::wakeups::Wakeups;

mod address;
mod deadline;
mod entry;
mod escape;
mod fault;
mod inspect;
mod keeper;
mod layout;
mod seat;
mod sequence;
mod session;
mod sessions;
#[cfg(test)]
mod tests;
mod tls;

/// For how long the end of a seat is remembered when nobody asked for it: whoever gave up waiting
/// may ask again.
const REMEMBERED: Duration = Duration::from_secs(30);

/// ZooKeeper.
pub(super) struct ZooKeeper {
    shared: Arc<Shared>,
}

/// What requests need, which may outlive the [`ZooKeeper`] they came from.
struct Shared {
    ensemble: Ensemble,
    layout: Layout,
    sessions: Arc<Sessions>,
    wakeups: Arc<Wakeups>,
    seats: Mutex<HashMap<OwnerId, Arc<Seat>>>,
}

impl ZooKeeper {
    /// Checks the settings, then opens the session of the default ttl.
    pub(super) async fn connect(
        target: &Target,
        settings: &Settings,
        wakeups: Arc<Wakeups>,
    ) -> Result<Self> {
        let zookeeper = Self::new(target, settings, wakeups)?;
        let shared = &zookeeper.shared;
        let session = shared.sessions.take(LockOptions::default().ttl);
        session.keeper().await.map_err(|fault| shared.ensemble.explain(&fault))?;
        drop(session);
        Ok(zookeeper)
    }

    /// Checks the settings. No I/O yet.
    fn new(target: &Target, settings: &Settings, wakeups: Arc<Wakeups>) -> Result<Self> {
        let address = Address::parse(target)?;
        let root = Root::new(&settings.root, &address.chroot)?;
        let ensemble = Ensemble::new(&address.hosts);
        let approach = Approach::new(address, &settings.tls)?;
        let sessions =
            Sessions::new(approach, root.clone(), wakeups.clone(), settings.connect_timeout);
        let shared = Shared {
            ensemble,
            layout: Layout { root, nodes: settings.node_layout },
            sessions: Arc::new(sessions),
            wakeups,
            seats: Mutex::default(),
        };
        Ok(ZooKeeper { shared: Arc::new(shared) })
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        drop(self.shared.sessions.close());
    }
}

impl Backend for ZooKeeper {
    fn keeps_sessions(&self) -> bool {
        true
    }

    fn contend(&self, place: &Arc<Place>, mode: Mode) -> Request<Look> {
        let shared = self.shared.clone();
        match shared.seat(place, mode) {
            Ok(Some(seat)) => Box::pin(async move { shared.look(&seat).await }),
            Ok(None) => Box::pin(std::future::ready(Ok(Look::Gone))),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn release(&self, place: &Arc<Place>, _: Option<crate::Token>, _: bool) -> Request<Verdict> {
        let shared = self.shared.clone();
        let owner = place.owner;
        let seat = shared.seats().get(&owner).cloned();
        let Some(seat) = seat else {
            return Box::pin(std::future::ready(Ok(Verdict::Unknown)));
        };
        seat.leave();
        Box::pin(async move {
            let outcome = seat.outcome().await;
            shared.forget(owner);
            outcome.map_err(|fault| shared.ensemble.explain(&fault))
        })
    }

    fn renew(&self, leases: Vec<Renewal>) -> Request<Vec<Result<Renewed>>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let renewals = leases.iter().map(|lease| shared.renew(lease.place.owner));
            Ok(futures_util::future::join_all(renewals).await)
        })
    }

    fn inspect(&self, name: &Name) -> Request<LockInfo> {
        let shared = self.shared.clone();
        let name = name.clone();
        Box::pin(async move { shared.inspect(&name).await })
    }

    fn list(&self) -> Request<Vec<LockInfo>> {
        let shared = self.shared.clone();
        Box::pin(async move { shared.list().await })
    }

    fn force_release(&self, name: &Name) -> Request<bool> {
        let shared = self.shared.clone();
        let name = name.clone();
        Box::pin(async move { shared.force_release(&name).await })
    }

    fn close(&self) -> Request<()> {
        Box::pin(self.shared.sessions.close().map(Ok))
    }
}

impl Shared {
    /// The seat of this place; a look that may introduce it takes one.
    fn seat(self: &Arc<Self>, place: &Arc<Place>, mode: Mode) -> Result<Option<Arc<Seat>>> {
        let mut seats = self.seats();
        if let Some(seat) = seats.get(&place.owner) {
            return Ok(Some(seat.clone()));
        }
        if mode == Mode::Again {
            return Ok(None);
        }
        let directory = self.layout.root.directory(&place.name)?;
        let seat = Arc::new(Seat::new(place.clone(), directory));
        seats.insert(place.owner, seat.clone());
        self.sessions.runtime().spawn(self.clone().occupy(seat.clone(), place.ttl, mode));
        Ok(Some(seat))
    }

    async fn occupy(self: Arc<Self>, seat: Arc<Seat>, ttl: Duration, mode: Mode) {
        let session = self.sessions.take(ttl);
        match session.keeper().await {
            Ok(keeper) => {
                seat::occupy(&seat, &keeper, &self.layout, mode, &self.wakeups).await;
            }
            Err(fault) => seat.refuse(fault),
        }
        drop(session);
        if seat.is_leaving() && !seat.is_awaited() {
            tokio::time::sleep(REMEMBERED).await;
            self.forget(seat.owner());
        }
    }

    /// What a contender is told. Nothing is asked of the servers here.
    async fn look(&self, seat: &Arc<Seat>) -> Result<Look> {
        let mut standing = seat.standing();
        loop {
            let now = standing.borrow_and_update().clone();
            let look = match (now, seat.keeper()) {
                (Standing::Queued { first }, Some(keeper)) => {
                    if !keeper.is_connected() {
                        // No answer, so that the caller knows of the outage.
                        let is_over = tokio::select! {
                            connected = keeper.session.connected() => connected.is_err(),
                            _ = standing.changed() => false,
                        };
                        if is_over {
                            let _ = standing.changed().await;
                        }
                        continue;
                    }
                    Look::Queued(Queued { remaining: None, floor: 1, first, foreign: false })
                }
                (Standing::Granted(token), Some(keeper)) => {
                    let deadline = tokio::select! {
                        deadline = keeper.lasting() => deadline,
                        _ = standing.changed() => continue,
                    };
                    match deadline {
                        Ok(deadline) if seat.is_granted() => {
                            return Ok(Look::Granted(token, Term::Until(deadline)));
                        }
                        _ => {
                            let _ = standing.changed().await;
                            continue;
                        }
                    }
                }
                (Standing::Busy, _) => Look::Busy,
                (Standing::Gone, _) => Look::Gone,
                (Standing::Refused(fault), _) => {
                    self.dismiss(seat);
                    return Err(self.ensemble.explain(&fault));
                }
                (Standing::Entering, _) | (_, None) => {
                    let _ = standing.changed().await;
                    continue;
                }
            };
            if matches!(look, Look::Busy | Look::Gone) {
                self.dismiss(seat);
            }
            return Ok(look);
        }
    }

    /// The caller has been told that this seat is none, and does not come back to it.
    fn dismiss(&self, seat: &Seat) {
        seat.leave();
        self.forget(seat.owner());
    }

    fn forget(&self, owner: OwnerId) {
        self.seats().remove(&owner);
    }

    /// One write of the lease's session now.
    async fn renew(&self, owner: OwnerId) -> Result<Renewed> {
        let seat = self.seats().get(&owner).cloned();
        let Some((seat, keeper)) = seat.and_then(|seat| Some((seat.clone(), seat.keeper()?)))
        else {
            return Ok(Renewed::NotOurs);
        };
        match keeper.fresh_beat().await {
            Ok(()) if seat.is_granted() && !seat.is_leaving() => {
                Ok(Renewed::Ours(Term::Until(keeper.deadline())))
            }
            Ok(()) | Err(Fault::Ended) => Ok(Renewed::NotOurs),
            Err(fault) => Err(self.ensemble.explain(&fault)),
        }
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<OwnerId, Arc<Seat>>> {
        // No user code runs under this lock, so a poisoned map is still consistent.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
