//! The process of a server that tests freeze, kill and start again; it ends when this is dropped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// An election of ZooKeeper that fails costs seconds, and on a busy machine several fail.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct ServerProcess {
    command: Command,
    child: Child,
    log: PathBuf,
    is_live: bool,
}

impl ServerProcess {
    /// Starts it; what it prints goes to the log.
    pub(crate) fn start(mut command: Command, log: &Path) -> Self {
        let out = File::options().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out);
        let child = spawn(&mut command);
        ServerProcess { command, child, log: log.to_owned(), is_live: true }
    }

    /// SIGSTOP: it keeps its connections and answers nothing.
    pub(crate) fn freeze(&mut self) {
        super::freeze::freeze(&self.child);
        self.is_live = false;
    }

    pub(crate) fn thaw(&mut self) {
        self.signal(Signal::CONT);
        self.is_live = true;
    }

    /// SIGKILL; what it wrote stays.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.is_live = false;
    }

    /// Starts it again with the same command.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = spawn(&mut self.command);
        self.is_live = true;
    }

    /// Neither killed nor frozen by the test.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Waits for what a live server comes to; a server that ended has failed.
    pub(crate) fn until(&mut self, what: &str, condition: impl Fn() -> bool) {
        let start = Instant::now();
        while !condition() {
            let has_ended = self.child.try_wait().unwrap().is_some();
            if has_ended || start.elapsed() > LIMIT {
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                let lines: Vec<_> = log.lines().rev().take(15).collect();
                let end: Vec<_> = lines.into_iter().rev().collect();
                panic!("never came: {what}; the end of its log:\n{}", end.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(command: &mut Command) -> Child {
    command.spawn().unwrap_or_else(|e| {
        let program = command.get_program().to_string_lossy();
        panic!("{program} cannot be started ({e}); tests/services/run names one")
    })
}

/// A folder for what a server keeps, on a memory file system where there is one: on a disk every
/// write waits for fsync.
pub(crate) fn data_dir() -> TempDir {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("fencelock-test-").tempdir_in(parent).unwrap()
}

/// Waits for what several servers come to.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < LIMIT, "never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
