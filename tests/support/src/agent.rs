//! Child processes: the program runs itself again, and both sides talk in lines of JSON.

use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::process::{freeze, signal};

/// A child process, killed when this is dropped.
pub struct Agent {
    child: Child,
    pid: u32,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Agent {
    /// Starts this program again with these arguments.
    pub fn start<S: AsRef<str>>(arguments: &[S]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments.iter().map(AsRef::as_ref));
        Self::start_command(command)
    }

    /// Starts another program that talks in the same way.
    pub fn start_command(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("an agent cannot be started")?;
        let pid = child.id().context("an agent has ended at once")?;
        let input = child.stdin.take().context("no pipe")?;
        let output = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        Ok(Agent { child, pid, input, output })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends it one message.
    pub async fn tell(&mut self, message: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.input.write_all(&line).await.context("an agent has ended")
    }

    /// Its next message.
    pub async fn hear<T: DeserializeOwned>(&mut self, within: Duration) -> Result<T> {
        let Ok(line) = timeout(within, self.output.next_line()).await else {
            bail!("agent {} said nothing for {within:?}", self.pid);
        };
        let line = line?.with_context(|| format!("agent {} has ended", self.pid))?;
        serde_json::from_str(&line).with_context(|| format!("agent {} said {line}", self.pid))
    }

    /// SIGSTOP: it keeps its connections and does nothing.
    pub fn freeze(&self) -> Result<()> {
        freeze(self.pid)
    }

    /// SIGCONT.
    pub fn thaw(&self) -> Result<()> {
        signal(self.pid, Signal::CONT)
    }

    /// SIGKILL; returns when it is gone.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}

/// The parent, as the child sees it.
pub struct Parent {
    input: Lines<BufReader<File>>,
}

impl Parent {
    /// For the child, once.
    pub fn new() -> Self {
        // A child that is frozen when its parent is killed would otherwise stay for ever.
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        let input =
            std::io::stdin().as_fd().try_clone_to_owned().expect("there is a standard input");
        Parent { input: BufReader::new(File::from_std(std::fs::File::from(input))).lines() }
    }

    /// The next message; none when the parent has ended.
    pub async fn hear<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        match self.input.next_line().await? {
            Some(line) => Ok(Some(serde_json::from_str(&line)?)),
            None => Ok(None),
        }
    }

    /// Sends the parent one message. From any thread.
    pub fn tell(message: &impl Serialize) -> Result<()> {
        use std::io::Write;
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut output = std::io::stdout().lock();
        output.write_all(&line)?;
        Ok(output.flush()?)
    }
}

impl Default for Parent {
    fn default() -> Self {
        Self::new()
    }
}
