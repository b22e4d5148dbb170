//! The wake-up channel of a client: one subscription, whatever the number of locks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::{PubSub, PubSubSink};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::dial::{Dialer, Whereabouts};
use super::fault::{Fault, Server};
use super::value::Value;
use crate::owner::OwnerId;
use crate::wakeups::Wakeups;

/// Between attempts to connect, doubled each time.
const BACKOFF: Duration = Duration::from_millis(50);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);
/// For how long the server may take to confirm a subscription that seems dead.
const CONFIRM: Duration = Duration::from_secs(2);

/// A subscription to the client's channel, made when the first contender has to wait and then
/// kept for the client's life.
///
/// It sends no pings: an idle client is to cost the server no commands. The kernel probes the
/// connection instead, and when a contender finds at a look that a grant had been made for it
/// without the message having come, the subscription is asked for again, which proves the whole
/// way to the server and back. Until then a lost message delays a contender by one look period.
pub(super) struct Subscription {
    listener: Arc<Listener>,
    task: Mutex<Option<AbortHandle>>,
}

struct Listener {
    whereabouts: Whereabouts,
    dialer: Dialer,
    server: Server,
    channel: String,
    wakeups: Arc<Wakeups>,
    trust: Trust,
    running: AtomicBool,
    ended: AtomicBool,
    doubted: Notify,
    /// Some message has come since [`Subscription::found_a_grant`] was last called.
    heard: AtomicBool,
}

/// What a pushed grant is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It is a grant.
    Grants,
    /// It says that a look may find one. Who released the lock cannot vouch that the replicas
    /// know of the next holder; only that holder's own look can, which asks them.
    Hints,
}

impl Subscription {
    pub(super) fn new(
        whereabouts: Whereabouts,
        dialer: Dialer,
        server: Server,
        channel: String,
        wakeups: Arc<Wakeups>,
        trust: Trust,
    ) -> Self {
        let listener = Listener {
            whereabouts,
            dialer,
            server,
            channel,
            wakeups,
            trust,
            running: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            doubted: Notify::new(),
            heard: AtomicBool::new(false),
        };
        Subscription { listener: Arc::new(listener), task: Mutex::default() }
    }

    /// Starts listening unless that has been done.
    pub(super) fn start(&self) {
        if self.listener.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut task = self.task();
        if !self.listener.ended.load(Ordering::Acquire) {
            let listener = Running(self.listener.clone());
            *task = Some(tokio::spawn(async move { listener.0.run().await }).abort_handle());
        }
    }

    /// A look found a grant that had been made before. Without a message about it the
    /// subscription may be dead: find out. Where messages are hints, each of them ends in such a
    /// look, so any message since the last one will do.
    pub(super) fn found_a_grant(&self) {
        let listener = &self.listener;
        if listener.trust == Trust::Grants || !listener.heard.swap(false, Ordering::AcqRel) {
            listener.doubted.notify_one();
        }
    }

    /// Stops listening for good.
    pub(super) fn end(&self) {
        let mut task = self.task();
        self.listener.ended.store(true, Ordering::Release);
        if let Some(task) = task.take() {
            task.abort();
        }
    }

    fn task(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.end();
    }
}

/// A listener whose task runs; when the task ends, with its runtime for instance, the next
/// contender that has to wait starts it again.
struct Running(Arc<Listener>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::Release);
    }
}

impl Listener {
    async fn run(&self) {
        let mut backoff = BACKOFF;
        loop {
            match timeout(self.dialer.limit(), self.subscribe()).await {
                Ok(Ok(connection)) => {
                    backoff = BACKOFF;
                    // Messages may have been missed until now.
                    self.wakeups.look_all();
                    self.listen(connection).await;
                    tracing::debug!("the wake-up subscription broke; subscribing again");
                }
                Ok(Err(fault)) => self.report(&fault),
                Err(_) => tracing::debug!("no wake-up subscription within the connect timeout"),
            }
            sleep(backoff).await;
            backoff = (backoff * 2).min(LONGEST_BACKOFF);
        }
    }

    async fn subscribe(&self) -> Result<PubSub, Fault> {
        let socket = self.whereabouts.open(&self.dialer).await?;
        let mut connection = PubSub::new(self.dialer.settings(), socket).await?;
        connection.subscribe(&self.channel).await?;
        Ok(connection)
    }

    /// Without a subscription contenders still get the lock, but only when they look.
    fn report(&self, fault: &Fault) {
        let error = self.server.explain(fault);
        if fault.is_refusal() {
            tracing::warn!(%error, channel = self.channel, "cannot subscribe; hand-offs are slow");
        } else {
            tracing::debug!(%error, "cannot subscribe");
        }
    }

    /// Returns when the connection is dead.
    async fn listen(&self, connection: PubSub) {
        let (mut commands, mut messages) = connection.split();
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => self.deliver(message.get_payload_bytes()),
                    None => return,
                },
                () = self.doubted.notified() => if !self.is_confirmed(&mut commands).await {
                    return;
                },
            }
        }
    }

    /// Subscribes once more, which changes nothing and needs no other right.
    async fn is_confirmed(&self, commands: &mut PubSubSink) -> bool {
        matches!(timeout(CONFIRM, commands.subscribe(&self.channel)).await, Ok(Ok(())))
    }

    fn deliver(&self, message: &[u8]) {
        match Message::parse(message) {
            Some(Message::Granted(owner, token)) => match self.trust {
                Trust::Grants => self.wakeups.granted(owner, token),
                Trust::Hints => {
                    self.heard.store(true, Ordering::Release);
                    self.wakeups.look(owner);
                }
            },
            Some(Message::Lost(owner)) => self.wakeups.revoked(owner),
            // The empty message with which a client tries its rights.
            None if message.is_empty() => {}
            None => tracing::debug!(channel = self.channel, "ignored a malformed message"),
        }
    }
}

/// What the scripts publish.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    /// `<owner value> <token>`: a hand-off.
    Granted(OwnerId, u64),
    /// `lost <owner value>`: a forced release.
    Lost(OwnerId),
}

impl Message {
    fn parse(message: &[u8]) -> Option<Self> {
        if let Some(value) = message.strip_prefix(b"lost ") {
            return Some(Message::Lost(owner(value)?));
        }
        // The text in an owner value may contain spaces, the token does not.
        let space = message.iter().rposition(|&b| b == b' ')?;
        let token = std::str::from_utf8(&message[space + 1..]).ok()?.parse().ok()?;
        Some(Message::Granted(owner(&message[..space])?, token))
    }
}

fn owner(value: &[u8]) -> Option<OwnerId> {
    match Value::of(value) {
        Value::Ours { owner, .. } => Some(owner),
        Value::Newer | Value::Foreign => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g4_messages_are_grants_and_notices_and_nothing_else() {
        let id = OwnerId::random();
        let value = format!("fl1:{id}:0123456789abcdef:30000:a b 7");
        let parse = |text: &str| Message::parse(text.as_bytes());
        assert_eq!(parse(&format!("{value} 12")), Some(Message::Granted(id, 12)));
        assert_eq!(parse(&format!("lost {value}")), Some(Message::Lost(id)));
        for malformed in
            ["", " ", "lost ", "12", &value[..50], &format!("{value} -1"), "lost x", "x 12"]
        {
            assert_eq!(parse(malformed), None, "{malformed:?}");
        }
        assert_eq!(Message::parse(b"\xff 1"), None);
    }
}
