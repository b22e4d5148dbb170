//! A proxy that delays, drops and resets, driven through Toxiproxy's HTTP API.

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// One proxy in front of a server, removed when this is dropped.
pub struct Proxy {
    api: String,
    name: String,
    address: String,
}

/// Which way a toxic works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

impl Proxy {
    /// A proxy in front of `port`, at the Toxiproxy that FENCELOCK_TEST_TOXIPROXY_URL names.
    pub fn to(port: u16) -> Result<Self> {
        let api = std::env::var("FENCELOCK_TEST_TOXIPROXY_URL")
            .context("FENCELOCK_TEST_TOXIPROXY_URL is not set; run this by tests/services/run")?;
        let name = format!("fencelock-{}-{}", std::process::id(), crate::clock::now());
        let proxy = json!({
            "name": name, "listen": "127.0.0.1:0", "upstream": format!("127.0.0.1:{port}"),
            "enabled": true,
        });
        let answer: Value =
            ureq::post(format!("{api}/proxies")).send_json(proxy)?.body_mut().read_json()?;
        let address = answer["listen"].as_str().context("no address of the proxy")?.to_owned();
        Ok(Proxy { api, name, address })
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> Result<u16> {
        let port = self.address.rsplit(':').next().unwrap_or_default();
        port.parse().context("no port of the proxy")
    }

    /// From now on it leads to another port; connections to the old one are cut.
    pub fn lead_to(&self, port: u16) -> Result<()> {
        self.change(json!({ "listen": self.address, "upstream": format!("127.0.0.1:{port}"), "enabled": true }))
    }

    /// Cuts all connections and takes no new ones.
    pub fn cut(&self) -> Result<()> {
        self.change(json!({ "enabled": false }))
    }

    fn change(&self, to: Value) -> Result<()> {
        ureq::post(format!("{}/proxies/{}", self.api, self.name)).send_json(to)?;
        Ok(())
    }

    /// The URL of the Redis server behind it.
    pub fn redis_url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Adds a toxic (latency, timeout, reset_peer, limit_data); one of a name at a time.
    pub fn add(&self, name: &str, kind: &str, way: Way, attributes: Value) -> Result<()> {
        let stream = if way == Way::Up { "upstream" } else { "downstream" };
        let toxic = json!({
            "name": name, "type": kind, "stream": stream, "toxicity": 1.0,
            "attributes": attributes,
        });
        let url = format!("{}/proxies/{}/toxics", self.api, self.name);
        ureq::post(url).send_json(toxic).with_context(|| format!("toxic {kind}"))?;
        Ok(())
    }

    /// Takes a toxic away.
    pub fn remove(&self, name: &str) -> Result<()> {
        ureq::delete(format!("{}/proxies/{}/toxics/{name}", self.api, self.name)).call()?;
        Ok(())
    }

    /// Adds `ms` of delay each way.
    pub fn delay(&self, ms: u64) -> Result<()> {
        self.add("delay-up", "latency", Way::Up, json!({ "latency": ms }))?;
        self.add("delay-down", "latency", Way::Down, json!({ "latency": ms }))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = ureq::delete(format!("{}/proxies/{}", self.api, self.name)).call();
    }
}
