//! ZooKeeper: against requests sent bare, to the locks that it has, and counted by the servers.

pub(crate) mod calls;
pub(crate) mod handover;
pub(crate) mod peers;
pub(crate) mod uncontended;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use zookeeper_client::{Acls, Client, CreateMode};

/// For the report.
pub(crate) async fn version(url: &str) -> Result<String> {
    let answer = ask(&hosts(url)[0], "srvr")?;
    let version = answer.split(['-', ',']).next().unwrap_or_default();
    Ok(format!("{}, an ensemble of three", version.replace("Zookeeper version:", "ZooKeeper")))
}

/// Each as HOST:PORT.
fn hosts(url: &str) -> Vec<String> {
    let list = url.trim_start_matches("zookeeper://").trim_end_matches('/');
    list.split(',').map(str::to_owned).collect()
}

/// A member that is not the leader: what two of three clients are connected to.
pub(crate) fn follower(url: &str) -> Result<String> {
    for host in hosts(url) {
        if ask(&host, "srvr")?.contains("Mode: follower") {
            return Ok(host);
        }
    }
    anyhow::bail!("an ensemble without a follower")
}

/// One of the commands of four letters.
fn ask(host: &str, word: &str) -> Result<String> {
    let mut socket = TcpStream::connect(host).with_context(|| host.to_owned())?;
    socket.write_all(word.as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}

/// How much each session has asked for, everything included, by what the members say of their
/// connections.
pub(crate) fn requests(url: &str) -> Result<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for host in hosts(url) {
        for line in ask(&host, "cons")?.lines() {
            let value = |key| line.split_once(key)?.1.split([',', ')']).next();
            // Without one it is we who ask.
            if let (Some(session), Some(received)) = (value("sid="), value("recved=")) {
                all.insert(session.to_owned(), received.parse()?);
            }
        }
    }
    Ok(all)
}

/// A counter of all requests, also while sessions come and go.
pub(crate) struct Requests {
    url: String,
    seen: BTreeMap<String, u64>,
    total: u64,
}

impl Requests {
    pub(crate) fn new(url: &str) -> Result<Self> {
        Ok(Requests { url: url.to_owned(), seen: requests(url)?, total: 0 })
    }

    /// Since the counter was made.
    pub(crate) fn total(&mut self) -> Result<u64> {
        let now = requests(&self.url)?;
        let before = |session| self.seen.get(session).copied().unwrap_or(0);
        self.total += now.iter().map(|(session, n)| n.saturating_sub(before(session))).sum::<u64>();
        self.seen = now;
        Ok(self.total)
    }
}

/// Sessions of the same driver that create a node of their own and delete it.
struct Bare {
    session: Client,
}

const PARENT: &str = "/bench-bare";

impl Bare {
    async fn new(host: &str) -> Result<Self> {
        let patient = Client::connector().with_session_timeout(Duration::from_secs(30));
        let session = patient.connect(host).await?;
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        match session.create(PARENT, &[], &options).await {
            Ok(_) | Err(zookeeper_client::Error::NodeExists) => Ok(Bare { session }),
            Err(error) => Err(error.into()),
        }
    }

    /// Microseconds that create and delete took.
    async fn cycle(&self) -> Result<(f64, f64)> {
        let start = Instant::now();
        let prefix = format!("{PARENT}/bare-");
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let (_, sequence) = self.session.create(&prefix, &[b'-'; 64], &options).await?;
        let path = format!("{prefix}{sequence}");
        let created = start.elapsed();
        self.session.delete(&path, None).await?;
        let deleted = start.elapsed() - created;
        Ok((created.as_secs_f64() * 1e6, deleted.as_secs_f64() * 1e6))
    }
}
