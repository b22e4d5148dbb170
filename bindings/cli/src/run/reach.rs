//! How far a signal for "the command and what it started" goes.

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Decided once, before the command starts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reach {
    /// A process group that the command leads.
    Group,
    /// With a terminal, a group of its own would cut the command off from Ctrl-C, from reading what
    /// is typed and from the pipeline that it is part of. It stays in ours, whose other members
    /// are not to be signalled: so its descendants are looked for.
    Tree,
}

impl Reach {
    pub(super) fn choose() -> Self {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        if open("/dev/tty", flags, Mode::empty()).is_ok() { Reach::Tree } else { Reach::Group }
    }

    pub(super) fn started(self, command: Pid) -> Started {
        match self {
            Reach::Group => Started::Group(command),
            Reach::Tree => Started::Processes(tree::descendants(command)),
        }
    }
}

/// Processes that a command started.
pub(super) enum Started {
    /// With the command itself. The number stays taken for as long as there is a member.
    Group(Pid),
    Processes(Vec<tree::Process>),
}

impl Started {
    pub(super) fn none() -> Self {
        Started::Processes(Vec::new())
    }

    pub(super) fn tell(&self, signal: Signal) {
        match self {
            Started::Group(group) => {
                let _ = kill_process_group(*group, signal);
            }
            Started::Processes(processes) => processes.iter().for_each(|p| p.tell(signal)),
        }
    }

    /// Whether all have ended. True of a group only when the status of the command was asked for.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Started::Group(group) => test_kill_process_group(*group).is_err(),
            Started::Processes(processes) => processes.iter().all(tree::Process::has_ended),
        }
    }
}

#[cfg(target_os = "linux")]
mod tree {
    use std::fs;
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    /// Held by a descriptor: its number may be another's by the time that it gets KILL.
    pub(crate) struct Process(OwnedFd);

    impl Process {
        pub(super) fn tell(&self, signal: Signal) {
            let _ = pidfd_send_signal(&self.0, signal);
        }

        pub(super) fn has_ended(&self) -> bool {
            let mut readable = [PollFd::new(&self.0, PollFlags::IN)];
            poll(&mut readable, Some(&Timespec::default())).is_ok_and(|count| count > 0)
        }
    }

    /// All processes between whom and the command every parent lives.
    pub(super) fn descendants(command: Pid) -> Vec<Process> {
        let all = processes();
        let mut found = vec![command.as_raw_nonzero().get()];
        let mut seen = 0;
        while let Some(&parent) = found.get(seen) {
            found.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
            seen += 1;
        }
        let open = |pid: &i32| pidfd_open(Pid::from_raw(*pid)?, PidfdFlags::empty()).ok();
        found[1..].iter().filter_map(open).map(Process).collect()
    }

    /// Each process with its parent.
    fn processes() -> Vec<(i32, i32)> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let process = |entry: fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // After the name, which stands in brackets and may contain anything: state, parent.
            let (_, fields) = stat.rsplit_once(')')?;
            Some((pid, fields.split_whitespace().nth(1)?.parse().ok()?))
        };
        entries.flatten().filter_map(process).collect()
    }
}

/// The command alone.
#[cfg(not(target_os = "linux"))]
mod tree {
    use rustix::process::{Pid, Signal};

    pub(crate) enum Process {}

    impl Process {
        pub(super) fn tell(&self, _: Signal) {}

        pub(super) fn has_ended(&self) -> bool {
            true
        }
    }

    pub(super) fn descendants(_: Pid) -> Vec<Process> {
        Vec::new()
    }
}
