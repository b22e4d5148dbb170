//! Many processes take one name at once, for the first time ever: also the collection is not there
//! yet. One of them inserts the document, and the others must not fail on that.

use anyhow::{Result, bail};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::{ms, now};
use fencelock_test_support::records::Record;

use crate::agents::{News, Order};
use crate::mongo_set::MongoSet;
use crate::outcome::Outcome;
use crate::workers::{judge_records, waiting};

#[derive(Clone, clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 50)]
    processes: usize,
    /// How many names are taken so, one after the other
    #[arg(long, default_value_t = 4)]
    names: u32,
}

pub(crate) async fn run(options: Options) -> Result<Outcome> {
    let set = waiting(MongoSet::start);
    let mut outcome = Outcome::default();
    let mut agents = Vec::new();
    for _ in 0..options.processes {
        agents.push(Agent::start(&["agent", "taker", &set.url(), "10000", "3"])?);
    }
    for agent in &mut agents {
        let News::Ready = agent.hear(ms(90_000)).await? else { bail!("not ready") };
    }
    let mut spread = 0.0_f64;
    for round in 0..options.names {
        let order = |at| Order::Take { name: format!("first-{round}"), at };
        let at = now() + 500_000_000;
        for agent in &mut agents {
            agent.tell(&order(at)).await?;
        }
        let mut records: Vec<Record> = Vec::new();
        for agent in &mut agents {
            match agent.hear(ms(90_000)).await {
                Ok(News::Done { record, verdict }) => {
                    outcome.promise(verdict == "OK", || format!("a release said {verdict}"));
                    records.push(record);
                }
                Ok(other) => outcome.promise(false, || format!("an acquire: {other:?}")),
                Err(error) => outcome.promise(false, || format!("no answer: {error:#}")),
            }
        }
        let asked = || records.iter().map(|record| record.asked);
        let (first, last) = (asked().min().unwrap_or(0), asked().max().unwrap_or(0));
        spread = spread.max((last - first) as f64 / 1e6);
        let mut figures = Outcome::default();
        let count = records.len();
        judge_records(&mut records, &mut figures);
        outcome.promise(count == options.processes, || format!("{count} leases"));
        outcome.promise(records.len() == count, || "a lease was over when it was seen".into());
        if round == 0 {
            outcome.absorb(figures);
        } else {
            outcome.violations(figures.take_violations());
        }
    }
    outcome.figure("processes x names", format!("{} x {}", options.processes, options.names));
    outcome.figure("asked within, at most", format!("{spread:.0} ms"));
    Ok(outcome)
}
