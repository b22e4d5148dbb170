//! The protocol, step by step, against real servers: every branch of every step, by guarantee.
//!
//! A step whose `$$NOW` is old, because it waited for its turn on the server, is told apart from
//! one in time only by what the document says. So these tests write into the document what a
//! newer step would have left there, and then send the old one.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mongodb::Collection;
use mongodb::bson::{Bson, DateTime, Document, doc};

use super::MongoDb;
use crate::backend::{Backend, Look, Mode, Place, Queued, Verdict};
use crate::error::Result;
use crate::name::Name;
use crate::options::{ClientOptions, Family, Settings};
use crate::owner::OwnerId;
use crate::token::Token;
use crate::url::Target;
use crate::wakeups::Wakeups;

mod admin;
mod contend;
mod foreign;
mod hand_off;
mod handshake;
mod release;
mod renew;
mod short;
mod watch;

const TTL: Duration = Duration::from_secs(30);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A collection of its own on the shared server, a client's backend on it, and a handle of our
/// own to look behind the scenes.
struct Scene {
    url: String,
    collection: String,
    mongo: MongoDb,
    wakeups: Arc<Wakeups>,
    raw: Collection<Document>,
}

impl Scene {
    async fn new() -> Self {
        Self::at(&url("FENCELOCK_TEST_MONGODB_URL")).await
    }

    /// On a server that is no replica set.
    async fn standalone() -> Self {
        Self::at(&url("FENCELOCK_TEST_MONGODB_STANDALONE_URL")).await
    }

    async fn at(url: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let collection = format!("protocol.test-{}-{count}", std::process::id());
        let (mongo, wakeups) = connect(url, &collection).await;
        let store = &mongo.shared.store;
        let raw = store.database.collection(&store.collection);
        Scene { url: url.to_owned(), collection, mongo, wakeups, raw }
    }

    /// Another client of the same collection.
    async fn client(&self) -> MongoDb {
        connect(&self.url, &self.collection).await.0
    }

    /// The document of the name.
    async fn document(&self) -> Document {
        self.raw.find_one(doc! { "_id": "n" }).await.unwrap().expect("a document")
    }

    /// Changes the document as a step of somebody else would, by a pipeline.
    async fn set(&self, fields: Document) {
        let filter = doc! { "_id": "n" };
        let changed = self.raw.update_one(filter, vec![doc! { "$set": fields }]).await.unwrap();
        assert_eq!(changed.matched_count, 1);
    }

    /// Sets a field to the server's time plus so many milliseconds.
    async fn set_time(&self, field: &str, from_now: i64) {
        self.set(doc! { field: { "$add": ["$$NOW", from_now] } }).await;
    }

    /// Lets the holder's time be over, as if it had died.
    async fn expire(&self) {
        self.set_time("u", -1).await;
    }

    async fn insert(&self, document: Document) {
        self.raw.insert_one(document).await.unwrap();
    }

    /// The server's time in milliseconds.
    async fn now(&self) -> i64 {
        let hello = self.mongo.shared.store.database.run_command(doc! { "hello": 1 });
        hello.await.unwrap().get_datetime("localTime").unwrap().timestamp_millis()
    }

    /// What is left of the holder's time.
    async fn left(&self) -> i64 {
        time(&self.document().await, "u") - self.now().await
    }

    async fn intro(&self, place: &Arc<Place>) -> Look {
        self.mongo.contend(place, Mode::Intro).await.unwrap()
    }

    async fn again(&self, place: &Arc<Place>) -> Look {
        self.mongo.contend(place, Mode::Again).await.unwrap()
    }

    async fn attempt(&self, place: &Arc<Place>) -> Look {
        self.mongo.contend(place, Mode::Try).await.unwrap()
    }

    async fn release(&self, place: &Arc<Place>, token: Token) -> Verdict {
        self.mongo.release(place, Some(token), false).await.unwrap()
    }

    async fn leave(&self, place: &Arc<Place>) {
        self.mongo.release(place, None, false).await.unwrap();
    }

    /// Holds the lock with a new place.
    async fn hold(&self, ttl: Duration) -> (Arc<Place>, Token) {
        let place = place("n", ttl);
        let token = granted(self.intro(&place).await);
        (place, token)
    }

    /// The owners in the queue, in order.
    async fn queue(&self) -> Vec<String> {
        let document = self.document().await;
        let keys = document.get_document("q").unwrap().keys();
        keys.map(|key| key.strip_prefix('o').unwrap().to_owned()).collect()
    }

    async fn holder(&self) -> Option<String> {
        let document = self.document().await;
        let holder = document.get_document("h").ok()?;
        Some(holder.get_str("o").unwrap().to_owned())
    }
}

impl Drop for Scene {
    /// The collection goes with the scene; if its runtime has ended, the server's does later.
    fn drop(&mut self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let raw = self.raw.clone();
            drop(runtime.spawn(async move { drop(raw.drop().await) }));
        }
    }
}

fn url(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set; `tests/services/up mongodb` starts the servers and prints it"
        )
    })
}

fn settings(collection: &str) -> Settings {
    // What is tested here is what an answer says, not how soon a busy machine gives it.
    let options = ClientOptions::new().connect_timeout(PATIENCE).request_timeout(PATIENCE);
    options.collection(collection).settled(Family::MongoDb).unwrap()
}

async fn try_connect(url: &str, settings: &Settings) -> Result<MongoDb> {
    let (target, _) = Target::parse(url).unwrap();
    MongoDb::connect(&target, settings, Arc::default()).await
}

async fn connect(url: &str, collection: &str) -> (MongoDb, Arc<Wakeups>) {
    let wakeups = Arc::<Wakeups>::default();
    let (target, _) = Target::parse(url).unwrap();
    let mongo = MongoDb::connect(&target, &settings(collection), wakeups.clone()).await.unwrap();
    (mongo, wakeups)
}

fn place(name: &str, ttl: Duration) -> Arc<Place> {
    place_of(name, ttl, "host=test pid=1 lang=rust")
}

fn place_of(name: &str, ttl: Duration, metadata: &str) -> Arc<Place> {
    Arc::new(Place {
        owner: OwnerId::random(),
        name: Name::new(name).unwrap(),
        ttl,
        metadata: metadata.into(),
    })
}

/// The path of a field of this place in the queue.
fn entry(place: &Place, field: &str) -> String {
    format!("q.o{}.{field}", place.owner)
}

fn time(document: &Document, field: &str) -> i64 {
    let mut value = &Bson::Document(document.clone());
    for part in field.split('.') {
        value = value.as_document().unwrap().get(part).unwrap_or_else(|| panic!("no {field}"));
    }
    let time: &DateTime = value.as_datetime().unwrap_or_else(|| panic!("{field} is no time"));
    time.timestamp_millis()
}

fn number(document: &Document, field: &str) -> u64 {
    document.get_i64(field).unwrap() as u64
}

#[track_caller]
fn granted(look: Look) -> Token {
    match look {
        Look::Granted(token, _) => token,
        other => panic!("not granted: {other:?}"),
    }
}

#[track_caller]
fn queued(look: Look) -> Queued {
    match look {
        Look::Queued(queued) => queued,
        other => panic!("not queued: {other:?}"),
    }
}

/// Whether `value` is at most `of`, and not so much less that it could be something else.
#[track_caller]
fn assert_just_below(value: i64, of: Duration) {
    let of = of.as_millis() as i64;
    assert!(value <= of && value > of - 10_000.min(of / 2), "{value} ms is not about {of} ms");
}

/// Long enough for anything but a hang on a busy machine.
const PATIENCE: Duration = ms(20_000);

/// Waits for the future, and fails with `what` if it does not come.
async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

/// Waits until the condition holds.
async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let start = Instant::now();
    while !soon(what, condition()).await {
        assert!(start.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(ms(2)).await;
    }
}
