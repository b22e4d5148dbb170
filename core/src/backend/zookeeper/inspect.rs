//! What is known of locks: for people and tools, never for decisions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::Shared;
use super::escape::unescape;
use super::fault::Fault;
use super::keeper::Keeper;
use super::layout::Note;
use super::sequence::in_order;
use super::session::Node;
use crate::error::{Error, Result};
use crate::info::{LockInfo, LockState, WaiterInfo};
use crate::name::Name;
use crate::options::LockOptions;
use crate::token::Token;

/// How many contenders of one lock are shown.
const SHOWN: usize = 100;
/// How many locks are asked for at once.
const UNDER_WAY: usize = 100;
/// A node whose only purpose is that the leader says when it was made.
const CLOCK: &str = "~fl-clock-";

/// One contender's node, as it was found.
struct Contender {
    name: String,
    node: Node,
    note: Option<Note>,
}

impl Shared {
    pub(super) async fn inspect(&self, name: &Name) -> Result<LockInfo> {
        let directory = self.layout.root.directory(name)?;
        let session = self.sessions.any(LockOptions::default().ttl);
        let info = async {
            let keeper = session.keeper().await?;
            catch_up(&keeper, &directory).await?;
            let contenders = contenders(&keeper, &directory).await?;
            let now = self.wall_clock(&keeper, &contenders).await;
            Ok(info(name, contenders, now))
        };
        info.await.map_err(|fault: Fault| self.ensemble.explain(&fault))
    }

    /// All locks that somebody holds or waits for.
    pub(super) async fn list(&self) -> Result<Vec<LockInfo>> {
        let session = self.sessions.any(LockOptions::default().ttl);
        let infos = async {
            let keeper = &session.keeper().await?;
            catch_up(keeper, self.layout.root.path()).await?;
            let children = match keeper.session.list(self.layout.root.path()).await {
                Err(Fault::NoNode) => return Ok(Vec::new()),
                children => children?,
            };
            let look = |name: Name| async move {
                let directory = match self.layout.root.directory(&name) {
                    Ok(directory) => directory,
                    // The servers' own.
                    Err(_) => return Ok(None),
                };
                let contenders = contenders(keeper, &directory).await?;
                if contenders.is_empty() {
                    return Ok(None);
                }
                let now = self.wall_clock(keeper, &contenders).await;
                Ok(Some(info(&name, contenders, now)))
            };
            let names: Vec<Name> =
                children.iter().map(String::as_str).filter_map(unescape).collect();
            let infos = stream::iter(names).map(look).buffered(UNDER_WAY);
            infos.try_filter_map(|info| std::future::ready(Ok(info))).try_collect().await
        };
        infos.await.map_err(|fault: Fault| self.ensemble.explain(&fault))
    }

    pub(super) async fn force_release(&self, name: &Name) -> Result<bool> {
        let directory = self.layout.root.directory(name)?;
        let session = self.sessions.any(LockOptions::default().ttl);
        let explain = |fault: Fault| self.ensemble.explain(&fault);
        let keeper = session.keeper().await.map_err(explain)?;
        catch_up(&keeper, &directory).await.map_err(explain)?;
        // The holder of now, and once more if it changes in between.
        for _ in 0..2 {
            let children = match keeper.session.list(&directory).await {
                Err(Fault::NoNode) => return Ok(false),
                children => children.map_err(explain)?,
            };
            let Some(holder) = in_order(children).into_iter().next() else {
                return Ok(false);
            };
            let sent = crate::clock::Instant::now();
            match keeper.session.delete(&format!("{directory}/{holder}")).await {
                Ok(()) => {
                    keeper.written(sent);
                    return Ok(true);
                }
                Err(Fault::NoNode) => {}
                Err(fault) => return Err(explain(fault)),
            }
        }
        Err(Error::unavailable(
            "the lock changed hands meanwhile; nothing was released, look again",
        ))
    }

    /// The leader's wall clock in milliseconds: from a node that this session made, be it for
    /// this. Where it may make none, ours has to do.
    async fn wall_clock(&self, keeper: &Keeper, contenders: &[Contender]) -> i64 {
        let is_needed = contenders.len() > 1;
        if is_needed && keeper.wall_clock().is_none() {
            let prefix = self.layout.root.child(CLOCK);
            let sent = crate::clock::Instant::now();
            if let Ok((path, node)) = keeper.session.create(&prefix, b"").await {
                keeper.created(node, sent);
                let _ = keeper.session.delete(&path).await;
            }
        }
        keeper.wall_clock().unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }
}

/// Our server may lag behind the leader, and show what somebody has released already.
async fn catch_up(keeper: &Keeper, path: &str) -> Result<(), Fault> {
    keeper.session.sync(path).await
}

/// The contenders of a lock, in the order of service. Those that went meanwhile are left out.
async fn contenders(keeper: &Keeper, directory: &str) -> Result<Vec<Contender>, Fault> {
    let children = match keeper.session.list(directory).await {
        Err(Fault::NoNode) => return Ok(Vec::new()),
        children => children?,
    };
    let names: Vec<String> = in_order(children).into_iter().take(SHOWN).collect();
    let paths: Vec<String> = names.iter().map(|name| format!("{directory}/{name}")).collect();
    // Called one after the other: each of them sends.
    let reads: Vec<_> = paths.iter().map(|path| keeper.session.read(path)).collect();
    let mut contenders = Vec::new();
    for (name, read) in names.into_iter().zip(join_all(reads).await) {
        let (note, node) = match read {
            Ok((data, node)) => (Note::parse(&data), node),
            Err(Fault::NoNode) => continue,
            // A foreign one that we may not read.
            Err(Fault::NoAuth) => (None, Node { created: 0, owner: 0, created_at: 0 }),
            Err(fault) => return Err(fault),
        };
        contenders.push(Contender { name, node, note });
    }
    Ok(contenders)
}

fn info(name: &Name, contenders: Vec<Contender>, now: i64) -> LockInfo {
    let mut contenders = contenders.into_iter();
    let mut info = LockInfo {
        name: name.as_str().to_owned(),
        state: LockState::Free,
        owner: None,
        token: None,
        // Nobody writes down when the lock was granted; its node is as old as its wait.
        held: None,
        ttl_left: None,
        metadata: None,
        queue: Vec::new(),
    };
    let Some(holder) = contenders.next() else {
        return info;
    };
    match holder.note {
        Some(note) => {
            info.state = LockState::Held;
            info.owner = Some(note.owner.to_string());
            info.token = u64::try_from(holder.node.created).ok().and_then(Token::new);
            info.metadata = Some(note.text);
        }
        None => {
            info.state = LockState::Foreign;
            info.owner = Some(holder.name);
        }
    }
    info.queue = contenders
        .map(|contender| {
            let age = now.saturating_sub(contender.node.created_at);
            let (owner, metadata) = match contender.note {
                Some(note) => (note.owner.to_string(), Some(note.text)),
                None => (contender.name, None),
            };
            let waiting = Duration::from_millis(u64::try_from(age).unwrap_or_default());
            WaiterInfo { owner, waiting, metadata }
        })
        .collect();
    info
}
