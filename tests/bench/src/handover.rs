//! Release called → next acquire returned, between processes, against something bare.

use std::time::Instant;

use anyhow::Result;
use fencelock::{Client, Lock};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::ms;
use fencelock_test_support::racer;
use fencelock_test_support::records::{Record, hand_overs};
use fencelock_test_support::redis_server::{SCRIPTS, calls, connection};
use fencelock_test_support::samples::Samples;

use crate::hop::PingPong;
use crate::report::{Report, Target};

/// How many processes, and contenders in each.
const FIELDS: &[(u32, u32)] = &[(2, 1), (8, 1), (8, 8)];
pub(crate) const TURN_MS: u64 = 300;
/// Hand-overs in the chains of one turn, at most.
const CHAINS: u32 = 128;

/// So many contenders for one name, and N counters of what they cost.
pub(crate) struct Field<const N: usize> {
    processes: u32,
    tasks: u32,
    agents: Vec<Agent>,
    pub(crate) all: Samples,
    /// Everybody takes one lease and does not come back, so that only the hand-over is timed.
    chain: Samples,
    medians: Vec<f64>,
    /// Against the bare thing, by turns.
    ratios: Samples,
    chain_ratios: Samples,
    pub(crate) leases: u64,
    /// What was spent in all races.
    pub(crate) spent: [u64; N],
}

impl<const N: usize> Field<N> {
    async fn start(url: &str, processes: u32, tasks: u32) -> Result<Self> {
        let mut agents = Vec::new();
        for _ in 0..processes {
            agents.push(racer::agent(url, &name(processes, tasks)).await?);
        }
        let (all, chain, medians, ratios, chain_ratios) = Default::default();
        let (leases, spent) = (0, [0; N]);
        Ok(Field {
            processes,
            tasks,
            agents,
            all,
            chain,
            medians,
            ratios,
            chain_ratios,
            leases,
            spent,
        })
    }

    pub(crate) fn contenders(&self) -> u32 {
        self.processes * self.tasks
    }
}

fn name(processes: u32, tasks: u32) -> String {
    format!("bench/baton-{processes}-{tasks}")
}

/// Queues everybody behind a lease and then releases that.
async fn chain_of<const N: usize>(
    field: &mut Field<N>,
    client: &Client,
    lock: &Lock,
) -> Result<Vec<Record>> {
    let lease = lock.acquire().await?;
    for agent in &mut field.agents {
        racer::start(agent, field.tasks, None).await?;
    }
    let everybody = field.contenders() as usize;
    while client.inspect(lock.name()).await?.queue.len() < everybody {
        tokio::time::sleep(ms(1)).await;
    }
    lease.release().await?;
    racer::finish(&mut field.agents).await
}

/// What races with 2, 8 and 64 contenders gave.
pub(crate) struct Races<const N: usize> {
    pub(crate) fields: Vec<Field<N>>,
    bare: Samples,
    flatness: Samples,
}

/// Races in turns with something bare, which is measured for half a turn before and after each,
/// and counts what they cost.
pub(crate) async fn race<const N: usize>(
    url: &str,
    rounds: u32,
    mut bare: impl AsyncFnMut() -> Result<Samples>,
    mut count: impl AsyncFnMut() -> Result<[u64; N]>,
) -> Result<Races<N>> {
    let mut fields = Vec::new();
    for &(processes, tasks) in FIELDS {
        fields.push(Field::start(url, processes, tasks).await?);
    }
    let client = Client::connect(url).await?;
    let (mut all_bare, mut flatness) = (Samples::default(), Samples::default());
    for round in 0..=rounds {
        for field in &mut fields {
            let lock = client.lock(&name(field.processes, field.tasks))?;
            let mut of_bare = bare().await?;
            let before = count().await?;
            let mut records = racer::race(&mut field.agents, field.tasks, Some(TURN_MS)).await?;
            let after = count().await?;
            let mut times = hand_overs(&mut records);
            let mut chain = Samples::default();
            let end = Instant::now() + ms(TURN_MS);
            for _ in 0..CHAINS / field.contenders() {
                if !chain.is_empty() && Instant::now() > end {
                    break;
                }
                let mut records = chain_of(field, &client, &lock).await?;
                hand_overs(&mut records).values().iter().for_each(|t| chain.add(*t));
            }
            bare().await?.values().iter().for_each(|b| of_bare.add(*b));
            // The first round warms up: it subscribes.
            if round > 0 {
                field.ratios.add(times.median() / of_bare.median());
                field.chain_ratios.add(chain.median() / of_bare.median());
                chain.values().iter().for_each(|t| field.chain.add(*t));
                field.medians.push(times.median());
                field.leases += records.len() as u64;
                field.spent = std::array::from_fn(|i| field.spent[i] + after[i] - before[i]);
                times.values().iter().for_each(|t| field.all.add(*t));
                of_bare.values().iter().for_each(|b| all_bare.add(*b));
            }
        }
        if round > 0 {
            let last = |i: usize| fields[i].medians.last().copied().unwrap_or(f64::NAN);
            flatness.add(last(fields.len() - 1) / last(0));
        }
    }
    Ok(Races { fields, bare: all_bare, flatness })
}

impl<const N: usize> Races<N> {
    /// Two rows for each number of contenders, one for all, and the samples.
    pub(crate) fn report(
        &mut self,
        engine: &str,
        bare: &str,
        [target, flat]: [Target; 2],
        report: &mut Report,
    ) -> Result<()> {
        for field in &mut self.fields {
            let contenders = field.contenders();
            let figures = format!(
                "p50 {:.0}, p99 {:.0} against {:.0} µs",
                field.all.median(),
                field.all.quantile(0.99),
                self.bare.median()
            );
            let title = format!("{engine}hand-over, {contenders} contenders / {bare}");
            report.row(&title, figures, target, field.ratios.median());
            let figures = format!("p50 {:.0} µs", field.chain.median());
            let title = format!("{engine}the same, {contenders} in a row that do not ask again");
            report.row(&title, figures, target, field.chain_ratios.median());
        }
        let medians = self.fields.iter_mut().map(|f| format!("{:.0}", f.all.median()));
        let figures = format!("p50 {} µs", medians.collect::<Vec<_>>().join(" / "));
        let title = format!("{engine}hand-over, 64 contenders / 2");
        report.row(&title, figures, flat, self.flatness.median());
        let mut samples: Vec<_> = self
            .fields
            .iter()
            .map(|f| (format!("{} contenders", f.contenders()), &f.all))
            .collect();
        samples
            .extend(self.fields.iter().map(|f| (format!("{} in a row", f.contenders()), &f.chain)));
        samples.push((bare.to_owned(), &self.bare));
        report.keep("µs, release called to next acquire returned", &samples)
    }

    /// A row for each number of contenders, of one of the counters.
    pub(crate) fn report_spent(
        &self,
        counter: usize,
        (what, unit): (&str, &str),
        target: Target,
        report: &mut Report,
    ) {
        for field in &self.fields {
            let spent = field.spent[counter];
            let figures = format!("{spent} {unit}, {} leases", field.leases);
            let title = format!("{what}, {} contenders", field.contenders());
            report.row(&title, figures, target, spent as f64 / field.leases as f64);
        }
    }
}

pub(crate) async fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("handover", "Hand-over between processes");
    let mut ping_pong = PingPong::start(url).await?;
    let mut connection = connection(url).await?;
    let bare = async || Ok(ping_pong.play(TURN_MS / 2).await?.into_iter().collect());
    let mut races =
        race(url, rounds, bare, async || Ok([calls(&mut connection, SCRIPTS).await?])).await?;
    let targets = [Target::AtMost(1.5), Target::AtMost(1.3)];
    races.report("", "one bare PUBLISH hop", targets, report)?;
    let what = ("script calls per contended cycle", "calls");
    races.report_spent(0, what, Target::AtMost(3.0), report);
    Ok(())
}
