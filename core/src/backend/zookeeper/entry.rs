//! The way into a seat: its node is made, with those above it where they are missing, and found
//! again when the reply to that was lost.

use futures_util::future::{join, join_all};

use super::fault::Fault;
use super::keeper::NOBODY;
use super::layout::{self, Note};
use super::seat::{Standing, Visit};
use super::sequence::sequence;
use super::session::Node;
use crate::clock::Instant;
use crate::options::NodeLayout;

/// How often the nodes above are made anew: the servers remove empty ones at any moment.
const ROUNDS: u32 = 5;

/// What a lost create turned out to be.
enum Found {
    Ours(String, Node),
    Nothing,
    /// A node with our owner id in another session: it ends with that one, and is never ours.
    Elsewhere,
}

impl Visit<'_> {
    /// Makes the node. With it comes what was listed after it, on the same connection: every node
    /// that is before ours is in there. `None`: it was to end before anything was sent.
    pub(super) async fn enter(&self) -> Result<Option<(String, Node, Option<Vec<String>>)>, Fault> {
        let session = self.session();
        let name = layout::prefix(self.layout.nodes, self.seat.owner());
        let prefix = format!("{}/{name}", self.directory);
        let note = self.seat.note();
        let mut rounds = 0;
        loop {
            self.connected().await;
            if self.seat.is_leaving() {
                return Ok(None);
            }
            if !self.keeper.may_delete_in(self.directory) {
                match self.probe().await {
                    Err(Fault::ReplyLost) => {
                        self.pause().await;
                        continue;
                    }
                    Err(Fault::Ended) => return self.nevermore().await,
                    probed => probed?,
                }
            }
            let sent = Instant::now();
            let created = session.create(&prefix, &note);
            let (created, listed) = join(created, session.list(self.directory)).await;
            match created {
                Ok((path, node)) => {
                    self.keeper.written(sent);
                    self.keeper.created(node, sent);
                    if node.owner != session.id() {
                        self.keeper.abandon("a node of ours belongs to another session");
                        return self.nevermore().await;
                    }
                    return Ok(Some((path, node, listed.ok())));
                }
                Err(Fault::NoNode) => {
                    self.keeper.written(sent);
                    rounds += 1;
                    if rounds > ROUNDS {
                        return Err(Fault::NoNode);
                    }
                    self.make_directory().await?;
                }
                Err(Fault::ReplyLost) => match self.find(&name).await? {
                    Found::Ours(path, node) => return Ok(Some((path, node, None))),
                    Found::Nothing => {}
                    Found::Elsewhere => {
                        self.stand(Standing::Gone);
                        return self.nevermore().await;
                    }
                },
                Err(Fault::Ended) => return self.nevermore().await,
                Err(fault) => {
                    if fault.is_answer_to_a_write() {
                        self.keeper.written(sent);
                    }
                    return Err(fault);
                }
            }
        }
    }

    /// Whether what is created here could be deleted again: the right to that is the parent's, and
    /// a release must not be the first to miss it.
    async fn probe(&self) -> Result<(), Fault> {
        let nobody = format!("{}/{NOBODY}", self.directory);
        let sent = Instant::now();
        let probed = self.session().delete(&nobody).await;
        match probed {
            Ok(()) | Err(Fault::NoNode) => {
                self.keeper.written(sent);
                self.keeper.found_deletable(self.directory);
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    /// The nodes above, topmost first, all sent in one go.
    async fn make_directory(&self) -> Result<(), Fault> {
        let mut paths = self.layout.root.ancestors();
        paths.push(self.directory.to_owned());
        let sent = Instant::now();
        let session = self.session();
        // Called one after the other: each of them sends.
        let made: Vec<_> = paths.iter().map(|path| session.create_container(path)).collect();
        let made = join_all(made).await;
        if made.iter().any(|made| match made {
            Ok(()) => true,
            Err(fault) => fault.is_answer_to_a_write(),
        }) {
            self.keeper.written(sent);
        }
        let refused = made.contains(&Err(Fault::NoAuth));
        match made.into_iter().next_back() {
            // No right to make one above that is there already is no fault.
            Some(Err(Fault::NoNode | Fault::NoAuth)) if refused => Err(Fault::NoAuth),
            Some(Err(Fault::NoNode | Fault::NodeExists | Fault::ReplyLost | Fault::Ended)) => {
                Ok(())
            }
            Some(Err(fault)) => Err(fault),
            Some(Ok(())) | None => {
                self.keeper.found_deletable(self.directory);
                Ok(())
            }
        }
    }

    /// The node of a create whose reply was lost. After sync, so that a server that lags behind
    /// does not hide it; what is not there then never comes, because the leader refuses requests
    /// of a connection that the session has left.
    async fn find(&self, name: &str) -> Result<Found, Fault> {
        let session = self.session();
        loop {
            self.connected().await;
            let synced = session.sync(self.directory);
            let (synced, listed) = join(synced, session.list(self.directory)).await;
            let children = match (synced, listed) {
                (_, Err(Fault::NoNode)) => return Ok(Found::Nothing),
                (Ok(()), Ok(children)) => children,
                (Err(fault), _) | (_, Err(fault)) => match fault {
                    Fault::ReplyLost => {
                        self.pause().await;
                        continue;
                    }
                    Fault::Ended => return self.nevermore().await,
                    fault => return Err(fault),
                },
            };
            match self.find_among(name, children).await {
                Err(Fault::ReplyLost) => self.pause().await,
                Err(Fault::Ended) => return self.nevermore().await,
                found => return found,
            }
        }
    }

    async fn find_among(&self, name: &str, children: Vec<String>) -> Result<Found, Fault> {
        let session = self.session();
        let is_ours = |child: &String| child.starts_with(name) && sequence(child).is_some();
        for child in children.into_iter().filter(is_ours) {
            let path = format!("{}/{child}", self.directory);
            if self.layout.nodes == NodeLayout::Plain {
                // The name tells nothing, what stands in the node does.
                match session.read(&path).await {
                    Ok((data, _)) => {
                        let note = Note::parse(&data);
                        if note.is_none_or(|note| note.owner != self.seat.owner()) {
                            continue;
                        }
                    }
                    Err(Fault::NoNode | Fault::NoAuth) => continue,
                    Err(fault) => return Err(fault),
                }
            }
            return Ok(match session.exists(&path).await? {
                Some(node) if node.owner == session.id() => Found::Ours(path, node),
                Some(_) => Found::Elsewhere,
                None => continue,
            });
        }
        Ok(Found::Nothing)
    }
}
