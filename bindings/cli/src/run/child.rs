//! The command: how it is started, told things, and found to have ended.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child as Process, Command, ExitStatus};

use fencelock::Lease;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::reach::{Reach, Started};
use crate::exit::{Failure, NOT_EXECUTABLE, NOT_FOUND, SYSTEM};

pub(super) struct Child {
    process: Process,
    id: Pid,
    reach: Reach,
    status: Option<ExitStatus>,
}

impl Child {
    /// To be called on the main thread: the system kills the command when the thread that started
    /// it ends.
    pub(super) fn start(words: &[OsString], lease: &Lease) -> Result<Self, Failure> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(Failure::new(NOT_FOUND, "no command was given"));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("FENCELOCK_NAME", lease.name())
            .env("FENCELOCK_TOKEN", lease.token().to_string());
        let reach = Reach::choose();
        if matches!(reach, Reach::Group) {
            command.process_group(0);
        }
        die_with_us(&mut command);
        let process = command.spawn().map_err(|error| not_started(program, &error))?;
        let id = Pid::from_child(&process);
        Ok(Child { process, id, reach, status: None })
    }

    pub(super) fn pid(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    pub(super) fn shares_our_group(&self) -> bool {
        matches!(self.reach, Reach::Tree)
    }

    /// Signals the command alone.
    pub(super) fn tell(&self, signal: Signal) {
        // Until its status is asked for, nobody else can have its number.
        if self.status.is_none() {
            let _ = kill_process(self.id, signal);
        }
    }

    /// Signals the command and what it started.
    pub(super) fn tell_all(&self, signal: Signal) {
        self.tell_with(&self.started(), signal);
    }

    /// Signals the command and these.
    pub(super) fn tell_with(&self, started: &Started, signal: Signal) {
        started.tell(signal);
        if !matches!(started, Started::Group(_)) {
            self.tell(signal);
        }
    }

    /// What the command has started until now.
    pub(super) fn started(&self) -> Started {
        match self.status {
            None => self.reach.started(self.id),
            // The number of one that has ended may be another's, with other children.
            Some(_) if self.shares_our_group() => Started::none(),
            Some(_) => self.reach.started(self.id),
        }
    }

    /// Its exit status, once it has ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        if self.status.is_none() {
            let status = self.process.try_wait();
            self.status = status.map_err(|e| Failure::system("waiting for the command", e))?;
        }
        Ok(self.status)
    }
}

fn not_started(program: &OsString, error: &io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => SYSTEM,
        _ => NOT_EXECUTABLE,
    };
    let program = program.to_string_lossy();
    Failure::new(code, format!("failed to execute {program}: {error}"))
}

/// The lock of a holder that is killed is free at once, or after its ttl; a command without us
/// would not stop for that. The system does not do this for a program that gains privileges.
#[cfg(target_os = "linux")]
fn die_with_us(command: &mut Command) {
    let us = rustix::process::getpid();
    // SAFETY: between fork and exec; makes two system calls, and neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // If we died before that call, nothing would be sent.
            if rustix::process::getppid() == Some(us) { Ok(()) } else { Err(Errno::SRCH.into()) }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_: &mut Command) {}
