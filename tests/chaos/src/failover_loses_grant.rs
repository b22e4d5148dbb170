//! The replication link is cut, the primary is killed and the replica promoted, again and again.
//! Clients reach the primary at one address that follows it, as a virtual IP does.
//!
//! In most rounds the lock is taken after the link was cut, so that the grant is lost with its
//! server; in some before, so that the new primary has it and the holder goes on; in some at the
//! same moment.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use fencelock::{Client, ErrorKind, Lease, Lock, LockOptions};
use fencelock_test_support::clock::ms;
use fencelock_test_support::redis_server::RedisServer;
use fencelock_test_support::toxiproxy::Proxy;

use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How often a grant that only the primary has is lost, with and without acknowledgement each;
    /// a fifth as often the lock is taken before the link is cut, and as often at the same moment
    #[arg(long, default_value_t = 50)]
    rounds: u32,
}

/// When the lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    AfterTheCut,
    Before,
    Meanwhile,
}

impl Taken {
    fn of(round: u32) -> Self {
        match round % 7 {
            5 => Taken::Before,
            6 => Taken::Meanwhile,
            _ => Taken::AfterTheCut,
        }
    }
}

/// Longer than any round, so that no lease ends by itself.
const TTL: Duration = Duration::from_secs(60);
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for replicas in [0, 1] {
        let found = Series::new(replicas).await?.run(options.rounds * 7 / 5).await?;
        let figure = |what: &str| format!("replicas = {replicas}: {what}");
        outcome.figure(figure("primaries killed"), found.killed.to_string());
        outcome.figure(figure("grants, all with tokens of their own"), found.tokens.to_string());
        outcome.figure(figure("grants refused, not acknowledged"), found.refused.to_string());
        outcome.figure(figure("grants that the new primary had"), found.kept.to_string());
        outcome.figure(figure("grants lost"), found.lost.to_string());
        outcome.figure(figure("two held for a while"), found.overlaps.to_string());
        outcome.promise(replicas == 0 || found.overlaps == 0, || {
            format!("{} overlaps although the replica had acknowledged", found.overlaps)
        });
        // Else the faults were none, and the figures above mean nothing.
        let lossy = options.rounds;
        let forgotten = if replicas == 0 { found.lost } else { found.refused };
        outcome.promise(forgotten >= lossy, || {
            format!("only {forgotten} of {lossy} failovers lost anything")
        });
        outcome.violations(found.broken);
    }
    Ok(outcome)
}

#[derive(Default)]
struct Found {
    killed: u32,
    tokens: usize,
    refused: u32,
    kept: u32,
    lost: u32,
    overlaps: u32,
    broken: Vec<String>,
}

/// One pair of servers after the other, for one setting.
struct Series {
    primary: RedisServer,
    /// Where clients go.
    address: Proxy,
    replicas: u32,
    holder: Lock,
    other: Lock,
}

impl Series {
    async fn new(replicas: u32) -> Result<Self> {
        let primary = RedisServer::start()?;
        let address = Proxy::to(primary.port())?;
        let url = format!("{}?fl.replicas={replicas}", address.redis_url());
        let options = LockOptions::new().ttl(TTL);
        let holder = Client::connect(&url).await?.lock_with("a", options.clone())?;
        let other = Client::connect(&url).await?.lock_with("a", options)?;
        Ok(Series { primary, address, replicas, holder, other })
    }

    async fn run(mut self, rounds: u32) -> Result<Found> {
        let mut found = Found::default();
        let mut tokens = BTreeSet::new();
        let mut granted = |lease: &Lease, found: &mut Found| {
            let token = lease.token().get();
            if tokens.last().is_some_and(|last| token <= *last) {
                found.broken.push(format!("token {token} after {:?}", tokens.last()));
            }
            tokens.insert(token);
            found.tokens = tokens.len();
        };
        for round in 0..rounds {
            let (replica, link) = self.follow().await?;
            let taken = Taken::of(round);
            let held = match taken {
                Taken::Before => {
                    let lease = self.take(&self.holder).await?;
                    in_step(&self.primary).await?;
                    link.cut()?;
                    Some(lease)
                }
                Taken::AfterTheCut => {
                    link.cut()?;
                    alone(&self.primary).await?;
                    self.try_once(&mut found).await?
                }
                Taken::Meanwhile => {
                    let pause = Duration::from_micros(fastrand::u64(0..3_000));
                    let link = &link;
                    let cut = async move {
                        tokio::time::sleep(pause).await;
                        tokio::task::block_in_place(|| link.cut())
                    };
                    let (held, cut) = tokio::join!(self.try_once(&mut found), cut);
                    cut?;
                    held?
                }
            };
            if let Some(lease) = &held {
                granted(lease, &mut found);
            }
            // The old one is killed when it is dropped.
            self.primary = replica;
            found.killed += 1;
            command(&self.primary, &["REPLICAOF", "NO", "ONE"]).await?;
            self.address.lead_to(self.primary.port())?;
            let kept = match &held {
                Some(lease) => holder_at(&self.primary).await?.contains(&lease.owner()),
                None => false,
            };
            if held.is_some() && !kept && (taken == Taken::Before || self.replicas > 0) {
                found.broken.push(format!("round {round}: a grant that the replica had is gone"));
            }
            // So that the next grant can be acknowledged.
            let (_replica, _link) = self.follow().await?;
            self.settle(held, kept, &mut found, &mut granted).await?;
        }
        Ok(found)
    }

    /// What the new primary makes of it.
    async fn settle(
        &self,
        held: Option<Lease>,
        kept: bool,
        found: &mut Found,
        granted: &mut impl FnMut(&Lease, &mut Found),
    ) -> Result<()> {
        if kept && let Some(lease) = &held {
            // Others see that it is held, and it is renewed.
            if until_answered(|| self.other.try_acquire()).await?.is_some() {
                found.overlaps += u32::from(lease.is_held());
                found.broken.push("a second lease beside one that the new primary has".to_owned());
            }
            until_answered(|| lease.renew()).await?;
            found.kept += 1;
            until_answered(|| lease.release()).await?;
        }
        let next = self.take(&self.other).await?;
        granted(&next, found);
        if !kept && let Some(lease) = &held {
            // Judged after the other one has it, and before its own next renewal.
            found.overlaps += u32::from(lease.is_held());
            found.lost += 1;
            let error = lost(lease).await?;
            if error != Some(ErrorKind::Lost) {
                found.broken.push(format!("a lost lease was told {error:?} in place of LOST"));
            }
        }
        if !next.is_held() {
            found.broken.push("the next lease was disturbed".to_owned());
        }
        until_answered(|| next.release()).await
    }

    /// A new replica through a link that can be cut, in step with the primary.
    async fn follow(&self) -> Result<(RedisServer, Proxy)> {
        let link = Proxy::to(self.primary.port())?;
        let replica = RedisServer::start()?;
        let port = link.port()?.to_string();
        command(&self.primary, &["CONFIG", "SET", "repl-diskless-sync-delay", "0"]).await?;
        command(&replica, &["REPLICAOF", "127.0.0.1", &port]).await?;
        in_step(&self.primary).await?;
        Ok((replica, link))
    }

    /// Waits for the lock, through a failover that is under way.
    async fn take(&self, lock: &Lock) -> Result<Lease> {
        until_answered(|| lock.acquire_timeout(PATIENCE)).await
    }

    /// One attempt while no replica follows.
    async fn try_once(&self, found: &mut Found) -> Result<Option<Lease>> {
        match self.holder.try_acquire().await {
            Ok(lease) => {
                ensure!(lease.is_some(), "the lock is not free");
                Ok(lease)
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                found.refused += 1;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Again and again until it is not the server's absence that speaks.
async fn until_answered<T, F>(mut request: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T, fencelock::Error>>,
{
    let start = Instant::now();
    loop {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.kind() != ErrorKind::Unavailable => return Err(error.into()),
            Err(error) if start.elapsed() > PATIENCE => return Err(error.into()),
            Err(_) => tokio::time::sleep(ms(5)).await,
        }
    }
}

/// What the holder of a lease that was forgotten is told; none if nothing.
async fn lost(lease: &Lease) -> Result<Option<ErrorKind>> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match lease.renew().await {
            Ok(()) => return Ok(None),
            Err(error) if error.kind() != ErrorKind::Unavailable => return Ok(Some(error.kind())),
            Err(_) => tokio::time::sleep(ms(5)).await,
        }
    }
    bail!("nothing was ever answered")
}

/// The value of the lock at this server.
async fn holder_at(server: &RedisServer) -> Result<String> {
    let mut connection = server.connection().await?;
    let value: Option<String> =
        redis::cmd("GET").arg("fencelock:a").query_async(&mut connection).await?;
    Ok(value.unwrap_or_default())
}

async fn command(server: &RedisServer, words: &[&str]) -> Result<()> {
    let mut connection = server.connection().await?;
    redis::Cmd::new().arg(words).query_async::<redis::Value>(&mut connection).await?;
    Ok(())
}

/// Waits until the replica has all that the primary has.
async fn in_step(primary: &RedisServer) -> Result<()> {
    let mut connection = primary.connection().await?;
    let start = Instant::now();
    // A write, because WAIT is about those of its own connection.
    let () = redis::cmd("SET").arg("in step?").arg(1).query_async(&mut connection).await?;
    while start.elapsed() < PATIENCE {
        let have: u32 = redis::cmd("WAIT").arg(1).arg(100).query_async(&mut connection).await?;
        if have == 1 {
            return Ok(());
        }
    }
    bail!("the replica does not follow")
}

/// Waits until the primary has noticed that nobody follows it.
async fn alone(primary: &RedisServer) -> Result<()> {
    let mut connection = primary.connection().await?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let info: String =
            redis::cmd("INFO").arg("replication").query_async(&mut connection).await?;
        if info.contains("connected_slaves:0") {
            return Ok(());
        }
        tokio::time::sleep(ms(5)).await;
    }
    bail!("the replica is still connected")
}
