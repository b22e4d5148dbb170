//! A worker: buys one unit after the other until there are none left.
//!
//! This file is the example; the others only start workers and count what they did.

use std::future::pending;
use std::time::Duration;

use fencelock::{Client, ErrorKind, Lease, Lock, LockOptions};
use tokio::time::sleep;

use crate::Failure;
use crate::job::Job;
use crate::store::Store;
use crate::turn::{Outcome, Turn};

/// What everybody has to lock who sells product 123.
const LOCK: &str = "product/123";

/// Waits for the sale to open, then buys until everything is sold.
pub(crate) async fn run(
    client: &Client,
    job: &Job,
    mut report: impl FnMut(Turn) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let options = LockOptions::new().ttl(Duration::from_millis(job.ttl_ms)).renew(job.renew);
    let lock = client.lock_with(LOCK, options)?;
    let store = Store::open(&job.store);

    sleep(job.until_opening()).await;
    for number in 0.. {
        if job.crash_after == Some(number) {
            report(hold_for_ever(&lock, job).await?)?;
            pending::<()>().await; // until we are killed
        }
        let turn = if job.no_lock {
            buy_without_lock(&store, job).await?
        } else {
            buy_one(&lock, &store, job).await?
        };
        report(turn)?;
        if turn.outcome == Outcome::SoldOut {
            break;
        }
    }
    Ok(())
}

/// Buys one unit under the lock.
async fn buy_one(lock: &Lock, store: &Store, job: &Job) -> Result<Turn, Failure> {
    let asked = job.now();
    let lease = lock.acquire().await?;
    let from = job.now();

    let outcome = sell_one_unit(store, job.worker, Some(&lease)).await?;

    let until = job.now();
    let token = lease.token().get();
    match lease.release().await {
        // An order that the store has taken stands even if the lease was lost behind it: had
        // anybody with a higher token been at the store before it, the store had refused it.
        Err(error) if error.kind() == ErrorKind::Lost => {}
        released => released?,
    }
    Ok(Turn { worker: job.worker, outcome, token, asked, from, until })
}

/// The section that must not run twice at the same time: read the stock, check it, write it back
/// less one. Everything that can go wrong without a lock goes wrong between the read and the write.
async fn sell_one_unit(
    store: &Store,
    worker: usize,
    lease: Option<&Lease>,
) -> Result<Outcome, Failure> {
    let token = lease.map(|lease| lease.token().get());

    let left = store.read_stock(token).await?;
    if left == 0 {
        return Ok(Outcome::SoldOut);
    }
    // If the lease was lost by now, somebody else may be selling this very unit: do not write.
    if lease.is_some_and(|lease| lease.check().is_err()) {
        return Ok(Outcome::Lost);
    }
    // We may still be paused right here, for longer than our lease lasts, and no lock can help
    // that. So the order carries the fencing token, and the store refuses it if somebody with a
    // higher one has been there meanwhile.
    let taken = store.place_order(worker, token, left - 1).await?;
    Ok(if taken { Outcome::Sold } else { Outcome::Refused })
}

/// The same without the lock, to see what it prevents.
async fn buy_without_lock(store: &Store, job: &Job) -> Result<Turn, Failure> {
    let from = job.now();
    let outcome = sell_one_unit(store, job.worker, None).await?;
    Ok(Turn { worker: job.worker, outcome, token: 0, asked: from, from, until: job.now() })
}

/// Takes the lock and never gives it back, as a worker does that crashes.
async fn hold_for_ever(lock: &Lock, job: &Job) -> Result<Turn, Failure> {
    let asked = job.now();
    let lease = lock.acquire().await?;
    let token = lease.token().get();
    std::mem::forget(lease); // dropping it would release it; a crash drops nothing
    let from = job.now();
    Ok(Turn { worker: job.worker, outcome: Outcome::Crashed, token, asked, from, until: from })
}
