//! The presence of one client in a directory: a record lock that says it lives, and a pipe.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_lock, openat};
use rustix::io::Errno;
use tokio::net::unix::pipe;

use super::directory::Directory;
use crate::owner::{ClientId, OwnerId};
use crate::process::PerProcess;
use crate::token::Token;
use crate::wakeups::Wakeups;

const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const CLIENT: &str = "client-";
const WAKE: &str = "wake-";

/// This client, for as long as its process lives or until it leaves.
pub(super) struct Present {
    id: ClientId,
    /// Keeps the record lock.
    _life: OwnedFd,
}

impl Present {
    /// Under the directory's mutex: between making the file and locking it, a sweep would take
    /// the client for dead.
    pub(super) fn announce(directory: &Arc<Directory>) -> io::Result<(Self, Mail)> {
        let id = ClientId::random();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let life = openat(directory.handle(), life_file(id), flags, PRIVATE_FILE)?;
        fcntl_lock(&life, FlockOperation::NonBlockingLockExclusive)?;
        make_pipe(directory, &wake_file(id))?;
        // Open for writing as well, so that the pipe never ends when a writer leaves.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = openat(directory.handle(), wake_file(id), flags, Mode::empty())?;
        let pipe = pipe::Receiver::from_file_unchecked(File::from(pipe))?;
        ours().insert(id);
        Ok((Present { id, _life: life }, Mail { pipe }))
    }

    pub(super) fn id(&self) -> ClientId {
        self.id
    }

    /// Takes the files away; what the client still holds counts as a dead one's from now on.
    pub(super) fn leave(&self, directory: &Directory) {
        ours().remove(&self.id);
        let _ = directory.remove(&wake_file(self.id));
        let _ = directory.remove(&life_file(self.id));
    }
}

impl Drop for super::Shared {
    fn drop(&mut self) {
        self.me.leave(&self.directory);
    }
}

/// The clients of this process. Looking at their record locks through another descriptor would
/// give the locks up.
fn ours() -> MutexGuard<'static, HashSet<ClientId>> {
    static OURS: PerProcess<Mutex<HashSet<ClientId>>> = PerProcess::new();
    OURS.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the client's process lives; in doubt it does, and its ttl ends what it holds. Under the
/// directory's mutex.
pub(super) fn is_alive(directory: &Directory, id: ClientId) -> bool {
    if ours().contains(&id) {
        return true;
    }
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let life = match openat(directory.handle(), life_file(id), flags, Mode::empty()) {
        Ok(life) => life,
        Err(error) => return error != Errno::NOENT,
    };
    // A lock that we get was left by a dead process; closing gives it up again.
    fcntl_lock(&life, FlockOperation::NonBlockingLockExclusive).is_err()
}

impl Directory {
    /// Removes what dead clients left. Under the mutex.
    pub(super) fn sweep(&self) -> io::Result<()> {
        for name in self.names()? {
            let id = name.strip_prefix(CLIENT).or(name.strip_prefix(WAKE));
            let Some(id) = id.and_then(|id| id.parse().ok()) else { continue };
            if !is_alive(self, id) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }
}

fn life_file(id: ClientId) -> String {
    format!("{CLIENT}{id}")
}

fn wake_file(id: ClientId) -> String {
    format!("{WAKE}{id}")
}

#[cfg(target_os = "linux")]
fn make_pipe(directory: &Directory, file: &str) -> io::Result<()> {
    Ok(rustix::fs::mknodat(directory.handle(), file, rustix::fs::FileType::Fifo, PRIVATE_FILE, 0)?)
}

#[cfg(not(target_os = "linux"))]
fn make_pipe(directory: &Directory, file: &str) -> io::Result<()> {
    Ok(rustix::fs::mkfifoat(directory.handle(), file, PRIVATE_FILE)?)
}

pub(super) fn granted(owner: OwnerId, token: Token) -> String {
    format!("{owner} {token}\n")
}

pub(super) fn revoked(owner: OwnerId) -> String {
    format!("{owner} lost\n")
}

/// Tells a client; one that cannot be told will look.
pub(super) fn tell(directory: &Directory, id: ClientId, notice: &str) {
    // For reading too: a pipe whose reader dies just now must not end this process by SIGPIPE.
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // Short enough for a pipe to take it whole or not at all.
    if let Ok(pipe) = openat(directory.handle(), wake_file(id), flags, Mode::empty()) {
        let _ = File::from(pipe).write_all(notice.as_bytes());
    }
}

/// What arrives for this client.
pub(super) struct Mail {
    pipe: pipe::Receiver,
}

impl Mail {
    pub(super) async fn deliver(self, wakeups: Arc<Wakeups>) {
        let mut buffer = [0; 4096];
        let mut pending = Vec::new();
        loop {
            if self.pipe.readable().await.is_err() {
                return;
            }
            let count = match self.pipe.try_read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return,
            };
            pending.extend_from_slice(&buffer[..count]);
            while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                deliver_line(&String::from_utf8_lossy(&line[..end]), &wakeups);
            }
        }
    }
}

fn deliver_line(line: &str, wakeups: &Wakeups) {
    let Some((owner, what)) = line.split_once(' ') else { return };
    let Ok(owner) = owner.parse() else { return };
    match what.parse() {
        Ok(token) => wakeups.granted(owner, token),
        Err(_) if what == "lost" => wakeups.revoked(owner),
        Err(_) => {}
    }
}
