//! Where a backend delivers what it was told without asking: grants, and notices of a forced
//! release. One registry per client, whatever the number of locks.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::task::AtomicWaker;

#[cfg(feature = "zookeeper")]
use crate::clock::Instant;
use crate::lease::Held;
use crate::owner::OwnerId;

/// The waiting contenders and held leases of one client, by owner id.
///
/// An owner id that is not here has ended: what arrives for it is dropped, and the withdrawal
/// that follows each end takes care of a grant that came too late.
#[derive(Default)]
pub(crate) struct Wakeups {
    places: Mutex<HashMap<OwnerId, Addressee>>,
}

enum Addressee {
    Contender(Arc<Mailbox>),
    Holder(Arc<Held>),
}

impl Wakeups {
    /// A grant was pushed to this owner id.
    pub(crate) fn granted(&self, owner: OwnerId, token: u64) {
        if let Some(Addressee::Contender(mailbox)) = self.places().get(&owner) {
            mailbox.token.fetch_max(token, Ordering::AcqRel);
            mailbox.waker.wake();
        }
    }

    /// A look by this owner id may find something: it looks at once.
    #[cfg(any(feature = "redis", feature = "mongodb", feature = "zookeeper"))]
    pub(crate) fn look(&self, owner: OwnerId) {
        if let Some(Addressee::Contender(mailbox)) = self.places().get(&owner) {
            mailbox.look.store(true, Ordering::Release);
            mailbox.waker.wake();
        }
    }

    /// Whether a contender with this owner id waits.
    #[cfg(feature = "mongodb")]
    pub(crate) fn awaits(&self, owner: OwnerId) -> bool {
        matches!(self.places().get(&owner), Some(Addressee::Contender(_)))
    }

    /// The session that this owner id's lease lives in was kept alive: the lease is certainly ours
    /// until then.
    #[cfg(feature = "zookeeper")]
    pub(crate) fn extended(&self, owner: OwnerId, until: Instant) {
        if let Some(Addressee::Holder(held)) = self.places().get(&owner) {
            held.extend_to(until, Instant::now());
        }
    }

    /// Somebody forced the release of this owner id's lease.
    pub(crate) fn revoked(&self, owner: OwnerId) {
        let held = match self.places().get(&owner) {
            Some(Addressee::Holder(held)) => held.clone(),
            // A contender that is granted only now learns it from its first renewal.
            _ => return,
        };
        held.lose();
    }

    /// Grants may have been missed: every contender looks at once.
    pub(crate) fn look_all(&self) {
        for addressee in self.places().values() {
            if let Addressee::Contender(mailbox) = addressee {
                mailbox.look.store(true, Ordering::Release);
                mailbox.waker.wake();
            }
        }
    }

    /// Wakes every contender, which then finds the client closed.
    pub(crate) fn wake_all(&self) {
        for addressee in self.places().values() {
            if let Addressee::Contender(mailbox) = addressee {
                mailbox.waker.wake();
            }
        }
    }

    pub(crate) fn await_grant(&self, owner: OwnerId) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::default());
        self.places().insert(owner, Addressee::Contender(mailbox.clone()));
        mailbox
    }

    pub(crate) fn hold(&self, owner: OwnerId, held: Arc<Held>) {
        self.places().insert(owner, Addressee::Holder(held));
    }

    pub(crate) fn forget(&self, owner: OwnerId) {
        self.places().remove(&owner);
    }

    /// The leases that are held now.
    pub(crate) fn held(&self) -> Vec<Arc<Held>> {
        let places = self.places();
        places
            .values()
            .filter_map(|addressee| match addressee {
                Addressee::Holder(held) => Some(held.clone()),
                Addressee::Contender(_) => None,
            })
            .collect()
    }

    fn places(&self) -> MutexGuard<'_, HashMap<OwnerId, Addressee>> {
        // No user code runs under this lock, so a poisoned map is still consistent.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has arrived for one contender. The backend's reader task wakes the waiter directly.
#[derive(Default)]
pub(crate) struct Mailbox {
    /// The highest token pushed, 0 = none.
    token: AtomicU64,
    look: AtomicBool,
    waker: AtomicWaker,
}

/// One piece of mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mail {
    /// The highest token that was pushed since the last time.
    Granted(u64),
    /// Look at once.
    Look,
    /// Nothing yet, but the waiter should check what else changed.
    Woken,
}

impl Mailbox {
    /// The next piece of mail; cancel-safe. One waiter at a time.
    pub(crate) async fn next(&self) -> Mail {
        let mut registered = false;
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            let token = self.token.swap(0, Ordering::AcqRel);
            if token > 0 {
                return Poll::Ready(Mail::Granted(token));
            }
            if self.look.swap(false, Ordering::AcqRel) {
                return Poll::Ready(Mail::Look);
            }
            if std::mem::replace(&mut registered, true) {
                return Poll::Ready(Mail::Woken);
            }
            Poll::Pending
        })
        .await
    }
}
