//! The processes below this one: the command, and all that it started.

#[cfg(target_os = "linux")]
pub(super) use linux::{Process, Tree};

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::OwnedFd;
    use std::{fs, io};

    use rustix::io::Errno;
    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal,
        set_child_subreaper, waitid,
    };

    /// All processes below this one that the command started.
    pub(crate) struct Tree {
        /// Children of whatever program executed us in its place: `helper & exec fencelock run …`.
        others: Vec<i32>,
    }

    /// One that lived a moment ago.
    pub(crate) struct Process {
        pub(crate) id: Pid,
        pub(crate) group: i32,
        /// Its number may be another's by the time that it is told something.
        descriptor: OwnedFd,
    }

    impl Process {
        pub(crate) fn tell(&self, signal: Signal) {
            let _ = pidfd_send_signal(&self.descriptor, signal);
        }

        fn open(id: i32, parent: i32) -> Option<Self> {
            let descriptor = pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()).ok()?;
            // The descriptor is of a process below us if, after it was made, the number is.
            let stat = Stat::read(id)?;
            let below = stat.parent == parent || stat.parent == us();
            below.then_some(Process { id: Pid::from_raw(id)?, group: stat.group, descriptor })
        }
    }

    impl Tree {
        /// To be called before the command starts.
        pub(crate) fn plant() -> io::Result<Self> {
            let children = waitid(
                WaitId::All,
                WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT,
            );
            let of_us = |(id, stat): (i32, Stat)| (stat.parent == us()).then_some(id);
            let others = match children {
                Err(Errno::CHILD) => Vec::new(),
                _ => processes().into_iter().filter_map(of_us).collect(),
            };
            // What loses its parent becomes our child and stays in sight; but not if we could not
            // tell then whose it was.
            if others.is_empty() {
                set_child_subreaper(Some(getpid()))?;
            }
            Ok(Tree { others })
        }

        /// All that live, parents before their children: the next thing is started by a parent,
        /// when what it waits for has ended.
        pub(crate) fn processes(&self) -> Vec<Process> {
            let all = processes();
            let mut found = vec![us()];
            let mut living = Vec::new();
            let mut seen = 0;
            while let Some(&parent) = found.get(seen) {
                let children = all.iter().filter(|(_, stat)| stat.parent == parent);
                for (id, _) in children.filter(|(id, _)| !self.others.contains(id)) {
                    found.push(*id);
                    living.extend(Process::open(*id, parent));
                }
                seen += 1;
            }
            living
        }

        /// A child of this process has ended, and its number may be another's.
        pub(crate) fn forget(&mut self, id: Pid) {
            self.others.retain(|other| *other != id.as_raw_nonzero().get());
        }
    }

    fn us() -> i32 {
        getpid().as_raw_nonzero().get()
    }

    struct Stat {
        parent: i32,
        group: i32,
    }

    impl Stat {
        /// None of one that has ended, and is there only to be asked for its exit code.
        fn read(id: i32) -> Option<Self> {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            // After the name, which stands in brackets and may contain anything.
            let (_, fields) = stat.rsplit_once(')')?;
            let mut fields = fields.split_whitespace();
            let state = fields.next()?;
            let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            (!matches!(state, "Z" | "X")).then_some(Stat { parent, group })
        }
    }

    fn processes() -> Vec<(i32, Stat)> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let process = |entry: fs::DirEntry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            Some((id, Stat::read(id)?))
        };
        entries.flatten().filter_map(process).collect()
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{Process, Tree};

/// Not found: there, only the command's group is signalled.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;

    use rustix::process::{Pid, Signal};

    pub(crate) struct Tree;

    pub(crate) struct Process {
        pub(crate) id: Pid,
        pub(crate) group: i32,
    }

    impl Process {
        pub(crate) fn tell(&self, _: Signal) {}
    }

    impl Tree {
        pub(crate) fn plant() -> io::Result<Self> {
            Ok(Tree)
        }

        pub(crate) fn processes(&self) -> Vec<Process> {
            Vec::new()
        }

        pub(crate) fn forget(&mut self, _: Pid) {}
    }
}
