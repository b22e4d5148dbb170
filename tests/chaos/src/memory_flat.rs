//! Many names, one after the other, on `memory:`: what is free and not waited for takes no memory.

use std::time::Instant;

use anyhow::Result;
use fencelock::Client;
use fencelock_test_support::process::resident_bytes;

use crate::outcome::Outcome;

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 1_000_000)]
    names: u32,
}

/// What the allocator may add by itself.
const SLACK: u64 = 2 << 20;

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let client = Client::connect("memory:").await?;
    let start = Instant::now();
    let mut sizes = Vec::new();
    for i in 0..options.names {
        client.lock(&format!("order/{i}"))?.acquire().await?.release().await?;
        if (i + 1) % (options.names / 10).max(1) == 0 {
            sizes.push(resident_bytes()?);
        }
    }
    let took = start.elapsed().as_secs_f64();
    let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut outcome = Outcome::default();
    outcome.figure("acquired and released, each a new name", options.names.to_string());
    outcome.figure("one takes", format!("{:.2} µs", took * 1e6 / f64::from(options.names)));
    outcome.figure(
        "memory after a tenth, after all",
        format!("{:.1} MiB, {:.1} MiB", mib(first), mib(last)),
    );
    outcome.promise(last <= first + SLACK, || format!("memory grows: {sizes:?}"));
    Ok(outcome)
}
