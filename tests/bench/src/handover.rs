//! Release called → next acquire returned, against one bare hop of a message between processes.

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
const TURN_MS: u64 = 300;
/// Hand-overs in the chains of one turn.
const CHAINS: u32 = 128;

struct Field {
    processes: u32,
    tasks: u32,
    agents: Vec<Agent>,
    all: Samples,
    /// Everybody takes one lease and does not come back, so that only the hand-over is timed.
    chain: Samples,
    medians: Vec<f64>,
    leases: u64,
    calls: u64,
}

impl Field {
    fn name(&self) -> String {
        name(self.processes, self.tasks)
    }
}

fn name(processes: u32, tasks: u32) -> String {
    format!("bench/baton-{processes}-{tasks}")
}

/// Queues everybody behind a lease and then releases that.
async fn chain_of(field: &mut Field, client: &Client, lock: &Lock) -> Result<Vec<Record>> {
    let lease = lock.acquire().await?;
    for agent in &mut field.agents {
        racer::start(agent, field.tasks, None).await?;
    }
    let everybody = (field.processes * field.tasks) as usize;
    while client.inspect(lock.name()).await?.queue.len() < everybody {
        tokio::time::sleep(ms(1)).await;
    }
    lease.release().await?;
    racer::finish(&mut field.agents).await
}

pub(crate) async fn measure(url: &str, rounds: u32, report: &mut Report) -> Result<()> {
    report.section("handover", "Hand-over between processes");
    let mut fields = Vec::new();
    for &(processes, tasks) in FIELDS {
        let mut agents = Vec::new();
        for _ in 0..processes {
            agents.push(racer::agent(url, &name(processes, tasks)).await?);
        }
        let (all, chain, medians) = Default::default();
        fields.push(Field { processes, tasks, agents, all, chain, medians, leases: 0, calls: 0 });
    }
    let mut ping_pong = PingPong::start(url).await?;
    let mut connection = connection(url).await?;
    let mut hops = Samples::default();
    let mut ratios = vec![(Samples::default(), Samples::default()); fields.len()];
    let client = Client::connect(url).await?;
    let mut flatness = Samples::default();
    for round in 0..=rounds {
        for (field, ratios) in fields.iter_mut().zip(&mut ratios) {
            let lock = client.lock(&field.name())?;
            let mut hop: Samples = ping_pong.play(TURN_MS / 2).await?.into_iter().collect();
            let before = calls(&mut connection, SCRIPTS).await?;
            let mut records = racer::race(&mut field.agents, field.tasks, Some(TURN_MS)).await?;
            let spent = calls(&mut connection, SCRIPTS).await? - before;
            let mut times = hand_overs(&mut records);
            let mut chain = Samples::default();
            for _ in 0..CHAINS / (field.processes * field.tasks) {
                let mut records = chain_of(field, &client, &lock).await?;
                hand_overs(&mut records).values().iter().for_each(|t| chain.add(*t));
            }
            ping_pong.play(TURN_MS / 2).await?.into_iter().for_each(|h| hop.add(h));
            // The first round warms up: it subscribes.
            if round > 0 {
                ratios.0.add(times.median() / hop.median());
                ratios.1.add(chain.median() / hop.median());
                chain.values().iter().for_each(|t| field.chain.add(*t));
                field.medians.push(times.median());
                field.leases += records.len() as u64;
                field.calls += spent;
                times.values().iter().for_each(|t| field.all.add(*t));
                hop.values().iter().for_each(|h| hops.add(*h));
            }
        }
        if round > 0 {
            let last = |i: usize| fields[i].medians.last().copied().unwrap_or(f64::NAN);
            flatness.add(last(fields.len() - 1) / last(0));
        }
    }
    for (field, ratios) in fields.iter_mut().zip(&mut ratios) {
        let contenders = field.processes * field.tasks;
        let figures = format!(
            "p50 {:.0}, p99 {:.0} against {:.0} µs",
            field.all.median(),
            field.all.quantile(0.99),
            hops.median()
        );
        let title = format!("hand-over, {contenders} contenders / one bare PUBLISH hop");
        report.row(&title, figures, Target::AtMost(1.5), ratios.0.median());
        let figures = format!("p50 {:.0} µs", field.chain.median());
        let title = format!("the same, {contenders} in a row that do not ask again");
        report.row(&title, figures, Target::AtMost(1.5), ratios.1.median());
    }
    let medians: Vec<_> = fields.iter_mut().map(|f| format!("{:.0}", f.all.median())).collect();
    let figures = format!("p50 {} µs", medians.join(" / "));
    report.row("hand-over, 64 contenders / 2", figures, Target::AtMost(1.3), flatness.median());
    for field in &fields {
        let contenders = field.processes * field.tasks;
        let figures = format!("{} calls, {} leases", field.calls, field.leases);
        let per = field.calls as f64 / field.leases as f64;
        let title = format!("script calls per contended cycle, {contenders} contenders");
        report.row(&title, figures, Target::AtMost(3.0), per);
    }
    let mut samples: Vec<_> =
        fields.iter().map(|f| (format!("{} contenders", f.processes * f.tasks), &f.all)).collect();
    let chains = fields.iter().map(|f| (format!("{} in a row", f.processes * f.tasks), &f.chain));
    samples.extend(chains);
    samples.push(("one bare PUBLISH hop".into(), &hops));
    report.keep("µs, release called to next acquire returned", &samples)
}
