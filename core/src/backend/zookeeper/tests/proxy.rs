//! A proxy in front of one server that knows requests from each other, so that a test can lose,
//! hold and look at just those it means.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::until;

/// Requests by their numbers in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    Connect,
    Create,
    CreateContainer,
    Delete,
    Exists,
    Read,
    List,
    Sync,
    Ping,
    Multi,
    Ephemerals,
    SetWatches,
    RemoveWatches,
    Event,
    Other,
}

impl Op {
    fn of(number: i32) -> Op {
        match number {
            1 | 15 => Op::Create,
            2 => Op::Delete,
            3 => Op::Exists,
            4 => Op::Read,
            8 | 12 => Op::List,
            9 => Op::Sync,
            11 => Op::Ping,
            14 => Op::Multi,
            18 => Op::RemoveWatches,
            19 => Op::CreateContainer,
            101 | 105 => Op::SetWatches,
            103 => Op::Ephemerals,
            _ => Op::Other,
        }
    }

    /// Whether the leader puts it into its log.
    pub(super) fn is_write(self) -> bool {
        matches!(self, Op::Create | Op::CreateContainer | Op::Delete | Op::Multi)
    }
}

/// A request or an answer on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Request(Op),
    Answer(Op),
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    /// It never arrives; the connection lives.
    Lose,
    /// It never arrives, and the connection ends.
    Cut,
    /// It, and all behind it, waits until [`Proxy::open`].
    Hold,
}

type Rule = Box<dyn FnMut(Frame) -> Fate + Send>;

pub(super) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    server: String,
    rule: Mutex<Rule>,
    log: Mutex<Vec<Frame>>,
    gate: watch::Sender<u64>,
    held: watch::Sender<u64>,
    cut: watch::Sender<u64>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl Proxy {
    pub(super) async fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            server,
            rule: Mutex::new(Box::new(|_| Fate::Pass)),
            log: Mutex::default(),
            gate: watch::Sender::new(0),
            held: watch::Sender::new(0),
            cut: watch::Sender::new(0),
        });
        let serving = shared.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(client));
            }
        });
        Proxy { port, shared, accepting }
    }

    pub(super) fn url(&self, rest: &str) -> String {
        format!("zookeeper://127.0.0.1:{}/{rest}", self.port)
    }

    /// From now on each frame meets this.
    pub(super) fn rule(&self, rule: impl FnMut(Frame) -> Fate + Send + 'static) {
        *self.shared.rule.lock().unwrap() = Box::new(rule);
    }

    pub(super) fn pass(&self) {
        self.rule(|_| Fate::Pass);
    }

    /// This fate for the next such frame, then everything passes.
    pub(super) fn once(&self, frame: Frame, fate: Fate) {
        let mut met = false;
        self.rule(move |this| {
            let is_next = this == frame && !met;
            met |= is_next;
            if is_next { fate } else { Fate::Pass }
        });
    }

    /// Lets go what is held.
    pub(super) fn open(&self) {
        self.shared.gate.send_modify(|count| *count += 1);
    }

    /// Waits until something is held.
    pub(super) async fn holds(&self) {
        until("something held", || async {
            *self.shared.held.borrow() > *self.shared.gate.borrow()
        })
        .await;
    }

    /// Ends all connections.
    pub(super) fn cut(&self) {
        self.shared.cut.send_modify(|count| *count += 1);
    }

    /// What went by since the last time, without pings.
    pub(super) fn log(&self) -> Vec<Frame> {
        let mut log = std::mem::take(&mut *self.shared.log.lock().unwrap());
        log.retain(|frame| !matches!(frame, Frame::Request(Op::Ping) | Frame::Answer(Op::Ping)));
        log
    }

    pub(super) fn requests(&self) -> Vec<Op> {
        let of = |frame| match frame {
            Frame::Request(op) => Some(op),
            Frame::Answer(_) => None,
        };
        self.log().into_iter().filter_map(of).collect()
    }
}

type Under = Arc<Mutex<HashMap<i32, Op>>>;

impl Shared {
    async fn serve(self: Arc<Self>, client: TcpStream) {
        let mut cut = self.cut.subscribe();
        let Ok(server) = TcpStream::connect(&self.server).await else { return };
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let under = Under::default();
        tokio::select! {
            () = self.carry(from_client, to_server, &under, true) => {}
            () = self.carry(from_server, to_client, &under, false) => {}
            _ = cut.changed() => {}
        }
    }

    async fn carry(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        under: &Under,
        is_request: bool,
    ) {
        let mut is_first = true;
        loop {
            let Ok(length) = from.read_i32().await else { return };
            let mut body = vec![0; usize::try_from(length).unwrap()];
            if from.read_exact(&mut body).await.is_err() {
                return;
            }
            let number = |at: usize| i32::from_be_bytes(body[at..at + 4].try_into().unwrap());
            let frame = match (std::mem::take(&mut is_first), is_request) {
                (true, true) => Frame::Request(Op::Connect),
                (true, false) => Frame::Answer(Op::Connect),
                (false, true) => {
                    let op = Op::of(number(4));
                    under.lock().unwrap().insert(number(0), op);
                    Frame::Request(op)
                }
                (false, false) if number(0) == -1 => Frame::Answer(Op::Event),
                (false, false) => {
                    let op = under.lock().unwrap().get(&number(0)).copied();
                    Frame::Answer(op.unwrap_or(Op::Other))
                }
            };
            self.log.lock().unwrap().push(frame);
            let fate = (self.rule.lock().unwrap())(frame);
            match fate {
                Fate::Pass => {}
                Fate::Lose => continue,
                Fate::Cut => return,
                Fate::Hold => {
                    let mut gate = self.gate.subscribe();
                    self.held.send_modify(|count| *count += 1);
                    let _ = gate.changed().await;
                }
            }
            body.splice(0..0, length.to_be_bytes());
            if to.write_all(&body).await.is_err() {
                return;
            }
        }
    }
}
