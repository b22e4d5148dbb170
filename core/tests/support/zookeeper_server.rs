//! A real ZooKeeper server of one test, ended when it is dropped: alone, or a member of a
//! `ZooKeeperEnsemble`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::ports::Port;
use crate::server_process::{ServerProcess, data_dir};

/// The unit of the limits below, and of what sessions are rounded to.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// The shortest session.
pub(crate) const MIN_SESSION: Duration = Duration::from_millis(200);
/// So long after they last heard of each other a leader and a follower part.
pub(crate) const SYNC_LIMIT: Duration = Duration::from_secs(2);

pub(crate) struct ZooKeeperServer {
    pub(crate) process: ServerProcess,
    port: Port,
    _dir: TempDir,
}

impl ZooKeeperServer {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts it with more lines in `zoo.cfg`.
    pub(crate) fn start_with(lines: &[String]) -> Self {
        let mut server = Self::launch(1, lines);
        server.wait();
        let port = server.port.number();
        server.process.until("a ZooKeeper that serves", || mode(port).is_some());
        server
    }

    /// The member `id` of an ensemble; returns before it answers.
    pub(crate) fn launch(id: usize, lines: &[String]) -> Self {
        let (port, dir) = (Port::reserve(), data_dir());
        let path = dir.path().display();
        let limit = |limit: Duration| limit.as_millis() / TICK.as_millis();
        let config = format!(
            "dataDir={path}\nclientPort={}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n\
             tickTime={}\ninitLimit={}\nsyncLimit={}\nminSessionTimeout={}\nmaxSessionTimeout=60000\n\
             admin.enableServer=false\n4lw.commands.whitelist=*\n{}\n",
            port.number(),
            TICK.as_millis(),
            // One that believes in a dead leader waits so long for it, and then votes again.
            limit(Duration::from_secs(2)),
            limit(SYNC_LIMIT),
            MIN_SESSION.as_millis(),
            lines.join("\n"),
        );
        let file = dir.path().join("zoo.cfg");
        std::fs::write(&file, config).unwrap();
        std::fs::write(dir.path().join("myid"), id.to_string()).unwrap();
        let of = |variable, usual: &str| std::env::var(variable).unwrap_or_else(|_| usual.into());
        let jars = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";
        let mut command = Command::new(of("FENCELOCK_TEST_JAVA", "java"));
        command
            .args(["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            // A process that is killed loses no written page.
            .arg("-Dzookeeper.forceSync=no")
            // Else a member whose vote was lost with a link casts it again after up to a minute.
            .arg("-Dzookeeper.fastleader.maxNotificationInterval=400")
            .args(["-Dzookeeper.cnxTimeout=1000", "-cp"])
            .arg(of("FENCELOCK_TEST_ZOOKEEPER_CLASSPATH", jars))
            .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
            .arg(file);
        let process = ServerProcess::start(command, &dir.path().join("log"));
        ZooKeeperServer { process, port, _dir: dir }
    }

    /// Waits until it answers, if only that it has no quorum.
    pub(crate) fn wait(&mut self) {
        let port = self.port.number();
        self.process.until("a ZooKeeper that answers", || ask(port, "srvr").is_some());
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    /// HOST:PORT for clients.
    pub(crate) fn host(&self) -> String {
        self.port.host()
    }

    pub(crate) fn url(&self) -> String {
        format!("zookeeper://{}/", self.host())
    }

    /// SIGSTOP: it keeps its connections and answers nothing.
    pub(crate) fn freeze(&mut self) {
        self.process.freeze();
    }

    pub(crate) fn thaw(&mut self) {
        self.process.thaw();
    }

    /// SIGKILL; what it wrote stays.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same ports with the same data.
    pub(crate) fn restart(&mut self) {
        self.process.restart();
        self.wait();
    }

    /// What it is: `leader`, `follower` or `standalone`; nothing while it does not serve.
    pub(crate) fn mode(&self) -> Option<String> {
        if self.process.is_live() { mode(self.port()) } else { None }
    }

    /// The answer to a four-letter word, as `mntr` or `dump`.
    pub(crate) fn ask(&self, word: &str) -> String {
        ask(self.port(), word).unwrap_or_else(|| panic!("no answer to {word}"))
    }
}

fn mode(port: u16) -> Option<String> {
    let answer = ask(port, "srvr")?;
    answer.lines().find_map(|line| line.strip_prefix("Mode: ")).map(str::to_owned)
}

fn ask(port: u16, word: &str) -> Option<String> {
    let mut link = TcpStream::connect(("127.0.0.1", port)).ok()?;
    link.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    link.write_all(word.as_bytes()).ok()?;
    let mut answer = String::new();
    link.read_to_string(&mut answer).ok()?;
    Some(answer)
}
