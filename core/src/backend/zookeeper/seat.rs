//! One place in the queue of one lock: its node, from the request that creates it to the one that
//! deletes it. A task of the client sees this through, whoever still waits for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::address::Root;
use super::fault::Fault;
use super::keeper::{Keeper, NOBODY};
use super::layout::{self, Note};
use super::sequence::{Rank, rank, sequence};
use super::session::{Node, Session};
use crate::backend::{Mode, Place, Verdict};
use crate::clock::Instant;
use crate::options::NodeLayout;
use crate::owner::OwnerId;
use crate::token::Token;
use crate::wakeups::Wakeups;

/// How often the nodes above are made anew: the servers remove empty ones at any moment.
const ROUNDS: u32 = 5;
const AGAIN: Duration = Duration::from_millis(10);

/// Where a seat stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its node is being made.
    Entering,
    /// Somebody is before it; `first`: only the holder.
    Queued { first: bool },
    /// Nobody is before it.
    Granted(Token),
    /// Not free, and it was not to queue.
    Busy,
    /// Its session or its node is gone.
    Gone,
    /// The servers refused it; nothing of it is left.
    Refused(Fault),
}

/// Where locks are, and how nodes are called.
pub(super) struct Layout {
    pub(super) root: Root,
    pub(super) nodes: NodeLayout,
}

/// One place.
pub(super) struct Seat {
    place: Arc<Place>,
    directory: String,
    standing: watch::Sender<Standing>,
    /// How its node ended; none until then.
    outcome: watch::Sender<Option<Result<Verdict, Fault>>>,
    /// It is to end.
    leaving: CancellationToken,
    /// Its node was deleted by somebody else.
    dismissed: CancellationToken,
    path: OnceLock<String>,
    keeper: OnceLock<Arc<Keeper>>,
    /// A delete was sent when the session certainly lived, and its reply was lost.
    tried_in_time: AtomicBool,
}

impl Seat {
    pub(super) fn new(place: Arc<Place>, directory: String) -> Self {
        Seat {
            place,
            directory,
            standing: watch::Sender::new(Standing::Entering),
            outcome: watch::Sender::new(None),
            leaving: CancellationToken::new(),
            dismissed: CancellationToken::new(),
            path: OnceLock::new(),
            keeper: OnceLock::new(),
            tried_in_time: AtomicBool::new(false),
        }
    }

    pub(super) fn owner(&self) -> OwnerId {
        self.place.owner
    }

    /// The whole path of its node, once it is known.
    pub(super) fn path(&self) -> Option<&str> {
        self.path.get().map(String::as_str)
    }

    /// The session it is in, once it has one.
    pub(super) fn keeper(&self) -> Option<&Arc<Keeper>> {
        self.keeper.get()
    }

    pub(super) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    pub(super) fn is_granted(&self) -> bool {
        matches!(*self.standing.borrow(), Standing::Granted(_))
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.is_cancelled()
    }

    /// Its node is to be deleted, now or as soon as there is one.
    pub(super) fn leave(&self) {
        self.leaving.cancel();
    }

    /// Its node was deleted by somebody else.
    pub(super) fn dismiss(&self) {
        self.dismissed.cancel();
    }

    /// How its node ended. Waits for it.
    pub(super) async fn outcome(&self) -> Result<Verdict, Fault> {
        let mut outcome = self.outcome.subscribe();
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Err(Fault::Ended)),
            Err(_) => Err(Fault::Ended),
        }
    }

    /// Whether somebody waits for the outcome.
    pub(super) fn is_awaited(&self) -> bool {
        self.outcome.receiver_count() > 0
    }

    fn stand(&self, standing: Standing, wakeups: &Wakeups) {
        let is_news = !matches!(standing, Standing::Entering | Standing::Queued { .. });
        self.standing.send_replace(standing);
        if is_news {
            wakeups.look(self.owner());
        }
    }

    fn settle(&self, outcome: Result<Verdict, Fault>) {
        self.outcome.send_if_modified(|known| {
            let is_new = known.is_none();
            if is_new {
                *known = Some(outcome);
            }
            is_new
        });
    }

    /// No session could be had, so nothing was sent.
    pub(super) fn refuse(&self, fault: Fault) {
        self.standing.send_replace(Standing::Refused(fault));
        self.settle(Ok(Verdict::Lost));
    }
}

/// Sees a seat through in this session.
pub(super) async fn occupy(
    seat: &Arc<Seat>,
    keeper: &Arc<Keeper>,
    layout: &Layout,
    mode: Mode,
    wakeups: &Wakeups,
) {
    let _ = seat.keeper.set(keeper.clone());
    let visit = Visit { seat, keeper, layout, mode, wakeups, directory: &seat.directory };
    tokio::select! {
        biased;
        () = visit.run() => {}
        () = keeper.over() => {
            // The node ends with the session, wherever it is.
            if seat.is_granted() && !seat.is_leaving() {
                wakeups.revoked(seat.owner());
            }
            seat.stand(Standing::Gone, wakeups);
            let in_time = seat.tried_in_time.load(Ordering::Acquire);
            seat.settle(Ok(if in_time { Verdict::Released } else { Verdict::Lost }));
        }
    }
    keeper.left(seat.owner());
}

struct Visit<'a> {
    seat: &'a Arc<Seat>,
    keeper: &'a Arc<Keeper>,
    layout: &'a Layout,
    mode: Mode,
    wakeups: &'a Wakeups,
    directory: &'a str,
}

/// What a lost create turned out to be.
enum Found {
    Ours(String, Node),
    Nothing,
    /// A node with our owner id in another session: it ends with that one, and is never ours.
    Elsewhere,
}

/// What came of waiting for the predecessor.
enum Turn {
    Granted,
    Vanished,
    Busy,
    Refused(Fault),
}

impl Visit<'_> {
    fn session(&self) -> &Session {
        &self.keeper.session
    }

    async fn run(&self) {
        let (path, node, children) = match self.enter().await {
            Ok(Some(entered)) => entered,
            Ok(None) => {
                self.stand(Standing::Gone);
                return self.seat.settle(Ok(Verdict::Released));
            }
            Err(fault) => return self.seat.refuse(fault),
        };
        let Some(token) = u64::try_from(node.created).ok().and_then(Token::new) else {
            // Servers before 3.5 do not tell; they have no containers either.
            return self.seat.refuse(Fault::Unimplemented);
        };
        let _ = self.seat.path.set(path.clone());
        self.keeper.seated(self.seat);
        let turn = tokio::select! {
            biased;
            () = self.seat.leaving.cancelled() => None,
            () = self.seat.dismissed.cancelled() => Some(Turn::Vanished),
            turn = self.turn(&path, children) => Some(turn),
        };
        let after = match turn {
            Some(Turn::Granted) => {
                self.stand(Standing::Granted(token));
                tokio::select! {
                    biased;
                    () = self.seat.leaving.cancelled() => {}
                    () = self.seat.dismissed.cancelled() => self.stand(Standing::Gone),
                }
                self.seat.leaving.cancelled().await;
                None
            }
            Some(Turn::Vanished) => {
                self.stand(Standing::Gone);
                None
            }
            Some(Turn::Busy) => Some(Standing::Busy),
            Some(Turn::Refused(fault)) => Some(Standing::Refused(fault)),
            None => None,
        };
        self.keeper.left(self.seat.owner());
        let outcome = self.leave(&path).await;
        self.stand(after.unwrap_or(Standing::Gone));
        self.seat.settle(outcome);
    }

    fn stand(&self, standing: Standing) {
        self.seat.stand(standing, self.wakeups);
    }

    /// Makes the node. With it comes what was listed after it, on the same connection: every node
    /// that is before ours is in there. `None`: it was to end before anything was sent.
    async fn enter(&self) -> Result<Option<(String, Node, Option<Vec<String>>)>, Fault> {
        let session = self.session();
        let name = layout::prefix(self.layout.nodes, self.seat.owner());
        let prefix = format!("{}/{name}", self.directory);
        let note = Note::of(&self.seat.place);
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

    /// The end of the session cancels this task.
    async fn nevermore<T>(&self) -> T {
        std::future::pending().await
    }

    /// Before the same request goes out again.
    async fn pause(&self) {
        tokio::time::sleep(AGAIN).await;
    }

    async fn connected(&self) {
        if self.session().connected().await.is_err() {
            self.nevermore().await
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
        let refused = made.iter().any(|made| *made == Err(Fault::NoAuth));
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

    /// Waits until nobody is before us.
    async fn turn(&self, path: &str, mut listed: Option<Vec<String>>) -> Turn {
        let mine = path.rsplit('/').next().unwrap_or(path);
        loop {
            let children = match listed.take() {
                Some(children) => children,
                None => {
                    self.connected().await;
                    match self.session().list(self.directory).await {
                        Ok(children) => children,
                        Err(Fault::NoNode) => return Turn::Vanished,
                        Err(Fault::ReplyLost) => {
                            self.pause().await;
                            continue;
                        }
                        Err(Fault::Ended) => return self.nevermore().await,
                        Err(fault) => return Turn::Refused(fault),
                    }
                }
            };
            match rank(mine, &children) {
                Rank::First => return Turn::Granted,
                Rank::Missing => return Turn::Vanished,
                Rank::Behind { .. } if self.mode == Mode::Try => return Turn::Busy,
                Rank::Behind { predecessor, alone } => {
                    self.stand(Standing::Queued { first: alone });
                    let predecessor = format!("{}/{predecessor}", self.directory);
                    if let Err(fault) = self.gone(&predecessor).await {
                        return Turn::Refused(fault);
                    }
                    if alone {
                        // What was before it can only have vanished, and nobody comes in before us.
                        return Turn::Granted;
                    }
                }
            }
        }
    }

    /// Returns when this node is gone. Asked anew on each connection: a watch is only as good as
    /// the connection that it was set on.
    async fn gone(&self, path: &str) -> Result<(), Fault> {
        let mut reconnects = self.keeper.reconnects();
        loop {
            self.connected().await;
            reconnects.mark_unchanged();
            let watch = match self.session().watch(path).await {
                Ok((true, watch)) => watch,
                Ok((false, _)) => return Ok(()),
                Err(Fault::ReplyLost) => {
                    self.pause().await;
                    continue;
                }
                Err(Fault::Ended) => return self.nevermore().await,
                Err(fault) => return Err(fault),
            };
            // The old watch is dropped before the next one is set: the request to forget it would
            // take the new one with it.
            tokio::select! {
                () = watch.changed() => {}
                _ = reconnects.changed() => {}
            }
        }
    }

    /// Deletes the node, until that was answered.
    async fn leave(&self, path: &str) -> Result<Verdict, Fault> {
        loop {
            self.connected().await;
            let sent = Instant::now();
            let in_time = sent < self.keeper.deadline();
            match self.session().delete(path).await {
                Ok(()) => {
                    self.keeper.written(sent);
                    return Ok(Verdict::Released);
                }
                Err(Fault::NoNode) => {
                    self.keeper.written(sent);
                    let ours = self.seat.tried_in_time.load(Ordering::Acquire);
                    return Ok(if ours { Verdict::Released } else { Verdict::Lost });
                }
                Err(Fault::ReplyLost) => {
                    self.seat.tried_in_time.fetch_or(in_time, Ordering::AcqRel);
                    self.pause().await;
                }
                Err(Fault::Ended) => return self.nevermore().await,
                Err(fault) => return Err(fault),
            }
        }
    }
}
