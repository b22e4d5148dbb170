//! Which sessions a client has: one for each ttl in use, opened when needed, closed when idle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use super::address::Root;
use super::fault::Fault;
use super::keeper::Keeper;
use super::session::Approach;
use crate::clock::Instant;
use crate::wakeups::Wakeups;

/// The shortest time for which an unused session stays open.
const IDLE: Duration = Duration::from_secs(10);

/// What one opening came to.
type Opened = Option<Result<Arc<Keeper>, Fault>>;

/// The sessions of one client.
pub(super) struct Sessions {
    approach: Approach,
    root: Root,
    wakeups: Arc<Wakeups>,
    connect_timeout: Duration,
    runtime: Handle,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_ttl: HashMap<Duration, Slot>,
    count: u64,
    closed: bool,
}

struct Slot {
    /// Tells this session from a later one of the same ttl.
    number: u64,
    users: usize,
    idle_since: Instant,
    opened: watch::Receiver<Opened>,
}

/// The use of a session; while there is one the session is not idle.
pub(super) struct Tenancy {
    sessions: Arc<Sessions>,
    ttl: Duration,
    number: u64,
    opened: watch::Receiver<Opened>,
}

impl Drop for Tenancy {
    fn drop(&mut self) {
        let mut slots = self.sessions.slots();
        if let Some(slot) = slots.by_ttl.get_mut(&self.ttl)
            && slot.number == self.number
        {
            slot.users -= 1;
            slot.idle_since = Instant::now();
        }
    }
}

impl Tenancy {
    /// Waits until the session is open, or could not be opened.
    pub(super) async fn keeper(&self) -> Result<Arc<Keeper>, Fault> {
        let mut opened = self.opened.clone();
        match opened.wait_for(Option::is_some).await {
            Ok(opened) => opened.clone().unwrap_or(Err(Fault::Ended)),
            Err(_) => Err(Fault::Ended),
        }
    }
}

impl Sessions {
    /// No I/O yet. Must be called on the runtime that the sessions are to live on.
    pub(super) fn new(
        approach: Approach,
        root: Root,
        wakeups: Arc<Wakeups>,
        connect_timeout: Duration,
    ) -> Self {
        let runtime = Handle::current();
        let slots = Mutex::default();
        Sessions { approach, root, wakeups, connect_timeout, runtime, slots }
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The session of this ttl, opened if there is none.
    pub(super) fn take(self: &Arc<Self>, ttl: Duration) -> Tenancy {
        let mut slots = self.slots();
        let slots = &mut *slots;
        if slots.closed {
            let (_, opened) = watch::channel(Some(Err(Fault::Ended)));
            return Tenancy { sessions: self.clone(), ttl, number: 0, opened };
        }
        let slot = slots.by_ttl.entry(ttl).or_insert_with(|| {
            slots.count += 1;
            let (sender, opened) = watch::channel(None);
            self.runtime.spawn(self.clone().serve(ttl, slots.count, sender));
            Slot { number: slots.count, users: 0, idle_since: Instant::now(), opened }
        });
        slot.users += 1;
        let (number, opened) = (slot.number, slot.opened.clone());
        Tenancy { sessions: self.clone(), ttl, number, opened }
    }

    /// A session that is open anyway, else that of the given ttl: for requests that need no
    /// certain one.
    pub(super) fn any(self: &Arc<Self>, ttl: Duration) -> Tenancy {
        let open = self.slots().by_ttl.iter().find_map(|(ttl, slot)| {
            let is_open =
                matches!(&*slot.opened.borrow(), Some(Ok(keeper)) if keeper.is_connected());
            is_open.then_some(*ttl)
        });
        self.take(open.unwrap_or(ttl))
    }

    /// One session from its opening to its end.
    async fn serve(self: Arc<Self>, ttl: Duration, number: u64, opened: watch::Sender<Opened>) {
        let opening = timeout(self.connect_timeout, self.approach.open(ttl)).await;
        let session = opening.unwrap_or_else(|_| {
            let limit = self.connect_timeout.as_millis();
            Err(Fault::Unreachable(format!("no answer within {limit} ms")))
        });
        let session = match session {
            Ok(session) => session,
            Err(fault) => {
                self.forget(ttl, number);
                opened.send_replace(Some(Err(fault)));
                return;
            }
        };
        let keeper = Keeper::new(session, ttl, self.root.clone(), self.wakeups.clone());
        let keeper = Arc::new(keeper);
        opened.send_replace(Some(Ok(keeper.clone())));
        if self.slots().by_ttl.get(&ttl).is_none_or(|slot| slot.number != number) {
            // The client was closed meanwhile.
            keeper.end();
        }
        tokio::select! {
            () = keeper.run() => {}
            () = self.idle(ttl, number) => {}
        }
        self.forget(ttl, number);
        keeper.end();
    }

    /// Returns when nobody has used the session for long enough. It has no slot any more then.
    async fn idle(&self, ttl: Duration, number: u64) {
        let limit = (ttl * 2).max(IDLE);
        loop {
            tokio::time::sleep(limit / 4).await;
            let mut slots = self.slots();
            let is_idle = slots.by_ttl.get(&ttl).is_none_or(|slot| {
                let unused = slot.users == 0 && slot.idle_since.plus(limit) <= Instant::now();
                slot.number != number || unused
            });
            if is_idle {
                if slots.by_ttl.get(&ttl).is_some_and(|slot| slot.number == number) {
                    slots.by_ttl.remove(&ttl);
                }
                return;
            }
        }
    }

    fn forget(&self, ttl: Duration, number: u64) {
        let mut slots = self.slots();
        if slots.by_ttl.get(&ttl).is_some_and(|slot| slot.number == number) {
            slots.by_ttl.remove(&ttl);
        }
    }

    /// Ends all sessions; no new one is opened. Returns when the servers have been told, to be
    /// given up after a while.
    pub(super) fn close(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut slots = self.slots();
        slots.closed = true;
        let mut lines = Vec::new();
        for (_, slot) in slots.by_ttl.drain() {
            if let Some(Ok(keeper)) = &*slot.opened.borrow() {
                lines.push(keeper.session.lines());
                keeper.end();
            }
        }
        async move {
            join_all(lines.into_iter().map(|lines| lines.ended())).await;
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
