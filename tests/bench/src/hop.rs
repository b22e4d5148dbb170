//! One message from a process to another through PUBLISH: what a hand-over costs at the least.

use anyhow::{Context, Result, ensure};
use fencelock_test_support::agent::{Agent, Parent};
use fencelock_test_support::clock::{ms, now};
use fencelock_test_support::redis_server::connection;
use futures_util::StreamExt;
use redis::aio::{MultiplexedConnection, PubSubStream};

/// Two processes that send each other messages.
pub(crate) struct PingPong {
    ping: Agent,
    _pong: Agent,
}

impl PingPong {
    pub(crate) async fn start(url: &str) -> Result<Self> {
        let mut pong = Agent::start(&["agent", "pong", url])?;
        let mut ping = Agent::start(&["agent", "ping", url])?;
        for agent in [&mut pong, &mut ping] {
            let ready: String = agent.hear(ms(10_000)).await?;
            ensure!(ready == "ready", "an agent said {ready}");
        }
        Ok(PingPong { ping, _pong: pong })
    }

    /// Plays for a while; microseconds from before PUBLISH to the arrival in the other process.
    pub(crate) async fn play(&mut self, time: u64) -> Result<Vec<f64>> {
        self.ping.tell(&time).await?;
        self.ping.hear(ms(60_000)).await
    }
}

struct Table {
    publish: MultiplexedConnection,
    messages: PubSubStream,
}

impl Table {
    async fn subscribe(url: &str, side: &str) -> Result<Self> {
        let mut listen = redis::Client::open(url)?.get_async_pubsub().await?;
        listen.subscribe(side).await?;
        Ok(Table { publish: connection(url).await?, messages: listen.into_on_message() })
    }

    /// Sends the time, and does not wait for the reply before the answer.
    async fn hit(&mut self, side: &str) -> Result<u64> {
        let message = now().to_string();
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(side).arg(message);
        let (sent, answer) =
            tokio::join!(self.publish.send_packed_command(&publish), self.messages.next());
        sent?;
        let answer = answer.context("the subscription broke")?;
        let arrived = now();
        let sent: u64 = answer.get_payload::<String>()?.parse()?;
        Ok(arrived - sent)
    }
}

pub(crate) async fn ping(url: &str) -> Result<()> {
    let mut parent = Parent::new();
    let mut table = Table::subscribe(url, "bench-ping").await?;
    Parent::tell(&"ready")?;
    while let Some(time) = parent.hear::<u64>().await? {
        let end = now() + time * 1_000_000;
        let mut hops = Vec::new();
        while now() < end {
            hops.push(table.hit("bench-pong").await? as f64 / 1e3);
        }
        Parent::tell(&hops)?;
    }
    Ok(())
}

pub(crate) async fn pong(url: &str) -> Result<()> {
    let _parent = Parent::new();
    let mut table = Table::subscribe(url, "bench-pong").await?;
    Parent::tell(&"ready")?;
    table.messages.next().await.context("the subscription broke")?;
    loop {
        table.hit("bench-ping").await?;
    }
}
