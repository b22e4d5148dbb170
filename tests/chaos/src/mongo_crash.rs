//! Processes are killed at random moments, and many of them together.

use std::time::Duration;

use anyhow::Result;
use fencelock_test_support::clock::ms;

use crate::crash::{self, Site};
use crate::mongo_set::MongoSet;
use crate::outcome::Outcome;
use crate::workers::waiting;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 8)]
    processes: usize,
    /// For how long processes are killed
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

const TTL: Duration = ms(3_000);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let set = waiting(MongoSet::start);
    let site = Site {
        url: set.url(),
        ttl: TTL,
        one: TTL + ms(1_000),
        // The sign of life of the last look, then one claim window, then one look period.
        many: TTL * 2 + TTL / 3 + ms(1_000),
        together: options.processes * 3 / 4,
    };
    crash::run_at(&site, options.processes, options.seconds).await
}
