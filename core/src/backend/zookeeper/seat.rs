//! One place in the queue of one lock: its node, from the request that creates it to the one that
//! deletes it. A task of the client sees this through, whoever still waits for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::address::Root;
use super::fault::Fault;
use super::keeper::Keeper;
use super::layout::Note;
use super::sequence::{Rank, rank};
use super::session::Session;
use crate::backend::{Mode, Place, Verdict};
use crate::clock::Instant;
use crate::options::NodeLayout;
use crate::owner::OwnerId;
use crate::token::Token;
use crate::wakeups::Wakeups;

/// Before the same request goes out again.
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
    keeper: OnceLock<Weak<Keeper>>,
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

    /// What stands in its node.
    pub(super) fn note(&self) -> Vec<u8> {
        Note::of(&self.place)
    }

    /// The whole path of its node, once it is known.
    pub(super) fn path(&self) -> Option<&str> {
        self.path.get().map(String::as_str)
    }

    /// The session it is in, from when it has one until that ends.
    pub(super) fn keeper(&self) -> Option<Arc<Keeper>> {
        self.keeper.get()?.upgrade()
    }

    pub(super) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    pub(super) fn is_granted(&self) -> bool {
        !self.is_dismissed() && matches!(*self.standing.borrow(), Standing::Granted(_))
    }

    pub(super) fn is_dismissed(&self) -> bool {
        self.dismissed.is_cancelled()
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
    let _ = seat.keeper.set(Arc::downgrade(keeper));
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

/// A seat, being seen through.
pub(super) struct Visit<'a> {
    pub(super) seat: &'a Arc<Seat>,
    pub(super) keeper: &'a Arc<Keeper>,
    pub(super) layout: &'a Layout,
    mode: Mode,
    wakeups: &'a Wakeups,
    pub(super) directory: &'a str,
}

/// What came of waiting for the predecessor.
enum Turn {
    Granted,
    Vanished,
    Busy,
    Refused(Fault),
}

impl Visit<'_> {
    pub(super) fn session(&self) -> &Session {
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

    pub(super) fn stand(&self, standing: Standing) {
        self.seat.stand(standing, self.wakeups);
    }

    /// The end of the session cancels this task.
    pub(super) async fn nevermore<T>(&self) -> T {
        std::future::pending().await
    }

    pub(super) async fn pause(&self) {
        tokio::time::sleep(AGAIN).await;
    }

    pub(super) async fn connected(&self) {
        if self.session().connected().await.is_err() {
            self.nevermore().await
        }
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
            let is_gone = tokio::select! {
                is_gone = watch.gone() => is_gone,
                _ = reconnects.changed() => false,
            };
            if is_gone {
                return Ok(());
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
