//! One lock that many tasks take, and what each of them saw.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fencelock::{ErrorKind, Lease, Lock};
use fencelock_test_support::clock::ms;

/// One name, and who believes to hold it now.
pub(crate) struct Site {
    pub(crate) name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    leases: Vec<Arc<Lease>>,
    last_token: u64,
    violations: Vec<String>,
}

/// A lease that has ended, and what its release was told.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) owner: String,
    /// It was held when release was called.
    pub(crate) held_before: bool,
    /// Release had no answer, and was called once more.
    pub(crate) again: bool,
    pub(crate) verdict: String,
}

impl Site {
    pub(crate) fn new(name: &str) -> Arc<Self> {
        Arc::new(Site { name: name.to_owned(), state: Mutex::default() })
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        std::mem::take(&mut self.state().violations)
    }

    fn enter(&self, lease: &Arc<Lease>) {
        let mut state = self.state();
        let others: Vec<String> =
            state.leases.iter().filter(|other| other.is_held()).map(|o| format!("{o:?}")).collect();
        // Asked last: held now, it was held all the time since acquire returned.
        if !lease.is_held() {
            return;
        }
        if !others.is_empty() {
            state.violations.push(format!("held at the same time: {lease:?} and {others:?}"));
        }
        let token = lease.token().get();
        if token <= state.last_token {
            let last = state.last_token;
            state.violations.push(format!("tokens do not rise: {last}, then {token}"));
        }
        state.last_token = state.last_token.max(token);
        state.leases.push(lease.clone());
    }

    fn leave(&self, lease: &Arc<Lease>) {
        self.state().leases.retain(|other| !Arc::ptr_eq(other, lease));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the lock again and again.
pub(crate) async fn work(lock: Lock, site: Arc<Site>, until: Instant) -> Vec<Finished> {
    let mut finished = Vec::new();
    while Instant::now() < until {
        // Some give up early, with a request on its way.
        let patience = ms(if fastrand::u32(0..10) == 0 { fastrand::u64(1..50) } else { 5000 });
        let lease = match lock.acquire_timeout(patience).await {
            Ok(lease) => Arc::new(lease),
            Err(error) => {
                if !matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unavailable) {
                    site.state().violations.push(format!("acquire: {error}"));
                }
                continue;
            }
        };
        site.enter(&lease);
        let hold = match fastrand::u32(0..20) {
            // Long enough for renewals.
            0 => fastrand::u64(500..2000),
            _ => fastrand::u64(0..15),
        };
        let _ = tokio::time::timeout(ms(hold), lease.ended()).await;
        finished.push(release(&lease).await);
        site.leave(&lease);
    }
    finished
}

async fn release(lease: &Lease) -> Finished {
    let held_before = lease.is_held();
    let mut verdict = told(lease).await;
    let again = verdict == "UNAVAILABLE" && fastrand::bool();
    if again {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(0..1500))).await;
        verdict = told(lease).await;
    }
    Finished { owner: lease.owner(), held_before, again, verdict }
}

async fn told(lease: &Lease) -> String {
    match lease.release().await {
        Ok(()) => "OK".into(),
        Err(error) if error.to_string().contains("outcome unknown") => "UNKNOWN".into(),
        Err(error) => error.kind().code().into(),
    }
}
