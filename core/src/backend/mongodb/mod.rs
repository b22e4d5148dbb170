//! Locks in MongoDB 4.2 or later: a replica set, or a standalone server for development.
//!
//! One document per name (`document.rs`). Every step is one command on that document, which
//! decides by the server's time (`steps.rs`) and counts only when a majority has it. A release
//! hands the lock to the next contender in the same step, and a change stream tells that
//! contender's client: since a stream tells only what a majority has, that is the grant itself
//! (`watch.rs`). Looks are writes, so they are rare; reads in between say when one is worth it
//! (`peek.rs`).
//!
//! Each call is one command. A second one is sent only after the server said that the first did
//! nothing: a short form that did not match, two first steps that met, a batch that was not
//! complete.

use std::sync::Arc;
use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, rawdoc};

use self::address::Namespace;
use self::fault::{Fault, Server};
use self::index::Index;
use self::peek::Peeker;
use self::short::Loneliness;
use self::store::Store;
use self::waiting::Waiting;
use self::watch::Watch;
use crate::backend::{Backend, Look, Mode, Place, Renewal, Renewed, Request, Verdict};
use crate::clock::Instant;
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
mod document;
mod fault;
mod index;
mod inspect;
mod peek;
mod renew;
mod short;
mod steps;
mod store;
#[cfg(test)]
mod tests;
mod waiting;
mod watch;

/// The first version of the wire protocol of MongoDB 4.2.
const OLDEST_WIRE_VERSION: i32 = 8;
/// How often two first steps on a name may meet. Once is rare; this many times is a fault.
const MEETINGS: u32 = 16;

/// MongoDB.
pub(super) struct MongoDb {
    shared: Arc<Shared>,
}

/// What requests need, which may outlive the [`MongoDb`] they came from.
struct Shared {
    driver: Client,
    store: Arc<Store>,
    client: ClientId,
    waiting: Arc<Waiting>,
    watch: Watch,
    loneliness: Loneliness,
    index: Index,
    request_timeout: Duration,
}

impl MongoDb {
    /// Checks the settings, then connects: one handshake, within the connect timeout.
    pub(super) async fn connect(
        target: &Target,
        settings: &Settings,
        wakeups: Arc<Wakeups>,
    ) -> Result<Self> {
        let namespace = Namespace::parse(&settings.collection)?;
        let limit = settings.connect_timeout;
        let connecting = async {
            let options = address::driver_options(target, settings).await?;
            let server = Server::new(&options);
            let driver = Client::with_options(options)
                .map_err(|error| server.explain_url(&error, &target.url))?;
            let store = Arc::new(Store::new(&driver, namespace, server));
            handshake(&store).await?;
            Ok(Self::new(driver, store, settings, wakeups))
        };
        match tokio::time::timeout(limit, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(Error::no_answer(limit)),
        }
    }

    fn new(driver: Client, store: Arc<Store>, settings: &Settings, wakeups: Arc<Wakeups>) -> Self {
        let client = ClientId::random();
        let waiting = Arc::new(Waiting::default());
        let request_timeout = settings.request_timeout;
        let peeker = Peeker::new(store.clone(), waiting.clone(), wakeups, client, request_timeout);
        let shared = Shared {
            driver,
            store,
            client,
            waiting,
            watch: Watch::new(peeker),
            loneliness: Loneliness::new(),
            index: Index::default(),
            request_timeout,
        };
        MongoDb { shared: Arc::new(shared) }
    }
}

/// Proves that there is a primary, that it takes our password, and that it can do what locks need.
async fn handshake(store: &Store) -> Result<()> {
    let hello = match store.run(rawdoc! { "hello": 1 }).await {
        // Named so until 4.4.
        Err(fault) if fault.is_unknown_command() => store.run(rawdoc! { "isMaster": 1 }).await,
        answer => answer,
    };
    let hello = hello.map_err(|fault| store.explain(&fault))?;
    if hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid") {
        return Err(fault::routers());
    }
    if hello.get_i32("maxWireVersion").is_ok_and(|version| version < OLDEST_WIRE_VERSION) {
        return Err(fault::too_old());
    }
    let flag = |field: &str| hello.get_bool(field).unwrap_or(false);
    if flag("isWritablePrimary") || flag("ismaster") {
        return Ok(());
    }
    Err(store.server.unavailable("is a secondary; locks need the primary").lasting())
}

impl Backend for MongoDb {
    fn pace(&self) -> Pace {
        Pace::SPARING
    }

    fn contend(&self, place: &Arc<Place>, mode: Mode) -> Request<Look> {
        let shared = self.shared.clone();
        let place = place.clone();
        Box::pin(async move { shared.contend(&place, mode).await })
    }

    fn release(&self, place: &Arc<Place>, token: Option<Token>, mark: bool) -> Request<Verdict> {
        let shared = self.shared.clone();
        let place = place.clone();
        // Before it is polled: nobody waits from the call on.
        shared.waiting.leave(place.owner);
        Box::pin(async move { shared.release(&place, token, mark).await })
    }

    fn renew(&self, leases: Vec<Renewal>) -> Request<Vec<Result<Renewed>>> {
        let shared = self.shared.clone();
        let renewing = shared.renew(leases);
        Box::pin(async move { Ok(renewing.await) })
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
        self.shared.watch.end();
        // In a task of its own: it tells a server that may be dead about its sessions, so the caller
        // may not wait for all of it. But it should: a runtime that ends while the driver is at
        // work makes it panic.
        let ending =
            tokio::spawn(self.shared.driver.clone().shutdown().immediate(true).into_future());
        Box::pin(async move {
            let _ = ending.await;
            Ok(())
        })
    }
}

impl Shared {
    async fn contend(&self, place: &Place, mode: Mode) -> Result<Look> {
        if mode != Mode::Again && self.loneliness.is(&place.name) {
            let granted = self.short_grant(place).await;
            match granted.map_err(|fault| self.store.explain(&fault))? {
                Some(token) => return Ok(Look::Granted(token, Term::FullTtl)),
                None => self.loneliness.met(&place.name),
            }
        }
        let answer = self.look(place, mode).await.map_err(|fault| self.store.explain(&fault))?;
        let looked = document::looked(answer.as_ref(), place, self.client, mode)?;
        match looked.look {
            Look::Queued(queued) => {
                self.loneliness.met(&place.name);
                let (floor, first, left) = (queued.floor, queued.first, looked.left);
                let now = Instant::now();
                self.waiting.enter(place.owner, &place.name, floor, first, left, now);
                self.watch.start();
                self.index.start(&self.store);
            }
            Look::Granted(..) => self.waiting.leave(place.owner),
            Look::Busy | Look::Gone | Look::Full => {
                self.loneliness.met(&place.name);
                self.waiting.leave(place.owner);
            }
        }
        Ok(looked.look)
    }

    async fn look(&self, place: &Place, mode: Mode) -> Result<Option<Document>, Fault> {
        let mut meetings = 0;
        loop {
            let filter = rawdoc! { "_id": place.name.as_str() };
            let pipeline = steps::contend(place, self.client, mode);
            let fields = document::look_fields(place.owner);
            let upsert = mode != Mode::Again;
            let step = self.store.step(filter, pipeline, upsert, fields, self.limit(place.ttl));
            match step.await {
                Err(fault) if fault.is_duplicate_key() && meetings < MEETINGS => meetings += 1,
                answer => return answer,
            }
        }
    }

    async fn release(&self, place: &Place, token: Option<Token>, mark: bool) -> Result<Verdict> {
        if let Some(token) = token
            && !mark
            && self.loneliness.is(&place.name)
        {
            let released = self.short_release(place, token).await;
            if released.map_err(|fault| self.store.explain(&fault))? {
                return Ok(Verdict::Released);
            }
            self.loneliness.met(&place.name);
        }
        let answer = self.end(place, mark).await.map_err(|fault| self.store.explain(&fault))?;
        let ended = document::ended(answer.as_ref(), place.name.as_str(), token)?;
        if ended.alone && token.is_some() {
            self.loneliness.ended_alone(&place.name);
        } else {
            self.loneliness.met(&place.name);
        }
        Ok(ended.verdict)
    }

    async fn end(&self, place: &Place, mark: bool) -> Result<Option<Document>, Fault> {
        let mut meetings = 0;
        loop {
            let filter = rawdoc! { "_id": place.name.as_str() };
            let pipeline = steps::release(place, self.client, mark);
            let fields = document::release_fields();
            let step = self.store.step(filter, pipeline, mark, fields, self.limit(place.ttl));
            match step.await {
                Err(fault) if fault.is_duplicate_key() && meetings < MEETINGS => meetings += 1,
                answer => return answer,
            }
        }
    }

    /// How long one request for a lock of this ttl may take.
    fn limit(&self, ttl: Duration) -> Duration {
        Pace::SPARING.request_limit(ttl, self.request_timeout)
    }
}
