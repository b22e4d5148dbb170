//! Faults of every kind at random: the primary is stopped and goes on, steps down, is killed and
//! started again; both secondaries are stopped, so that no write gets a majority.

use std::time::{Duration, Instant};

use anyhow::Result;
use fencelock_test_support::clock::{ms, now};

use crate::mongo_set::MongoSet;
use crate::outcome::Outcome;
use crate::workers::{Progress, Workers, waiting};

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 90)]
    seconds: u64,
    #[arg(long, default_value_t = 8)]
    processes: usize,
}

const TTL: Duration = ms(3_000);

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let mut set = waiting(MongoSet::start);
    let workers = Workers::start(&set.url(), "tormented", TTL, options.processes).await?;
    let mut progress = Progress::default();
    let mut counts = [0_u32; 4];
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(options.seconds) {
        tokio::time::sleep(ms(fastrand::u64(50..1_500))).await;
        // The first ones in turn, so that each kind happens in every run.
        let done: u32 = counts.iter().sum();
        let kind = if done < 4 { done as usize } else { fastrand::usize(0..4) };
        counts[kind] += 1;
        let primary = waiting(|| set.primary());
        let fault = now();
        match kind {
            0 => {
                set.members[primary].freeze();
                tokio::time::sleep(ms(fastrand::u64(300..5_000))).await;
                set.members[primary].thaw();
            }
            1 => {
                // Refused when no secondary has caught up, which is as good a moment as any.
                let command = mongodb::bson::doc! { "replSetStepDown": 3, "force": true };
                let _ = waiting(|| set.members[primary].try_admin(command));
            }
            2 => {
                set.members[primary].kill();
                tokio::time::sleep(ms(fastrand::u64(0..2_500))).await;
                waiting(|| set.members[primary].restart());
            }
            _ => {
                let others: Vec<usize> = (0..set.members.len()).filter(|n| *n != primary).collect();
                others.iter().for_each(|n| set.members[*n].freeze());
                tokio::time::sleep(ms(fastrand::u64(300..5_000))).await;
                others.iter().for_each(|n| set.members[*n].thaw());
            }
        }
        waiting(|| set.settle());
        let over = now();
        let grant = workers.grants_since(over, 2).await?;
        progress.note(fault, over, grant);
    }
    let mut outcome = Outcome::default();
    outcome.figure(
        "primary stopped / stepped down / killed; secondaries stopped",
        format!("{} / {} / {}; {}", counts[0], counts[1], counts[2], counts[3]),
    );
    progress.judge(TTL + TTL / 3 + ms(1_000), &mut outcome);
    workers.finish(&mut outcome).await?;
    Ok(outcome)
}
