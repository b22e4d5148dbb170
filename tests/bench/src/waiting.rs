//! Contenders that wait for a lock that nobody gives back.

use std::time::Duration;

use anyhow::Result;
use fencelock::{Client, Lease, LockOptions};
use fencelock_test_support::agent::Agent;
use fencelock_test_support::clock::ms;
use fencelock_test_support::racer;

pub(crate) const CONTENDERS: usize = 8;

/// A lock that somebody holds for a long time.
pub(crate) struct Held {
    client: Client,
    lease: Lease,
    url: String,
}

impl Held {
    pub(crate) async fn new(url: &str, name: &str) -> Result<Self> {
        let client = Client::connect(url).await?;
        // So long that the holder's own renewal does not come into the counts.
        let patient = LockOptions::new().ttl(Duration::from_secs(120));
        let lease = client.lock_with(name, patient)?.acquire().await?;
        client.inspect(name).await?;
        Ok(Held { client, lease, url: url.to_owned() })
    }

    /// Contenders for it: all in one other process, through one client, with the default ttl.
    pub(crate) async fn contenders(self) -> Result<Waiting> {
        let name = self.lease.name();
        let mut agent = racer::agent(&self.url, name).await?;
        racer::start(&mut agent, CONTENDERS as u32, None).await?;
        while self.client.inspect(name).await?.queue.len() < CONTENDERS {
            tokio::time::sleep(ms(5)).await;
        }
        Ok(Waiting { held: self, agent })
    }
}

/// They and who makes them wait.
pub(crate) struct Waiting {
    held: Held,
    agent: Agent,
}

impl Waiting {
    /// Of the contenders.
    pub(crate) fn pid(&self) -> u32 {
        self.agent.pid()
    }

    pub(crate) async fn end(self) -> Result<()> {
        self.held.lease.release().await?;
        racer::finish(&mut [self.agent]).await?;
        self.held.client.close().await;
        Ok(())
    }
}

/// Events of all of them as a rate of each.
pub(crate) fn per_contender(events: u64, seconds: u64) -> f64 {
    events as f64 / seconds as f64 / CONTENDERS as f64
}
