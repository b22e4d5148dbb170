//! The command: how it is started, told things, and found to have ended.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use fencelock::Lease;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getsid, kill_process, kill_process_group, wait,
};

use super::tree::{Process, Tree};
use crate::exit::{Failure, NOT_EXECUTABLE, NOT_FOUND, SYSTEM};
use crate::signals::Arrival;

pub(super) struct Child {
    id: Pid,
    tree: Tree,
    /// It leads a group of its own. With a terminal, that would cut it off from Ctrl-C, from reading
    /// what is typed and from the pipeline that it is part of: there it stays in ours.
    leads_a_group: bool,
    status: Option<ExitStatus>,
    is_stopped: bool,
    is_to_stop: bool,
}

impl Child {
    /// To be called on the main thread: the system kills the command when the thread that started
    /// it ends.
    pub(super) fn start(words: &[OsString], lease: &Lease) -> Result<Self, Failure> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(Failure::new(NOT_FOUND, "no command was given"));
        };
        let tree = Tree::plant().map_err(|e| Failure::system("processes", e))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("FENCELOCK_NAME", lease.name())
            .env("FENCELOCK_TOKEN", lease.token().to_string());
        let leads_a_group = !has_terminal();
        if leads_a_group {
            command.process_group(0);
        }
        die_with_us(&mut command);
        // The handle is not kept: `ended` waits for the command, and for what lost its parent.
        let process = command.spawn().map_err(|error| not_started(program, &error))?;
        let id = Pid::from_child(&process);
        Ok(Child { id, tree, leads_a_group, status: None, is_stopped: false, is_to_stop: false })
    }

    /// Whether who sent this to us has sent it to the command as well.
    pub(super) fn has_got(&self, arrival: Arrival) -> bool {
        if self.leads_a_group {
            return false;
        }
        match (arrival.sender, arrival.signal) {
            // It signals its whole group.
            (Some(sender), _) => sender == self.id.as_raw_nonzero().get(),
            // The system: so does a terminal, but the hang-up is told to who leads the session.
            (None, Signal::INT | Signal::QUIT | Signal::TSTP | Signal::CONT | Signal::WINCH) => {
                true
            }
            (None, Signal::HUP) => getsid(None) != Ok(getpid()),
            (None, _) => false,
        }
    }

    /// Signals the command alone.
    pub(super) fn tell(&self, signal: Signal) {
        // Until its status is asked for, nobody else can have its number.
        if self.status.is_none() {
            let _ = kill_process(self.id, signal);
        }
    }

    /// Signals the command and all that it started.
    pub(super) fn tell_all(&self, signal: Signal) {
        let group = (self.leads_a_group && self.status.is_none()).then_some(self.id);
        match group {
            Some(group) => drop(kill_process_group(group, signal)),
            None => self.tell(signal),
        }
        let group = group.map(|group| group.as_raw_nonzero().get());
        let command = self.status.is_none().then_some(self.id);
        let told = |process: &Process| Some(process.id) == command || Some(process.group) == group;
        self.tree.processes().iter().filter(|process| !told(process)).for_each(|p| p.tell(signal));
    }

    /// Of a command that has ended: whether something lives on that it started.
    pub(super) fn has_left_something(&self) -> bool {
        !self.tree.processes().is_empty()
    }

    /// Its exit status, once it has ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
        loop {
            match wait(options) {
                Ok(Some((id, status))) if id == self.id => self.now_is(status),
                // What it started has ended without its parent: asked for, it is gone.
                Ok(Some((id, status))) if is_end(status) => self.tree.forget(id),
                Ok(Some(_)) => {}
                Ok(None) | Err(Errno::CHILD) => return Ok(self.status),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::system("waiting for the command", error)),
            }
        }
    }

    fn now_is(&mut self, status: WaitStatus) {
        self.is_stopped = status.stopped();
        if is_end(status) {
            self.status = Some(ExitStatus::from_raw(status.as_raw()));
        }
    }

    /// It was asked to stop, and may do so now, later or never.
    pub(super) fn stop_is_asked_for(&mut self) {
        self.is_to_stop = true;
    }

    /// Once for each time: whether it has stopped, is part of our job, and was to.
    pub(super) fn has_stopped_as_asked(&mut self) -> bool {
        let stopped = self.is_to_stop && self.is_stopped && !self.leads_a_group;
        self.is_to_stop &= !stopped;
        stopped
    }
}

fn is_end(status: WaitStatus) -> bool {
    status.exited() || status.signaled()
}

fn has_terminal() -> bool {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    open("/dev/tty", flags, Mode::empty()).is_ok()
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
    let us = getpid();
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
