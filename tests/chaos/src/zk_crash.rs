//! Processes are killed at random moments, and many of them together: their sessions end at the
//! same time, so that many cost the others no more than one does.

use std::time::Duration;

use anyhow::Result;
use fencelock_test_support::clock::ms;

use crate::crash::{self, Site};
use crate::outcome::Outcome;
use crate::workers::waiting;
use crate::zookeeper_ensemble::ZooKeeperEnsemble;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 8)]
    processes: usize,
    /// For how long processes are killed
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

const TTL: Duration = ms(2_000);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let ensemble = waiting(ZooKeeperEnsemble::start);
    let limit = TTL * 2 + ms(1_000);
    let site = Site {
        url: ensemble.url(),
        ttl: TTL,
        one: limit,
        many: limit,
        together: options.processes * 3 / 4,
    };
    crash::run_at(&site, options.processes, options.seconds).await
}
