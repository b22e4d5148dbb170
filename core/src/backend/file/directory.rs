//! The directory: checked, opened once per process, and used by one at a time.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, fcntl_lock, fstat, mkdirat, open, openat,
    renameat, unlinkat,
};
use rustix::io::Errno;

use super::MUTEX_PAUSE;
use crate::error::{Error, Result};
use crate::process::PerProcess;

const MUTEX: &str = "mutex";
const DRAFT: &str = "draft";
/// What one write puts down whole or not at all, even when the process is killed meanwhile.
const PAGE: usize = 4096;
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A directory of locks. There is one of it per process, because closing any descriptor of a file
/// gives up all record locks that the process has on it.
pub(super) struct Directory {
    path: String,
    handle: OwnedFd,
    /// The mutex of the processes. Record locks do not exclude the threads of one process from
    /// each other; the one around the descriptor does.
    mutex: Mutex<OwnedFd>,
}

/// By device and inode. What was opened once stays open: closing the mutex in one thread would give
/// up the record lock that another has just taken through a descriptor of its own.
type Opened = HashMap<(u64, u64), Arc<Directory>>;

impl Directory {
    pub(super) fn open(path: &str) -> Result<Arc<Self>> {
        let fault = |error: Errno| {
            let why = match error {
                Errno::LOOP | Errno::NOTDIR => "is a symbolic link or no directory",
                Errno::PERM => "belongs to another user, or others may write to it",
                _ => "cannot be used",
            };
            let text = format!(
                "the lock directory {path} {why}; it must be a directory of this user with mode 0700"
            );
            let error = io::Error::from(error);
            match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::ReadOnlyFilesystem => {
                    Error::unavailable(text).with_source(error)
                }
                _ => Error::invalid(text).with_source(error),
            }
        };
        let handle = open_checked(path).map_err(fault)?;
        let stat = fstat(&handle).map_err(fault)?;
        // A forked child has none of its parent's record locks, so it opens its own.
        static OPEN: PerProcess<Mutex<Opened>> = PerProcess::new();
        let mut open = OPEN.get().lock().unwrap_or_else(PoisonError::into_inner);
        let key = (stat.st_dev as u64, stat.st_ino as u64);
        // A directory that was removed may have left its number to this one.
        open.retain(|_, directory| directory.is_there());
        if let Some(directory) = open.get(&key) {
            return Ok(directory.clone());
        }
        let mutex = Mutex::new(open_mutex(&handle).map_err(fault)?);
        let directory = Arc::new(Directory { path: path.to_owned(), handle, mutex });
        open.insert(key, directory.clone());
        Ok(directory)
    }

    fn is_there(&self) -> bool {
        fstat(&self.handle).is_ok_and(|stat| stat.st_nlink > 0)
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Takes one step with nobody else in the directory. Cancel-safe: the step is taken wholly or
    /// not at all, and nothing is held while this waits, since nobody may poll it for a while.
    pub(super) async fn exclusively<T>(&self, step: impl FnOnce() -> io::Result<T>) -> Result<T> {
        loop {
            {
                let mut mutex = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
                match fcntl_lock(&*mutex, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) if fstat(&*mutex).is_ok_and(|stat| stat.st_nlink > 0) => {
                        let _unlock = Unlock(&mutex);
                        return step().map_err(|error| self.fault(error));
                    }
                    Ok(()) => {
                        // Somebody removed the file; others lock the one that is there now.
                        let opened = open_mutex(&self.handle);
                        *mutex = opened.map_err(|error| self.fault(error.into()))?;
                        continue;
                    }
                    Err(Errno::AGAIN | Errno::ACCESS) => {}
                    Err(error) => return Err(self.fault(error.into())),
                }
            }
            tokio::time::sleep(MUTEX_PAUSE).await;
        }
    }

    /// The line that was written last.
    pub(super) fn read(&self, file: &str) -> io::Result<Option<String>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = match openat(&self.handle, file, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        File::from(fd).read_to_end(&mut bytes)?;
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        bytes.truncate(end);
        String::from_utf8(bytes).map(Some).map_err(io::Error::other)
    }

    /// Writes one line. A process that dies meanwhile leaves the old line or the new one.
    pub(super) fn write(&self, file: &str, line: &str) -> io::Result<()> {
        let mut text = line.to_owned();
        text.push('\n');
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if text.len() > PAGE {
            let fd = openat(&self.handle, DRAFT, flags | OFlags::TRUNC, PRIVATE_FILE)?;
            File::from(fd).write_all(text.as_bytes())?;
            return Ok(renameat(&self.handle, DRAFT, &self.handle, file)?);
        }
        // In place, because renaming makes some file systems wait for the disk. What is left of a
        // longer line after the new one is not read, so nothing need be cut off.
        let fd = openat(&self.handle, file, flags, PRIVATE_FILE)?;
        File::from(fd).write_all(text.as_bytes())
    }

    pub(super) fn remove(&self, file: &str) -> io::Result<()> {
        match unlinkat(&self.handle, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The files that hold a name.
    pub(super) fn files(&self) -> io::Result<Vec<String>> {
        let is_hash = |name: &str| name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit());
        Ok(self.names()?.into_iter().filter(|name| is_hash(name)).collect())
    }

    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            if let Some(name) = OsStr::from_bytes(entry.file_name().to_bytes()).to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

fn open_mutex(directory: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(directory, MUTEX, flags, PRIVATE_FILE)
}

/// The directory itself must be no link, belong to us and be closed to others; what is above it
/// is the administrator's business.
fn open_checked(path: &str) -> rustix::io::Result<OwnedFd> {
    make(Path::new(path))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = open(path, flags, Mode::empty())?;
    let stat = fstat(&handle)?;
    let others = Mode::RWXG | Mode::RWXO;
    let is_private = FileType::from_raw_mode(stat.st_mode).is_dir()
        && stat.st_uid == rustix::process::geteuid().as_raw()
        && !Mode::from_raw_mode(stat.st_mode).intersects(others);
    if is_private { Ok(handle) } else { Err(Errno::PERM) }
}

fn make(path: &Path) -> rustix::io::Result<()> {
    match mkdirat(rustix::fs::CWD, path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) => {
            let parent = path.parent().ok_or(Errno::NOENT)?;
            // Only the lock directory itself is private; a missing parent is made as usual.
            std::fs::create_dir_all(parent)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            match mkdirat(rustix::fs::CWD, path, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

struct Unlock<'a>(&'a OwnedFd);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        let _ = fcntl_lock(self.0, FlockOperation::NonBlockingUnlock);
    }
}
