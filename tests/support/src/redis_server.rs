//! A redis-server of one scenario's own, ended when it is dropped.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use redis::aio::MultiplexedConnection;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::{freeze, signal};

/// A server without persistence on a free port.
pub struct RedisServer {
    process: Child,
    port: u16,
    /// Removed with the server.
    _folder: TempDir,
}

impl RedisServer {
    /// Starts the binary that FENCELOCK_TEST_REDIS_SERVER names, and waits until it answers.
    pub fn start() -> Result<Self> {
        let binary = std::env::var("FENCELOCK_TEST_REDIS_SERVER");
        let binary = binary.unwrap_or_else(|_| "redis-server".into());
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let folder = tempfile::Builder::new().prefix("fencelock-").tempdir()?;
        let process = Command::new(&binary)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("{binary} cannot be started; install redis-server"))?;
        let server = RedisServer { process, port, _folder: folder };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if start.elapsed() > Duration::from_secs(20) {
                bail!("{binary} does not answer");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// A bare connection to it.
    pub async fn connection(&self) -> Result<MultiplexedConnection> {
        connection(&self.url()).await
    }

    /// SIGSTOP: it keeps its connections and answers nothing.
    pub fn freeze(&self) -> Result<()> {
        freeze(self.process.id())
    }

    /// SIGCONT.
    pub fn thaw(&self) -> Result<()> {
        signal(self.process.id(), Signal::CONT)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A bare connection to a server.
pub async fn connection(url: &str) -> Result<MultiplexedConnection> {
    Ok(redis::Client::open(url)?.get_multiplexed_async_connection().await?)
}

/// How often the server ran a command, inside scripts or not. Names are in lower case.
pub async fn calls(connection: &mut MultiplexedConnection, commands: &[&str]) -> Result<u64> {
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(connection).await?;
    let mut sum = 0;
    for line in stats.lines() {
        let Some((name, rest)) = line.split_once(":calls=") else { continue };
        if commands.iter().any(|c| name.strip_prefix("cmdstat_") == Some(c)) {
            sum += rest.split(',').next().unwrap_or_default().parse::<u64>()?;
        }
    }
    Ok(sum)
}

/// Script calls: each is one request of a client.
pub const SCRIPTS: &[&str] = &["evalsha", "eval"];

/// All keys, sorted.
pub async fn keys(connection: &mut MultiplexedConnection) -> Result<Vec<String>> {
    let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(connection).await?;
    keys.sort();
    Ok(keys)
}
