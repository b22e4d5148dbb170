//! Locks in Redis 5.0 or later, or Valkey: one server, a cluster, or a primary that sentinels name.
//!
//! The lock is a plain string key, so it excludes, and is excluded by, every client that does
//! `SET key value NX PX` and compare-and-delete. Contenders queue beside it, a release hands the
//! lock to the next one inside the same script, and one message to that contender's client tells
//! it so. What is stored is described in `lua/common.lua`, key names in `keys.rs`.
//!
//! Each call is one request. A second time is asked only a server that has forgotten a script,
//! and another node of a cluster, each after a refusal, before anything was done. What each
//! deployment guarantees is in `DEPLOYMENTS.md`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use redis::{Cmd, Pipeline, Value};

use self::address::{Deployment, Kind};
use self::cluster::Cluster;
use self::dial::{Dialer, Whereabouts};
use self::exchange::{Acknowledgement, Answer, Exchange};
use self::fault::{Fault, Server};
use self::keys::Prefix;
use self::link::Link;
use self::scripts::Script;
use self::sentinel::Sentinels;
use self::subscription::{Subscription, Trust};
use self::tls::Tls;
use crate::backend::{Backend, Look, Mode, Place, Renewal, Renewed, Request, Verdict};
use crate::error::{Error, Result};
use crate::info::LockInfo;
use crate::name::Name;
use crate::options::Settings;
use crate::owner::ClientId;
use crate::period::{Pace, Term};
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;

mod address;
mod cluster;
mod dial;
mod exchange;
mod fault;
mod handshake;
mod inspect;
mod keys;
mod link;
mod replies;
mod scripts;
mod sentinel;
mod slots;
mod socket;
mod subscription;
#[cfg(test)]
mod tests;
mod tls;
mod value;

/// How many calls go in one pipeline: enough to save round trips, few enough that the requests of
/// others need not wait long between them.
const BATCH: usize = 500;
/// How many pipelines of one renewal are under way at once. Enough to hide a round trip of 50 ms,
/// few enough that an acquire does not queue behind all leases of the client.
const BATCHES_UNDER_WAY: usize = 16;
/// For how long a server that the sentinels name may let us wait for a connection.
const LONGEST_DIAL: Duration = Duration::from_secs(1);

/// Redis, in any deployment.
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
    route: Route,
    subscription: Subscription,
    /// How many replicas must have a grant before it counts.
    replicas: u32,
    request_timeout: Duration,
}

/// Where requests go.
enum Route {
    One(Link),
    Cluster(Arc<Cluster>),
}

/// Calls of one script that go in one go, and the cluster slot of each.
struct Batch {
    calls: Pipeline,
    slots: Vec<u16>,
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
        let deployment = Deployment::parse(target)?;
        let limit = settings.connect_timeout;
        let tls = match (deployment.tls, settings.tls.is_empty()) {
            (true, _) => Some(Tls::new(&settings.tls)?),
            (false, true) => None,
            (false, false) => {
                return Err(Error::invalid(
                    "TLS options are given, but the URL does not ask for TLS; it begins with rediss then",
                ));
            }
        };
        if !matches!(deployment.kind, Kind::Sentinel(_)) && !settings.sentinel.is_empty() {
            return Err(Error::invalid(
                "sentinel_* options are given, but the URL names no sentinels",
            ));
        }
        let server = Server::new(&deployment);
        let dialer = Dialer::new(deployment.settings, tls.clone(), limit);
        let addresses = deployment.addresses;
        let (route, listening_at) = match deployment.kind {
            Kind::Single => {
                let at = Whereabouts::Fixed(addresses[0].clone());
                (Route::One(Link::new(at.clone(), dialer.clone())), at)
            }
            Kind::Sentinel(service) => {
                let credentials = address::sentinel_settings(&settings.sentinel)?;
                let sentinels =
                    Sentinels::new(service, addresses, Dialer::new(credentials, tls, limit));
                let at = Whereabouts::Primary(Arc::new(sentinels));
                // A primary that is frozen or cut off must not keep us from asking again.
                let dialer = dialer.within(LONGEST_DIAL);
                (Route::One(Link::new(at.clone(), dialer)), at)
            }
            Kind::Cluster => {
                let cluster = Arc::new(Cluster::new(&addresses, dialer.clone()));
                (Route::Cluster(cluster.clone()), Whereabouts::AnyNode(cluster))
            }
        };
        let client = ClientId::random();
        let trust = if settings.replicas > 0 { Trust::Hints } else { Trust::Grants };
        let channel = prefix.channel(client);
        let subscription =
            Subscription::new(listening_at, dialer, server.clone(), channel, wakeups, trust);
        let channels = prefix.channels();
        let (replicas, request_timeout) = (settings.replicas, settings.request_timeout);
        let shared = Shared {
            server,
            prefix,
            channels,
            client,
            route,
            subscription,
            replicas,
            request_timeout,
        };
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

    fn shard(&self, name: &Name) -> usize {
        match &self.shared.route {
            Route::One(_) => 0,
            Route::Cluster(cluster) => cluster.shard(self.shared.prefix.keys(name).slot),
        }
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
        match &self.shared.route {
            Route::One(link) => link.end(),
            Route::Cluster(cluster) => cluster.end(),
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Shared {
    async fn contend(&self, place: &Place, mode: Mode) -> Result<Look> {
        let (mut call, slot) = self.call_at(&scripts::CONTEND, place);
        call.arg(&self.channels).arg(millis(place.ttl)).arg(match mode {
            Mode::Intro => "intro",
            Mode::Again => "again",
            Mode::Try => "try",
        });
        let asked = self.acknowledgement(place.ttl);
        let (reply, acknowledged) = self.answer(&scripts::CONTEND, &call, slot, asked).await?;
        let reply = replies::contend(&reply).ok_or_else(|| self.server.unexpected("a look"))?;
        let granted = matches!(
            reply,
            replies::Contend::Look(Look::Granted(..)) | replies::Contend::GrantedBefore(_)
        );
        if granted && let Err(fault) = acknowledged {
            return Err(self.server.explain(&fault).undo());
        }
        match reply {
            replies::Contend::Look(look) => {
                if matches!(look, Look::Queued(_)) {
                    self.subscription.start();
                }
                Ok(look)
            }
            replies::Contend::GrantedBefore(token) => {
                if mode == Mode::Again {
                    self.subscription.found_a_grant();
                }
                Ok(Look::Granted(token, Term::FullTtl))
            }
            replies::Contend::NewerLayout => Err(replies::newer_layout()),
        }
    }

    async fn release(&self, place: &Place, token: Option<Token>, mark: bool) -> Result<Verdict> {
        let (mut call, slot) = self.call_at(&scripts::RELEASE, place);
        call.arg(&self.channels).arg(token.map_or(0, Token::get)).arg(u8::from(mark));
        let reply = self.run(&scripts::RELEASE, &call, slot).await?;
        replies::verdict(&reply).ok_or_else(|| self.server.unexpected("a release"))
    }

    async fn renew(&self, leases: &[Renewal]) -> Vec<Result<Renewed>> {
        let mut batch = self.batch(leases.len());
        for Renewal { place, token } in leases {
            let keys = self.prefix.keys(&place.name);
            let mut call = scripts::RENEW.call(2);
            call.arg(&keys.lock).arg(keys.record()).arg(value::owner_value(place, self.client));
            call.arg(millis(place.ttl)).arg(token.get());
            self.add(&mut batch, call, keys.slot);
        }
        // A renewal that a new primary does not know of would end there early.
        let shortest = leases.iter().map(|lease| lease.place.ttl).min().unwrap_or_default();
        let asked = self.acknowledgement(shortest);
        let replies = self.run_all(&scripts::RENEW, &batch, asked).await;
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
            let value = match self.run(&scripts::INSPECT, &get, keys.slot).await? {
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
            match self.run(&scripts::FORCE_RELEASE, &call, keys.slot).await? {
                Value::Int(1) => return Ok(true),
                Value::Int(0) => {}
                _ => return Err(self.server.unexpected("a forced release")),
            }
        }
        Err(Error::unavailable(
            "the lock changed hands meanwhile; nothing was released, look again",
        ))
    }

    /// A call with all keys of a name and the owner value, which most scripts begin with, and the
    /// slot of the keys.
    fn call_at(&self, script: &Script, place: &Place) -> (Cmd, u16) {
        let keys = self.prefix.keys(&place.name);
        let mut call = script.call(5);
        call.arg(&keys.lock)
            .arg(keys.queue())
            .arg(keys.signs_of_life())
            .arg(keys.record())
            .arg(keys.tombstone(place.owner))
            .arg(value::owner_value(place, self.client));
        (call, keys.slot)
    }

    /// What a grant for this ttl asks of the replicas. Well inside the time limit of the request,
    /// so that what they did not acknowledge is still undone in time.
    fn acknowledgement(&self, ttl: Duration) -> Option<Acknowledgement> {
        (self.replicas > 0).then(|| Acknowledgement {
            replicas: self.replicas,
            within_ms: millis(Pace::BRISK.request_limit(ttl, self.request_timeout) * 2 / 5).max(1),
        })
    }

    async fn run(&self, script: &Script, call: &Cmd, slot: u16) -> Result<Value> {
        Ok(self.answer(script, call, slot, None).await?.0)
    }

    async fn answer(
        &self,
        script: &Script,
        call: &Cmd,
        slot: u16,
        acknowledgement: Option<Acknowledgement>,
    ) -> Result<Answer> {
        let exchange = Exchange { script, acknowledgement };
        let answer = match &self.route {
            Route::One(link) => exchange.run(link, call, false).await,
            // Boxed, so that requests to a single server stay small.
            Route::Cluster(cluster) => Box::pin(cluster.run(slot, exchange, call)).await,
        };
        answer.map_err(|fault| self.server.explain(&fault))
    }

    fn batch(&self, size: usize) -> Batch {
        Batch { calls: Pipeline::with_capacity(size), slots: Vec::new() }
    }

    fn add(&self, batch: &mut Batch, call: Cmd, slot: u16) {
        batch.calls.add_command(call);
        if matches!(self.route, Route::Cluster(_)) {
            batch.slots.push(slot);
        }
    }

    /// Runs many calls of one script in one go, each with a result of its own.
    async fn run_all(
        &self,
        script: &Script,
        batch: &Batch,
        acknowledgement: Option<Acknowledgement>,
    ) -> Vec<Result<Value, Fault>> {
        let exchange = Exchange { script, acknowledgement };
        match &self.route {
            Route::One(link) => exchange.run_all(link, &batch.calls).await,
            Route::Cluster(cluster) => {
                Box::pin(cluster.run_all(&batch.slots, exchange, &batch.calls)).await
            }
        }
    }
}

fn millis(span: Duration) -> u64 {
    // Checked options are whole milliseconds, 24 h at most.
    span.as_millis() as u64
}
