//! The same scripts sent bare: what the library sent for one acquire and release is taken down
//! from the server, and sent again by the same driver, with nothing around it.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use fencelock::Client;
use fencelock_test_support::clock::now;
use fencelock_test_support::monitor::Monitor;
use fencelock_test_support::redis_server::connection;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value, cmd};

/// The two calls of one name.
#[derive(Clone)]
pub(crate) struct Bare {
    contend: Cmd,
    release: Vec<String>,
}

/// Where EVALSHA, hash and number of keys are followed by five keys, owner value, channel prefix
/// and token.
const TOKEN_AT: usize = 10;

impl Bare {
    /// Takes one cycle of each name down. The server knows the scripts afterwards.
    pub(crate) async fn record(url: &str, names: &[String]) -> Result<Vec<Bare>> {
        let port: u16 = url.rsplit(':').next().unwrap_or_default().trim_matches('/').parse()?;
        let client = Client::connect(url).await?;
        client.lock("bench/warm")?.acquire().await?.release().await?;
        let monitor = Monitor::start(port)?;
        for name in names {
            client.lock(name)?.acquire().await?.release().await?;
        }
        let mark = format!("mark-{}", now());
        let mut connection = connection(url).await?;
        let _: String = cmd("ECHO").arg(&mark).query_async(&mut connection).await?;
        let mut calls: HashMap<String, Vec<Vec<String>>> = HashMap::new();
        for command in monitor.take_until(&mark)? {
            if !command.in_script && command.words[0].eq_ignore_ascii_case("EVALSHA") {
                calls.entry(command.words[3].clone()).or_default().push(command.words);
            }
        }
        names
            .iter()
            .map(|name| {
                let calls = calls.remove(&format!("fencelock:{name}")).context("no calls seen")?;
                let [contend, release] = &calls[..] else {
                    anyhow::bail!("{} calls in one cycle, not two", calls.len())
                };
                ensure!(release.len() == 12, "release has another form: {release:?}");
                Ok(Bare { contend: command(contend), release: release.clone() })
            })
            .collect()
    }

    /// Acquires and releases.
    pub(crate) async fn cycle(&self, connection: &mut MultiplexedConnection) -> Result<()> {
        let reply = connection.send_packed_command(&self.contend).await?;
        let token = match &reply {
            Value::Array(fields) => match &fields[..] {
                [Value::BulkString(_), Value::Int(token), _] => *token,
                _ => anyhow::bail!("not granted: {reply:?}"),
            },
            _ => anyhow::bail!("not granted: {reply:?}"),
        };
        let mut release = Cmd::with_capacity(12, 768);
        for (i, word) in self.release.iter().enumerate() {
            if i == TOKEN_AT {
                release.arg(token)
            } else {
                release.arg(word)
            };
        }
        match connection.send_packed_command(&release).await? {
            Value::BulkString(verdict) if verdict == b"released" => Ok(()),
            reply => anyhow::bail!("not released: {reply:?}"),
        }
    }
}

fn command(words: &[String]) -> Cmd {
    let mut command = Cmd::with_capacity(12, 768);
    for word in words {
        command.arg(word);
    }
    command
}
