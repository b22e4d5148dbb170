//! A real redis-server of one test: on a free port and a unix socket, ended when it is dropped.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct RedisServer {
    process: Child,
    port: u16,
    /// What stands for [`SECOND_PORT`] in the arguments.
    second_port: u16,
    dir: PathBuf,
    arguments: Vec<String>,
}

/// An argument that becomes another free port.
pub(crate) const SECOND_PORT: &str = "<another port>";

impl RedisServer {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts it with more arguments, as on the command line.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        loop {
            let (port, second_port, dir) = (free_port(), free_port(), unique_dir());
            let text = |argument: &&str| argument.replace(SECOND_PORT, &second_port.to_string());
            let arguments: Vec<_> = arguments.iter().map(text).collect();
            let process = launch(port, &dir, &arguments);
            let mut server = RedisServer { process, port, second_port, dir, arguments };
            // Else somebody took the port meanwhile.
            if server.is_up_in_time() {
                return server;
            }
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn second_port(&self) -> u16 {
        self.second_port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) fn unix_url(&self) -> String {
        format!("redis+unix://{}", self.dir.join("redis.sock").display())
    }

    /// SIGSTOP: it keeps its connections and answers nothing.
    pub(crate) fn freeze(&self) {
        super::freeze::freeze(&self.process);
    }

    pub(crate) fn thaw(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    /// SIGKILL; what it kept in memory is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again on the same port.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.process = launch(self.port, &self.dir, &self.arguments);
        assert!(self.is_up_in_time(), "redis-server does not start again");
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.process.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// False if it ended at once.
    fn is_up_in_time(&mut self) -> bool {
        let start = Instant::now();
        while !self.answers() {
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Any reply will do: with a password set PING is refused, but answered. Asked through the
    /// socket in its own folder, because on the port it may be another server that answers.
    fn answers(&self) -> bool {
        let Ok(mut socket) = UnixStream::connect(self.dir.join("redis.sock")) else {
            return false;
        };
        let mut reply = [0; 64];
        socket.write_all(b"PING\r\n").is_ok()
            && socket.read(&mut reply).is_ok_and(|n| {
                n > 0 && !reply.starts_with(b"-LOADING") && !reply.starts_with(b"-MASTERDOWN")
            })
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn launch(port: u16, dir: &Path, arguments: &[String]) -> Child {
    let program =
        std::env::var("FENCELOCK_TEST_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
    Command::new(&program)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", "no", "--unixsocket", "redis.sock", "--dir"])
        .arg(dir)
        .args(arguments)
        .stdout(Stdio::null())
        .stdin(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("{program} cannot be started ({e}); install redis-server"))
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(crate) fn unique_dir() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("fencelock-redis-{}-{count}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}
