//! A place for locks, the command there, and what it does.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// For what must happen; how long a slow machine may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// One test for each backend.
macro_rules! on_each_backend {
    ($($(#[$meta:meta])* fn $test:ident($site:ident) $body:block)*) => {$(
        $(#[$meta])*
        mod $test {
            #[allow(unused_imports)]
            use super::*;

            fn check($site: &crate::site::Site) $body

            #[test]
            fn file() {
                check(&crate::site::Site::file());
            }

            #[test]
            fn redis() {
                check(&crate::site::Site::server("REDIS"));
            }

            #[test]
            fn mongodb() {
                check(&crate::site::Site::server("MONGODB"));
            }

            #[test]
            fn zookeeper() {
                check(&crate::site::Site::server("ZOOKEEPER"));
            }
        }
    )*};
}
pub(crate) use on_each_backend;

pub(crate) struct Site {
    pub(crate) url: String,
    /// For the locks, if they are kept in files, and for what commands write.
    pub(crate) folder: TempDir,
}

impl Site {
    pub(crate) fn file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Site { url: format!("file://{}/locks", folder.path().display()), folder }
    }

    pub(crate) fn server(backend: &str) -> Self {
        let variable = format!("FENCELOCK_TEST_{backend}_URL");
        let url = std::env::var(&variable).unwrap_or_else(|_| {
            panic!(
                "{variable} is not set; `tests/services/run all COMMAND` starts servers and sets it"
            )
        });
        Site { url, folder: tempfile::tempdir().unwrap() }
    }

    /// A name of this test's own.
    pub(crate) fn name(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        format!("cli/{}/{count}", self.folder.path().file_name().unwrap().display())
    }

    /// `fencelock` with these words, and this place as its URL; in a session of its own, as cron
    /// and services have it, whatever terminal the tests run on.
    pub(crate) fn fencelock(&self, words: &[&str]) -> Command {
        // It execs: the process id is that of fencelock.
        let mut command = Command::new("setsid");
        command.arg(env!("CARGO_BIN_EXE_fencelock")).args(words).env("FENCELOCK_URL", &self.url);
        command
    }

    pub(crate) fn start(&self, words: &[&str]) -> Running {
        Running::start(self.fencelock(words))
    }

    /// Runs to the end.
    pub(crate) fn ended(&self, words: &[&str]) -> Ended {
        self.start(words).end()
    }

    /// Somebody who holds the lock until told otherwise.
    pub(crate) fn hold(&self, name: &str, options: &[&str]) -> Running {
        let words = [&["run"], options, &[name, "--", "sh", "-c", "echo held; cat"]].concat();
        let mut holder = self.start(&words);
        assert_eq!(holder.line(), "held");
        holder
    }

    pub(crate) fn inspect(&self, name: &str) -> Value {
        let ended = self.ended(&["inspect", "--json", name]);
        assert_eq!(ended.code(), 0, "{ended:?}");
        serde_json::from_str(&ended.output).unwrap()
    }

    /// Waits until so many contend for the lock, beside the holder.
    pub(crate) fn wait_for_queue(&self, name: &str, count: usize) {
        until(|| self.inspect(name)["queue"].as_array().unwrap().len() == count);
    }

    /// A file of this site's own.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// Waits until it is so.
#[track_caller]
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "it never happened");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether there is such a process that has not ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// As in /proc: T is stopped, Z has ended.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// A process that has been started; killed when this is dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    errors: Option<thread::JoinHandle<String>>,
}

impl Running {
    pub(crate) fn start(command: Command) -> Self {
        Running::start_with_errors(command, Stdio::piped())
    }

    /// Its standard error goes there.
    pub(crate) fn start_with_errors(mut command: Command, errors: Stdio) -> Self {
        hear_every_signal(&mut command);
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = streams.spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = child.stderr.take();
        let errors = thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.map(|mut stderr| stderr.read_to_string(&mut text));
            text
        });
        Running { child, lines, errors: Some(errors) }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// The next line of its standard output.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        self.lines.recv_timeout(LIMIT).expect("a line")
    }

    pub(crate) fn signal(&self, which: Signal) {
        signal(self.pid(), which);
    }

    /// Writes to its standard input, which stays open.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Ends its standard input, and waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        self.wait()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
        let end = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it does not end");
            thread::sleep(Duration::from_millis(5));
        };
        let mut output = String::new();
        loop {
            // What it left in the background may keep the pipe open.
            match self.lines.recv_timeout(Duration::from_secs(5)) {
                Ok(line) => output += &format!("{line}\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("its output has no end"),
            }
        }
        let errors = self.errors.take().unwrap().join().unwrap();
        Ended { status, output, errors }
    }
}

/// Whoever runs the tests in the background of a script ignores INT and QUIT, here and in what is started.
fn hear_every_signal(command: &mut Command) {
    // SAFETY: between fork and exec; makes system calls that neither allocate nor lock.
    unsafe {
        command.pre_exec(|| {
            for signal in [Signal::INT, Signal::QUIT, Signal::HUP, Signal::TERM] {
                libc::signal(signal.as_raw(), libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended, and what it printed since it was last asked.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    /// What a shell calls `$?`.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap())
    }

    /// It failed with this code and said why, in one line that has this in it.
    #[track_caller]
    pub(crate) fn assert_failed(&self, code: i32, why: &str) {
        assert_eq!(self.code(), code, "{self:?}");
        let is_one_line = self.errors.ends_with('\n') && self.errors.lines().count() == 1;
        assert!(is_one_line && self.errors.starts_with("fencelock: "), "{self:?}");
        assert!(self.errors.contains(why), "{self:?}");
    }

    /// It ended with this code and without a word.
    #[track_caller]
    pub(crate) fn assert_silent(&self, code: i32) {
        assert_eq!((self.code(), &*self.output, &*self.errors), (code, "", ""), "{self:?}");
    }
}
