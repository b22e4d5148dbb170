//! A holder that is cut off, and the next one: lost has to come before the next grant.

use std::time::Duration;

use anyhow::{Context, Result};
use fencelock::{Lease, Lock};
use fencelock_test_support::clock::{ms, ms_between, now};
use fencelock_test_support::samples::Samples;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::outcome::Outcome;

/// Far more than any session here lasts.
const PATIENCE: Duration = Duration::from_secs(40);

/// A holder and one that waits behind it.
pub(crate) struct Pair {
    token: u64,
    lost: JoinHandle<u64>,
    unheld: JoinHandle<u64>,
    next: JoinHandle<Result<(Lease, u64)>>,
}

/// How long before the next grant the holder knew, in ms.
#[derive(Default)]
pub(crate) struct Leads {
    lost: Vec<f64>,
    held: Vec<f64>,
    violations: Vec<String>,
}

impl Pair {
    /// Takes the lock, and lets the next one wait for it.
    pub(crate) async fn start(holder: &Lock, next: &Lock) -> Result<Self> {
        let lease = timeout(PATIENCE, holder.acquire()).await.context("the first acquire")??;
        let token = lease.token().get();
        let watch = lease.watch();
        let lost = tokio::spawn(async move {
            watch.ended().await;
            now()
        });
        let unheld = tokio::spawn(async move {
            while lease.is_held() {
                tokio::time::sleep(ms(1)).await;
            }
            now()
        });
        let next = next.clone();
        let next = tokio::spawn(async move {
            let lease = next.acquire().await?;
            let acquired = now();
            anyhow::Ok((lease, acquired))
        });
        Ok(Pair { token, lost, unheld, next })
    }

    /// Waits for the next grant; the holder has to be cut off by now.
    pub(crate) async fn finish(self, leads: &mut Leads) -> Result<()> {
        let granted = timeout(PATIENCE, self.next).await.context("the next one waits for ever")?;
        let (next, granted) = granted??;
        // A lease that is still believed in would never end these.
        let ended =
            timeout(ms(5_000), async { anyhow::Ok((self.lost.await?, self.unheld.await?)) });
        match ended.await {
            Ok(ended) => {
                let (lost, unheld) = ended?;
                leads.lost.push(ms_between(lost, granted));
                leads.held.push(ms_between(unheld, granted));
                if lost >= granted {
                    leads.violations.push(format!(
                        "lost came {:.1} ms after the next grant",
                        ms_between(granted, lost)
                    ));
                }
                if unheld >= granted {
                    leads.violations.push(format!(
                        "held {:.1} ms after the next grant",
                        ms_between(granted, unheld)
                    ));
                }
            }
            Err(_) => leads.violations.push("still held 5 s after the next grant".to_owned()),
        }
        if next.token().get() <= self.token {
            leads.violations.push(format!("token {} after {}", next.token().get(), self.token));
        }
        next.release().await.context("the release of the next one")
    }
}

impl Leads {
    pub(crate) fn absorb(&mut self, other: Leads) {
        self.lost.extend(other.lost);
        self.held.extend(other.held);
        self.violations.extend(other.violations);
    }

    pub(crate) fn judge(self, what: &str, outcome: &mut Outcome) {
        let shown = |leads: Vec<f64>| {
            let mut leads: Samples = leads.into_iter().collect();
            format!("{:.0} / {:.0} / {:.0} ms", leads.min(), leads.median(), leads.max())
        };
        outcome.figure(format!("{what}: times"), self.lost.len().to_string());
        outcome
            .figure(format!("{what}: lost before the next grant, min/p50/max"), shown(self.lost));
        outcome.figure(format!("{what}: not held before it, min/p50/max"), shown(self.held));
        outcome.violations(
            self.violations.into_iter().map(|violation| format!("{what}: {violation}")),
        );
    }
}
