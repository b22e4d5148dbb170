//! A process that waits for the lock is stopped. A hand-off grants it the lock, which lapses
//! unclaimed and goes to the next one. Then it is woken, to a message that is no longer true:
//! there must never be two holders.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use fencelock::{Client, Lock, LockInfo, LockOptions};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::{ms, ms_between, now};
use fencelock_test_support::records::{Record, disorder, overlaps};
use fencelock_test_support::redis_server::RedisServer;
use futures_util::future::try_join_all;

use crate::agents::{News, Order};
use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How often a contender is woken after it was passed over
    #[arg(long, default_value_t = 20)]
    tries: u32,
    /// How often a contender is woken at a random moment around the end of its grant
    #[arg(long, default_value_t = 40)]
    edge_tries: u32,
    /// How many contenders are stopped side by side
    #[arg(long, default_value_t = 5)]
    lanes: u32,
}

const TTL: Duration = ms(1000);

#[derive(Default)]
struct Tally {
    passed_over: u32,
    claimed: u32,
    outcome: Outcome,
}

/// When the contender is woken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// Once the next one holds the lock.
    PassedOver,
    /// When its grant is about to lapse, or just has.
    Edge,
}

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let server = RedisServer::start()?;
    let each = |tries: u32| tries.div_ceil(options.lanes);
    let (stale, edge) = (each(options.tries), each(options.edge_tries));
    let lanes = (0..options.lanes)
        .map(|i| lane(server.url(), format!("waited-{i}"), stale, edge, i % 2 == 1));
    let mut all = Tally::default();
    for tally in try_join_all(lanes).await? {
        all.passed_over += tally.passed_over;
        all.claimed += tally.claimed;
        all.outcome.absorb(tally.outcome);
    }
    let Tally { passed_over, claimed, mut outcome } = all;
    outcome.figure("woken after the next one had got the lock", passed_over.to_string());
    outcome.figure("woken before that, and took the lock in turn", claimed.to_string());
    outcome.promise(passed_over >= options.tries, || "too few were passed over".into());
    Ok(outcome)
}

async fn lane(url: String, name: String, stale: u32, edge: u32, threads: bool) -> Result<Tally> {
    let mut arguments = vec!["agent", "contender", &url, &name, "1000", "60"];
    if threads {
        arguments.push("--threads");
    }
    let mut agent = Agent::start(&arguments)?;
    let News::Ready = agent.hear(ms(10_000)).await? else { bail!("not ready") };
    let options = || LockOptions::new().ttl(TTL);
    let first = Client::connect(&url).await?.lock_with(&name, options())?;
    let next_client = Client::connect(&url).await?;
    let next = next_client.lock_with(&name, options())?;
    let mut tally = Tally::default();
    let wakes = (0..stale).map(|_| Wake::PassedOver).chain((0..edge).map(|_| Wake::Edge));
    for wake in wakes {
        one_try(&mut agent, &next_client, &first, &next, wake, &mut tally).await?;
    }
    Ok(tally)
}

async fn one_try(
    agent: &mut Agent,
    client: &Client,
    first: &Lock,
    next: &Lock,
    wake: Wake,
    tally: &mut Tally,
) -> Result<()> {
    let lease = first.acquire().await?;
    agent.tell(&Order::Go).await?;
    until(client, next.name(), |info| info.queue.len() == 1).await?;
    let waiting = next.clone();
    let asked = now();
    let next = tokio::spawn(async move {
        let lease = waiting.acquire().await?;
        let acquired = now();
        anyhow::Ok((lease, acquired))
    });
    until(client, first.name(), |info| info.queue.len() == 2).await?;
    // Its last look may have been up to a look period ago.
    tokio::time::sleep(ms(fastrand::u64(0..330))).await;
    agent.freeze()?;
    lease.release().await?;
    let released = now();

    // The next one holds the lock for a while after the wake-up, whenever it gets it.
    let hold = |next: tokio::task::JoinHandle<Result<(fencelock::Lease, u64)>>, time: Duration| async move {
        let (lease, acquired) = next.await??;
        tokio::time::sleep(time).await;
        let held = lease.is_held();
        let ended = now();
        lease.release().await?;
        anyhow::Ok((Record::of(&lease, asked, acquired, ended), held))
    };
    let (of_next, held) = match wake {
        Wake::PassedOver => {
            let (lease, acquired) = next.await??;
            tokio::time::sleep(ms(fastrand::u64(0..300))).await;
            agent.thaw()?;
            tokio::time::sleep(ms(400)).await;
            let held = lease.is_held();
            let ended = now();
            lease.release().await?;
            (Record::of(&lease, asked, acquired, ended), held)
        }
        Wake::Edge => {
            let holding = tokio::spawn(hold(next, ms(200)));
            tokio::time::sleep(ms(fastrand::u64(500..1100))).await;
            agent.thaw()?;
            holding.await??
        }
    };
    let News::Done { record: of_agent, verdict } = agent.hear(ms(20_000)).await? else {
        bail!("no lease")
    };
    if of_agent.token > of_next.token {
        tally.passed_over += 1
    } else {
        tally.claimed += 1
    }
    let outcome = &mut tally.outcome;
    outcome.promise(held, || "the next one lost its lease".into());
    outcome.promise(verdict == "OK" || of_agent.ended == of_agent.acquired, || {
        format!("the woken one's release said {verdict}")
    });
    let late = ms_between(released, of_next.acquired);
    if of_agent.token > of_next.token {
        outcome.promise(late <= TTL.as_millis() as f64 + 1000.0, || {
            format!("a stopped contender blocked for {late:.0} ms")
        });
    }
    let records: &mut [Record] = &mut [of_next, of_agent];
    outcome.violations(overlaps(records));
    outcome.violations(disorder(records));
    Ok(())
}

/// Waits until the lock looks like this.
async fn until(client: &Client, name: &str, shows: impl Fn(&LockInfo) -> bool) -> Result<()> {
    for _ in 0..5000 {
        if shows(&client.inspect(name).await.context("inspect")?) {
            return Ok(());
        }
        tokio::time::sleep(ms(2)).await;
    }
    bail!("the queue did not come about")
}
