//! `file:///dir` – the lock between the processes of one machine, kept in a directory.
//!
//! | file | what it is |
//! |---|---|
//! | `mutex` | locked (POSIX record lock) for the length of one step |
//! | `token` | the last token given, of all names |
//! | `client-<id>` | locked for as long as that client's process lives |
//! | `wake-<id>` | a named pipe: what that client is told without asking |
//! | `<hash>` | one name that is held or waited for, as JSON; the name stands inside |
//!
//! Each step reads the file of a name, does what [`table`](super::table) says, and writes it back,
//! under the mutex. The kernel frees the record lock of a client whose process dies, however it
//! dies, and that ends what it held; a forked child does not inherit record locks. All processes
//! share one clock, CLOCK_BOOTTIME, so time limits are the same for all.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::task::AbortHandle;

use self::client::Present;
use self::directory::Directory;
use super::table::{Entry, Party, Surroundings};
use super::{Backend, Look, Mode, Place, Renewal, Renewed, Request, Verdict};
use crate::clock::{Instant, unix_micros};
use crate::error::{Error, ErrorKind, Result};
use crate::info::{LockInfo, LockState};
use crate::name::Name;
use crate::owner::ClientId;
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;

mod client;
mod directory;

const TOKEN: &str = "token";
/// Of the files that hold a name; a newer layout is refused, not misread.
const LAYOUT: u32 = 1;

/// A client of one directory.
pub(super) struct Files {
    shared: Arc<Shared>,
    reader: AbortHandle,
}

struct Shared {
    directory: Arc<Directory>,
    me: Present,
}

impl Files {
    /// Makes the directory if need be, and refuses one that others could write to.
    pub(super) async fn open(target: &Target, wakeups: Arc<Wakeups>) -> Result<Self> {
        let path = path_of(target)?;
        let directory = Directory::open(&path)?;
        let (me, mail) = directory
            .exclusively(|| {
                directory.sweep()?;
                Present::announce(&directory)
            })
            .await?;
        let reader = tokio::spawn(mail.deliver(wakeups)).abort_handle();
        Ok(Files { shared: Arc::new(Shared { directory, me }), reader })
    }

    fn run<T, F>(&self, step: F) -> Request<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Session<'_>) -> io::Result<T> + Send + 'static,
    {
        let shared = self.shared.clone();
        Box::pin(async move {
            let directory = &shared.directory;
            directory.exclusively(|| step(&mut Session { shared: &shared })).await
        })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

fn path_of(target: &Target) -> Result<String> {
    let refused = |why: &str| {
        Error::invalid(format!("the file URL {why}; it has the form file:///absolute/directory"))
    };
    if !target.after_scheme().starts_with("///") {
        return Err(refused("names a host, or no absolute directory"));
    }
    let url = url::Url::parse(&target.url).map_err(|_| refused("does not parse"))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("has options of its own"));
    }
    let path = url.to_file_path().map_err(|()| refused("names no directory"))?;
    // Without a slash at the end, behind which a symbolic link would be followed.
    let path: PathBuf = path.components().collect();
    path.into_os_string().into_string().map_err(|_| refused("is not UTF-8"))
}

impl Backend for Files {
    fn contend(&self, place: &Arc<Place>, mode: Mode) -> Request<Look> {
        let place = place.clone();
        self.run(move |session| {
            let me = Party::new(&place, session.shared.me.id());
            session.at(&place.name, |entry, around| entry.contend(me, mode, around))
        })
    }

    fn release(&self, place: &Arc<Place>, token: Option<Token>, _mark: bool) -> Request<Verdict> {
        // A step that was given up is never taken later, so no late request needs a mark.
        let place = place.clone();
        self.run(move |session| {
            session.at(&place.name, |entry, around| entry.release(place.owner, token, around))
        })
    }

    fn renew(&self, leases: Vec<Renewal>) -> Request<Vec<Result<Renewed>>> {
        self.run(move |session| {
            let renewed = leases.iter().map(|Renewal { place, .. }| {
                session
                    .at(&place.name, |entry, around| entry.renew(place.owner, around))
                    .map_err(|error| session.shared.directory.fault(error))
            });
            Ok(renewed.collect())
        })
    }

    fn inspect(&self, name: &Name) -> Request<LockInfo> {
        let name = name.clone();
        self.run(move |session| session.at(&name, |entry, around| entry.info(&name, around)))
    }

    fn list(&self) -> Request<Vec<LockInfo>> {
        self.run(|session| {
            let mut infos = BTreeMap::new();
            for file in session.shared.directory.files()? {
                // What is not ours is no lock.
                let Ok(Some(kept)) = session.read(&file) else { continue };
                let Ok(name) = Name::new(&kept.name) else { continue };
                let info = session.at(&name, |entry, around| entry.info(&name, around))?;
                if info.state != LockState::Free || !info.queue.is_empty() {
                    infos.insert(info.name.clone(), info);
                }
            }
            Ok(infos.into_values().collect())
        })
    }

    fn force_release(&self, name: &Name) -> Request<bool> {
        let name = name.clone();
        self.run(move |session| session.at(&name, |entry, around| entry.force_release(around)))
    }

    fn close(&self) -> Request<()> {
        self.reader.abort();
        let shared = self.shared.clone();
        Box::pin(async move {
            shared.me.leave(&shared.directory);
            Ok(())
        })
    }
}

/// The content of the file of one name.
#[derive(serde::Serialize, serde::Deserialize)]
struct Kept {
    layout: u32,
    name: String,
    #[serde(flatten)]
    entry: Entry,
}

/// One turn with the directory, under its mutex.
struct Session<'a> {
    shared: &'a Shared,
}

impl Session<'_> {
    fn at<T>(
        &mut self,
        name: &Name,
        step: impl FnOnce(&mut Entry, &mut Around<'_>) -> T,
    ) -> io::Result<T> {
        let directory = &self.shared.directory;
        let file = file_of(name);
        let before = self.read(&file)?;
        let existed = before.is_some();
        let mut entry = match before {
            Some(kept) if kept.name == name.as_str() => kept.entry,
            Some(_) => return Err(io::Error::other("two names share one hash")),
            None => Entry::default(),
        };
        let last_token = directory.read(TOKEN)?.and_then(|text| text.parse().ok());
        let mut around = Around {
            directory,
            now: Instant::now(),
            last_token: last_token.unwrap_or(0),
            minted: false,
            notices: Vec::new(),
        };
        let result = step(&mut entry, &mut around);
        let Around { minted, last_token, notices, .. } = around;
        // The token first: dying in between skips a token, but never gives one twice.
        if minted {
            directory.write(TOKEN, &last_token.to_string())?;
        }
        if entry.is_empty() {
            if existed {
                directory.remove(&file)?;
            }
        } else {
            let kept = Kept { layout: LAYOUT, name: name.as_str().to_owned(), entry };
            directory.write(&file, &serde_json::to_string(&kept)?)?;
        }
        for (client, notice) in notices {
            client::tell(directory, client, &notice);
        }
        Ok(result)
    }

    fn read(&self, file: &str) -> io::Result<Option<Kept>> {
        let Some(text) = self.shared.directory.read(file)? else { return Ok(None) };
        let kept: Kept = serde_json::from_str(&text)?;
        if kept.layout == LAYOUT {
            Ok(Some(kept))
        } else {
            Err(io::Error::new(io::ErrorKind::Unsupported, "a newer layout"))
        }
    }
}

/// 128 bits of the name's SHA-256: any name makes a good file name.
fn file_of(name: &Name) -> String {
    let hash = Sha256::digest(name.as_str().as_bytes());
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

struct Around<'a> {
    directory: &'a Directory,
    now: Instant,
    last_token: u64,
    minted: bool,
    notices: Vec<(ClientId, String)>,
}

impl Surroundings for Around<'_> {
    fn now(&self) -> Instant {
        self.now
    }

    fn mint(&mut self) -> Token {
        self.last_token = self.floor();
        self.minted = true;
        Token::at_least(self.last_token)
    }

    fn floor(&self) -> u64 {
        unix_micros().max(self.last_token + 1)
    }

    fn is_alive(&mut self, client: ClientId) -> bool {
        client::is_alive(self.directory, client)
    }

    fn granted(&mut self, to: &Party, token: Token) {
        self.notices.push((to.client, client::granted(to.owner, token)));
    }

    fn revoked(&mut self, from: &Party) {
        self.notices.push((from.client, client::revoked(from.owner)));
    }
}

impl Directory {
    /// What went wrong, for the caller of the lock.
    fn fault(&self, error: io::Error) -> Error {
        let path = self.path();
        match error.kind() {
            io::ErrorKind::Unsupported => Error::new(
                ErrorKind::Unsupported,
                format!("{path} was written by a newer version of fencelock; update this one"),
            ),
            io::ErrorKind::InvalidData => Error::new(
                ErrorKind::Conflict,
                format!("a file in {path} is not one of fencelock's; it was left untouched"),
            ),
            _ => Error::unavailable(format!("the lock directory {path} cannot be used")),
        }
        .with_source(error)
    }
}

/// Between tries for the mutex, which others hold for the length of one step.
const MUTEX_PAUSE: Duration = Duration::from_millis(1);
