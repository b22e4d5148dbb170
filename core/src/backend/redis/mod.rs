//! Locks in Redis 5.0 or later, or Valkey.
//!
//! The lock is a plain string key, so it excludes, and is excluded by, every client that does
//! `SET key value NX PX` and compare-and-delete. Contenders queue beside it, a release hands the
//! lock to the next one inside the same script, and one message to that contender's client tells
//! it so. What is stored is described in `lua/common.lua`, key names in `keys.rs`.
//!
//! Each call is one request; only a server that has forgotten a script is asked a second time,
//! with the whole script, before it did anything.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use redis::{Cmd, Pipeline, RedisError, Value};

use self::fault::{Fault, Server};
use self::keys::Prefix;
use self::link::Link;
use self::scripts::Script;
use self::subscription::Subscription;
use crate::backend::{Backend, Look, Mode, Place, Renewal, Renewed, Request, Verdict};
use crate::error::{Error, Result};
use crate::info::LockInfo;
use crate::name::Name;
use crate::options::Settings;
use crate::owner::ClientId;
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;

mod connect;
mod fault;
mod inspect;
mod keys;
mod link;
mod replies;
mod scripts;
mod socket;
mod subscription;
#[cfg(test)]
mod tests;
mod value;

/// How many calls go in one pipeline: enough to save round trips, few enough that the requests of
/// others need not wait long between them.
const BATCH: usize = 500;
/// How many pipelines of one renewal are under way at once. Enough to hide a round trip of 50 ms,
/// few enough that an acquire does not queue behind all leases of the client.
const BATCHES_UNDER_WAY: usize = 16;

/// A Redis server.
pub(super) struct Redis {
    shared: Arc<Shared>,
}

/// What requests need, which may outlive the [`Redis`] they came from.
struct Shared {
    server: Server,
    prefix: Prefix,
    /// What the channel of every client begins with.
    channels: String,
    client: ClientId,
    link: Link,
    subscription: Subscription,
}

impl Redis {
    /// Checks the settings, then connects: one handshake, within the connect timeout.
    pub(super) async fn connect(
        target: &Target,
        settings: &Settings,
        wakeups: Arc<Wakeups>,
    ) -> Result<Self> {
        let redis = Self::new(target, settings, wakeups)?;
        let limit = settings.connect_timeout;
        match tokio::time::timeout(limit, redis.shared.handshake()).await {
            Ok(done) => done.map(|()| redis),
            Err(_) => Err(Error::no_answer(limit)),
        }
    }

    /// Checks the settings. No I/O yet.
    fn new(target: &Target, settings: &Settings, wakeups: Arc<Wakeups>) -> Result<Self> {
        let prefix = Prefix::new(&settings.prefix)?;
        let info = connect::parse(target)?;
        let server = Server::new(&info);
        let client = ClientId::random();
        let limit = settings.connect_timeout;
        let subscription =
            Subscription::new(info.clone(), server.clone(), limit, prefix.channel(client), wakeups);
        let link = Link::new(info, limit);
        let channels = prefix.channels();
        let shared = Shared { server, prefix, channels, client, link, subscription };
        Ok(Redis { shared: Arc::new(shared) })
    }
}

impl Backend for Redis {
    fn contend(&self, place: &Arc<Place>, mode: Mode) -> Request<Look> {
        let shared = self.shared.clone();
        let place = place.clone();
        Box::pin(async move { shared.contend(&place, mode).await })
    }

    fn release(&self, place: &Arc<Place>, token: Option<Token>, mark: bool) -> Request<Verdict> {
        let shared = self.shared.clone();
        let place = place.clone();
        Box::pin(async move { shared.release(&place, token, mark).await })
    }

    fn renew(&self, leases: Vec<Renewal>) -> Request<Vec<Result<Renewed>>> {
        let shared = self.shared.clone();
        let batches: Vec<_> = leases.chunks(BATCH).map(<[Renewal]>::to_vec).collect();
        Box::pin(async move {
            let renew = |batch: Vec<Renewal>| {
                let shared = shared.clone();
                async move { shared.renew(&batch).await }
            };
            let results = stream::iter(batches).map(renew).buffered(BATCHES_UNDER_WAY);
            Ok(results.flat_map(stream::iter).collect().await)
        })
    }

    fn inspect(&self, name: &Name) -> Request<LockInfo> {
        let shared = self.shared.clone();
        let name = name.clone();
        Box::pin(async move { shared.inspect(&name).await })
    }

    fn list(&self) -> Request<Vec<LockInfo>> {
        let shared = self.shared.clone();
        Box::pin(async move { shared.list().await })
    }

    fn force_release(&self, name: &Name) -> Request<bool> {
        let shared = self.shared.clone();
        let name = name.clone();
        Box::pin(async move { shared.force_release(&name).await })
    }

    fn close(&self) -> Request<()> {
        self.shared.subscription.end();
        self.shared.link.end();
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Shared {
    async fn contend(&self, place: &Place, mode: Mode) -> Result<Look> {
        let mut call = self.call_at(&scripts::CONTEND, place);
        call.arg(&self.channels).arg(millis(place.ttl)).arg(match mode {
            Mode::Intro => "intro",
            Mode::Again => "again",
            Mode::Try => "try",
        });
        let reply = self.run(&scripts::CONTEND, &call).await?;
        let reply = replies::contend(&reply).ok_or_else(|| self.server.unexpected("a look"))?;
        match reply {
            replies::Contend::Look(look) => {
                if matches!(look, Look::Queued(_)) {
                    self.subscription.start();
                }
                Ok(look)
            }
            replies::Contend::GrantedBefore(token) => {
                if mode == Mode::Again {
                    self.subscription.doubt();
                }
                Ok(Look::Granted(token))
            }
            replies::Contend::NewerLayout => Err(replies::newer_layout()),
        }
    }

    async fn release(&self, place: &Place, token: Option<Token>, mark: bool) -> Result<Verdict> {
        let mut call = self.call_at(&scripts::RELEASE, place);
        call.arg(&self.channels).arg(token.map_or(0, Token::get)).arg(u8::from(mark));
        let reply = self.run(&scripts::RELEASE, &call).await?;
        replies::verdict(&reply).ok_or_else(|| self.server.unexpected("a release"))
    }

    async fn renew(&self, leases: &[Renewal]) -> Vec<Result<Renewed>> {
        let mut calls = Pipeline::with_capacity(leases.len());
        for Renewal { place, token } in leases {
            let keys = self.prefix.keys(&place.name);
            let mut call = scripts::RENEW.call(2);
            call.arg(&keys.lock).arg(keys.record()).arg(value::owner_value(place, self.client));
            call.arg(millis(place.ttl)).arg(token.get());
            calls.add_command(call);
        }
        let replies = self.run_all(&scripts::RENEW, &calls).await;
        let renewed = |reply: Result<Value, Fault>| match reply {
            Ok(value) => {
                replies::renewed(&value).ok_or_else(|| self.server.unexpected("a renewal"))
            }
            Err(fault) => Err(self.server.explain(&fault)),
        };
        replies.into_iter().map(renewed).collect()
    }

    async fn force_release(&self, name: &Name) -> Result<bool> {
        let keys = self.prefix.keys(name);
        // The value that is there now, and once more if it changes in between.
        for _ in 0..2 {
            let mut get = redis::cmd("GET");
            get.arg(&keys.lock);
            let value = match self.send(&get).await? {
                Value::BulkString(value) => value,
                Value::Nil => return Ok(false),
                _ => return Err(self.server.unexpected("GET")),
            };
            if value::Value::of(&value) == value::Value::Newer {
                return Err(replies::newer_layout());
            }
            let mut call = scripts::FORCE_RELEASE.call(4);
            call.arg(&keys.lock).arg(keys.queue()).arg(keys.signs_of_life()).arg(keys.record());
            call.arg(value).arg(&self.channels);
            match self.run(&scripts::FORCE_RELEASE, &call).await? {
                Value::Int(1) => return Ok(true),
                Value::Int(0) => {}
                _ => return Err(self.server.unexpected("a forced release")),
            }
        }
        Err(Error::unavailable(
            "the lock changed hands meanwhile; nothing was released, look again",
        ))
    }

    /// A call with all keys of a name and the owner value, which most scripts begin with.
    fn call_at(&self, script: &Script, place: &Place) -> Cmd {
        let keys = self.prefix.keys(&place.name);
        let mut call = script.call(5);
        call.arg(&keys.lock)
            .arg(keys.queue())
            .arg(keys.signs_of_life())
            .arg(keys.record())
            .arg(keys.tombstone(place.owner))
            .arg(value::owner_value(place, self.client));
        call
    }

    async fn send(&self, command: &Cmd) -> Result<Value> {
        self.link.send(command).await.map_err(|fault| self.server.explain(&fault))
    }

    /// Runs a script: by its hash, or with its source if the server does not know it.
    async fn run(&self, script: &Script, call: &Cmd) -> Result<Value> {
        let reply = match self.link.send(call).await {
            Err(fault) if fault.is_unknown_script() => {
                self.link.send(&script.with_source(call)).await
            }
            reply => reply,
        };
        reply.map_err(|fault| self.server.explain(&fault))
    }

    /// Runs many calls of one script in one go, each with a result of its own.
    async fn run_all(&self, script: &Script, calls: &Pipeline) -> Vec<Result<Value, Fault>> {
        let mut results = self.send_all(calls).await;
        let unknown: Vec<usize> = (0..results.len())
            .filter(|&i| matches!(&results[i], Err(fault) if fault.is_unknown_script()))
            .collect();
        if unknown.is_empty() {
            return results;
        }
        // The first brings the script along, the others then find it.
        let mut again = Pipeline::with_capacity(unknown.len());
        for call in calls.cmd_iter().enumerate().filter(|(i, _)| unknown.binary_search(i).is_ok()) {
            let first = again.is_empty();
            again.add_command(if first { script.with_source(call.1) } else { call.1.clone() });
        }
        for (i, result) in unknown.into_iter().zip(self.send_all(&again).await) {
            results[i] = result;
        }
        results
    }

    async fn send_all(&self, commands: &Pipeline) -> Vec<Result<Value, Fault>> {
        match self.link.send_all(commands).await {
            Ok(replies) => replies
                .into_iter()
                .map(|reply| match reply {
                    Value::ServerError(error) => Err(RedisError::from(error).into()),
                    value => Ok(value),
                })
                .collect(),
            Err(fault) => vec![Err(fault); commands.len()],
        }
    }
}

fn millis(span: Duration) -> u64 {
    // Checked options are whole milliseconds, 24 h at most.
    span.as_millis() as u64
}
