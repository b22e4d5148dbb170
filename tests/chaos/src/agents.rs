//! The child processes of the scenarios: what they do, and what they and the scenario say.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use fencelock::{Client, Lease, Lock, LockOptions, blocking};
use fencelock_test_support::agent::Parent;
use fencelock_test_support::clock::{ms_between, now};
use fencelock_test_support::racer;
use fencelock_test_support::records::Record;
use serde::{Deserialize, Serialize};

/// What a child does.
#[derive(Clone, Subcommand)]
pub(crate) enum Role {
    /// Takes the lock when told, and then checks it all the time
    Holder { url: String, name: String, ttl_ms: u64 },
    /// Waits for the lock when told, holds it for a while, and says when
    Contender {
        url: String,
        name: String,
        ttl_ms: u64,
        hold_ms: u64,
        #[arg(long)]
        threads: bool,
    },
    /// Takes the lock once, whichever it is told, at the instant it is told
    Taker { url: String, ttl_ms: u64, hold_ms: u64 },
    /// Takes the lock again and again, through every fault, until it is told to stop
    Worker { url: String, name: String, ttl_ms: u64 },
    /// Many tasks take the lock again and again
    Racer { url: String, name: String },
    /// Takes the lock again and again and notes each in a file, until it is killed
    Clerk { url: String, name: String, ttl_ms: u64, ledger: PathBuf, counter: PathBuf },
}

/// What the scenario tells a child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    Go,
    /// This lock, at this instant.
    Take {
        name: String,
        at: u64,
    },
    /// This many tasks at once, each for a while or for one lease.
    Race {
        tasks: u32,
        ms: Option<u64>,
    },
}

/// What a child tells the scenario.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum News {
    Ready,
    Held {
        token: u64,
    },
    /// The first check after a gap in which the process cannot have run.
    Woken {
        gap_ms: f64,
        held: bool,
        lost: bool,
        release: String,
    },
    /// An acquire that failed, by the code of its error.
    Failed {
        code: String,
        error: String,
    },
    /// One lease, from its beginning to its end.
    Done {
        record: Record,
        verdict: String,
    },
}

pub(crate) fn run(role: Role) -> Result<()> {
    let mut builder = match &role {
        Role::Contender { threads: true, .. } | Role::Holder { .. } | Role::Worker { .. } => {
            tokio::runtime::Builder::new_multi_thread()
        }
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build()?;
    runtime.block_on(async {
        match role {
            Role::Holder { url, name, ttl_ms } => {
                tokio::task::spawn_blocking(move || {
                    let handle = tokio::runtime::Handle::current();
                    holder(&handle, &url, &name, Duration::from_millis(ttl_ms))
                })
                .await?
            }
            Role::Contender { url, name, ttl_ms, hold_ms, .. } => {
                contender(&url, &name, Duration::from_millis(ttl_ms), hold_ms).await
            }
            Role::Taker { url, ttl_ms, hold_ms } => {
                taker(&url, Duration::from_millis(ttl_ms), hold_ms).await
            }
            Role::Worker { url, name, ttl_ms } => {
                worker(&url, &name, Duration::from_millis(ttl_ms)).await
            }
            Role::Racer { url, name } => racer::run(&url, &name).await,
            Role::Clerk { url, name, ttl_ms, ledger, counter } => {
                let lock = lock(&url, &name, Duration::from_millis(ttl_ms)).await?;
                clerk(&lock, &ledger, &counter).await
            }
        }
    })
}

async fn lock(url: &str, name: &str, ttl: Duration) -> Result<Lock> {
    Ok(Client::connect(url).await?.lock_with(name, LockOptions::new().ttl(ttl))?)
}

/// OK, or the code of the error.
pub(crate) fn verdict(release: &fencelock::Result<()>) -> String {
    release.as_ref().map_or_else(|e| e.kind().code(), |()| "OK").to_owned()
}

/// A plain thread, so that nothing of the library runs between the wake-up and the first check.
fn holder(handle: &tokio::runtime::Handle, url: &str, name: &str, ttl: Duration) -> Result<()> {
    let mut parent = Parent::new();
    let client = blocking::Client::connect(url)?;
    let lock = client.lock_with(name, LockOptions::new().ttl(ttl))?;
    Parent::tell(&News::Ready)?;
    while let Some(Order::Go) = handle.block_on(parent.hear())? {
        let lease = lock.acquire()?;
        Parent::tell(&News::Held { token: lease.token().get() })?;
        let mut last = now();
        loop {
            std::thread::sleep(Duration::from_millis(1));
            let before = now();
            let held = lease.is_held();
            let after = now();
            // Stopped in the middle of the check: which side of it, nobody knows. Check again.
            if ms_between(before, after) < 300.0 {
                let gap_ms = ms_between(last, before);
                if gap_ms > 1000.0 || !held {
                    let lost = lease.is_lost();
                    let release = verdict(&lease.release());
                    Parent::tell(&News::Woken { gap_ms, held, lost, release })?;
                    break;
                }
                last = after;
            }
        }
    }
    Ok(())
}

async fn contender(url: &str, name: &str, ttl: Duration, hold_ms: u64) -> Result<()> {
    let mut parent = Parent::new();
    let lock = lock(url, name, ttl).await?;
    Parent::tell(&News::Ready)?;
    while let Some(Order::Go) = parent.hear().await? {
        let asked = now();
        let lease = lock.acquire().await?;
        let acquired = now();
        let ended = hold(&lease, acquired, Duration::from_millis(hold_ms)).await;
        let verdict = verdict(&lease.release().await);
        let record = Record::of(&lease, asked, acquired, ended);
        Parent::tell(&News::Done { record, verdict })?;
    }
    Ok(())
}

async fn taker(url: &str, ttl: Duration, hold_ms: u64) -> Result<()> {
    let mut parent = Parent::new();
    let client = Client::connect(url).await?;
    Parent::tell(&News::Ready)?;
    while let Some(Order::Take { name, at }) = parent.hear().await? {
        let lock = client.lock_with(&name, LockOptions::new().ttl(ttl))?;
        let early = Duration::from_nanos(at.saturating_sub(now()));
        tokio::time::sleep(early).await;
        turn(&lock, Duration::from_millis(hold_ms)).await?;
    }
    Ok(())
}

/// One lease and its record, or the error.
async fn turn(lock: &Lock, time: Duration) -> Result<()> {
    let asked = now();
    match lock.acquire().await {
        Ok(lease) => {
            let acquired = now();
            let ended = hold(&lease, acquired, time).await;
            let verdict = verdict(&lease.release().await);
            let record = Record::of(&lease, asked, acquired, ended);
            Parent::tell(&News::Done { record, verdict })
        }
        Err(error) => {
            let code = error.kind().code().to_owned();
            Parent::tell(&News::Failed { code, error: error.to_string() })
        }
    }
}

async fn worker(url: &str, name: &str, ttl: Duration) -> Result<()> {
    let mut parent = Parent::new();
    let lock = lock(url, name, ttl).await?;
    Parent::tell(&News::Ready)?;
    tokio::select! {
        // Whatever the parent says, it is the end.
        _ = parent.hear::<Order>() => Ok(()),
        failed = turns(&lock, ttl) => failed,
    }
}

/// Ends only with an error.
async fn turns(lock: &Lock, ttl: Duration) -> Result<()> {
    loop {
        // Now and then so long that renewals fall into the faults.
        let long = fastrand::u32(0..12) == 0;
        let time = if long {
            ttl.mul_f64(0.3 + fastrand::f64())
        } else {
            Duration::from_millis(fastrand::u64(1..20))
        };
        turn(lock, time).await?;
        tokio::time::sleep(Duration::from_millis(fastrand::u64(0..20))).await;
    }
}

/// Keeps the lease for a while; until when it was held for certain.
async fn hold(lease: &Lease, acquired: u64, time: Duration) -> u64 {
    let mut held_at = acquired;
    loop {
        // Stamped before the check: afterwards it may be over.
        let at = now();
        if !lease.is_held() {
            return held_at;
        }
        held_at = at;
        if ms_between(acquired, at) >= time.as_millis() as f64 {
            return held_at;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Adds one to an unguarded counter inside the lock. Each line of the ledger is one write, so
/// that a kill leaves no half lines.
async fn clerk(lock: &Lock, ledger: &std::path::Path, counter: &std::path::Path) -> Result<()> {
    let _parent = Parent::new();
    let mut ledger = std::fs::OpenOptions::new().append(true).open(ledger)?;
    let mut note = move |what: &str, token: u64, count: u64| {
        ledger.write_all(
            format!("{what} {} {} {token} {count}\n", now(), std::process::id()).as_bytes(),
        )
    };
    loop {
        let lease = lock.acquire().await?;
        let token = lease.token().get();
        if !lease.is_held() {
            continue;
        }
        note("enter", token, 0)?;
        let count: u64 = std::fs::read_to_string(counter)?.trim().parse()?;
        let hold = Duration::from_micros(fastrand::u64(500..30_000));
        let end = tokio::time::Instant::now() + hold;
        while tokio::time::Instant::now() < end && lease.is_held() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if lease.is_held() {
            // In one step, so that a kill leaves the old count or the new one.
            let new = counter.with_extension(std::process::id().to_string());
            std::fs::write(&new, format!("{}\n", count + 1))?;
            std::fs::rename(&new, counter)?;
            note("exit", token, count + 1)?;
        } else {
            note("lost", token, 0)?;
        }
        let _ = lease.release().await;
    }
}
