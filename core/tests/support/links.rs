//! The links between the members of a set or an ensemble, which a test cuts: nothing passes, and
//! neither end notices.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::background::BACKGROUND;

/// All links of one set. Members are numbers.
pub(crate) struct Links {
    /// Pairs of members, each in both orders.
    cut: watch::Sender<BTreeSet<(usize, usize)>>,
}

/// Who connects to a member.
pub(crate) enum Caller {
    Member(usize),
    /// It tells its own address first, for connections in the other direction: the member hears
    /// `there` in place of `own`, which is as long.
    MemberAt {
        member: usize,
        own: String,
        there: String,
    },
    /// A member or a client: what it sends first tells the port of a member.
    Tells {
        port: fn(&[u8]) -> Option<u16>,
        members: Vec<u16>,
    },
}

/// An address that leads to a member.
pub(crate) struct Way {
    listener: TcpListener,
}

impl Way {
    /// It has its address now, and leads somewhere from [`Links::lead`] on.
    pub(crate) fn new() -> Self {
        Way { listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    /// HOST:PORT.
    pub(crate) fn host(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }
}

impl Links {
    pub(crate) fn new() -> Self {
        Links { cut: watch::Sender::new(BTreeSet::new()) }
    }

    /// Callers on this way come to the member `to`, which listens on `port`.
    pub(crate) fn lead(&self, way: Way, caller: Caller, to: usize, port: u16) {
        let cut = self.cut.subscribe();
        way.listener.set_nonblocking(true).unwrap();
        BACKGROUND.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(way.listener).unwrap();
            let caller = Arc::new(caller);
            let mut end = cut.clone();
            loop {
                let near = tokio::select! {
                    near = listener.accept() => near.unwrap().0,
                    // The set is gone.
                    _ = end.wait_for(|_| false) => return,
                };
                let (caller, cut) = (caller.clone(), cut.clone());
                tokio::spawn(async move {
                    // An error is the end of a connection, which both ends see.
                    let _ = carry(near, &caller, to, port, cut).await;
                });
            }
        });
    }

    /// Cuts the member off from all others; clients still reach it.
    pub(crate) fn isolate(&self, member: usize, members: usize) {
        for other in (0..members).filter(|other| *other != member) {
            self.cut(member, other);
        }
    }

    pub(crate) fn cut(&self, one: usize, other: usize) {
        self.cut.send_modify(|cut| cut.extend([(one, other), (other, one)]));
    }

    /// All links work again; connections that were cut are reset.
    pub(crate) fn heal(&self) {
        self.cut.send_modify(BTreeSet::clear);
    }
}

async fn carry(
    mut near: TcpStream,
    caller: &Caller,
    to: usize,
    port: u16,
    mut cut: watch::Receiver<BTreeSet<(usize, usize)>>,
) -> std::io::Result<()> {
    let (from, first) = caller.recognise(&mut near).await?;
    let is_cut = |cut: &BTreeSet<_>| from.is_some_and(|from| cut.contains(&(from, to)));
    let mut far = None;
    let pass = async {
        let far = far.insert(TcpStream::connect(("127.0.0.1", port)).await?);
        far.set_nodelay(true)?;
        near.set_nodelay(true)?;
        far.write_all(&first).await?;
        copy_bidirectional(&mut near, far).await
    };
    tokio::select! {
        // First, so that nothing that is sent after the cut passes.
        biased;
        _ = cut.wait_for(is_cut) => {}
        passed = pass => return passed.map(|_| ()),
    }
    let _ = cut.wait_for(|cut| !is_cut(cut)).await;
    Ok(())
}

impl Caller {
    /// Also returns what had to be read for it.
    async fn recognise(&self, near: &mut TcpStream) -> std::io::Result<(Option<usize>, Vec<u8>)> {
        match self {
            Caller::Member(member) => Ok((Some(*member), Vec::new())),
            Caller::MemberAt { member, own, there } => {
                let mut first = beginning(near).await?;
                if let Some(at) = first.windows(own.len()).position(|part| part == own.as_bytes()) {
                    first[at..at + own.len()].copy_from_slice(there.as_bytes());
                }
                Ok((Some(*member), first))
            }
            Caller::Tells { port, members } => {
                let first = beginning(near).await?;
                let port = port(&first);
                Ok((members.iter().position(|member| Some(*member) == port), first))
            }
        }
    }
}

async fn beginning(near: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut first = vec![0; 16 << 10];
    let length = near.read(&mut first).await?;
    first.truncate(length);
    Ok(first)
}
