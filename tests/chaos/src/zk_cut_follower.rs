//! The server of a holder is cut off from the others, or stopped: a follower, which goes on
//! serving for a while, or the leader, which answers what needs no quorum. The holder has to know
//! that its lease is over before anybody else is granted.

use std::time::{Duration, Instant};

use anyhow::Result;
use fencelock::{Client, LockOptions};
use fencelock_test_support::clock::ms;

use crate::lead::{Leads, Pair};
use crate::outcome::Outcome;
use crate::workers::waiting;
use crate::zookeeper_ensemble::ZooKeeperEnsemble;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    /// How often a follower is cut off or stopped, in turn
    #[arg(long, default_value_t = 20)]
    times: u32,
    /// How often the leader is cut off
    #[arg(long, default_value_t = 6)]
    leader_times: u32,
}

const TTL: Duration = ms(2_000);

/// What happens to the holder's server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    FollowerCut,
    FollowerStopped,
    LeaderCut,
}

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let mut ensemble = waiting(ZooKeeperEnsemble::start);
    let mut outcome = Outcome::default();
    let [mut cut, mut stopped, mut leader] = [Leads::default(), Leads::default(), Leads::default()];
    for i in 0..options.times {
        if i % 2 == 0 {
            one(&mut ensemble, Fault::FollowerCut, &mut cut).await?;
        } else {
            one(&mut ensemble, Fault::FollowerStopped, &mut stopped).await?;
        }
    }
    for _ in 0..options.leader_times {
        one(&mut ensemble, Fault::LeaderCut, &mut leader).await?;
    }
    cut.judge("follower cut off", &mut outcome);
    stopped.judge("follower stopped", &mut outcome);
    leader.judge("leader without quorum", &mut outcome);
    Ok(outcome)
}

async fn one(ensemble: &mut ZooKeeperEnsemble, fault: Fault, leads: &mut Leads) -> Result<()> {
    let leader = waiting(|| ensemble.leader());
    let victim = match fault {
        Fault::LeaderCut => leader,
        _ => {
            let followers = waiting(|| ensemble.followers());
            followers[fastrand::usize(0..followers.len())]
        }
    };
    let others = (0..ensemble.members.len()).filter(|n| *n != victim);
    let hosts: Vec<String> = others.map(|n| ensemble.members[n].host()).collect();
    let holder = connect(&ensemble.members[victim].url()).await?;
    let next = connect(&format!("zookeeper://{}/", hosts.join(","))).await?;
    let options = || LockOptions::new().ttl(TTL);
    let (first, second) = (holder.lock_with("cut", options())?, next.lock_with("cut", options())?);
    let pair = Pair::start(&first, &second).await?;
    while next.inspect("cut").await?.queue.is_empty() {
        tokio::time::sleep(ms(5)).await;
    }
    // At any moment between two beats.
    tokio::time::sleep(ms(fastrand::u64(0..1_500))).await;
    if fault == Fault::FollowerStopped {
        ensemble.members[victim].freeze();
    } else {
        ensemble.isolate(victim);
    }
    let finished = pair.finish(leads).await;
    if fault == Fault::FollowerStopped {
        ensemble.members[victim].thaw();
    } else {
        ensemble.links().heal();
    }
    waiting(|| ensemble.settle());
    drop((holder, next));
    finished
}

/// A member that has just come back refuses sessions for a while.
async fn connect(url: &str) -> Result<Client> {
    let start = Instant::now();
    loop {
        match Client::connect(url).await {
            Ok(client) => return Ok(client),
            Err(error) if start.elapsed() > Duration::from_secs(30) => return Err(error.into()),
            Err(_) => tokio::time::sleep(ms(50)).await,
        }
    }
}
