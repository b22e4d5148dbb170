//! MongoDB: against majority writes sent bare, and counted by the server itself.

pub(crate) mod calls;
pub(crate) mod handover;
pub(crate) mod uncontended;

use anyhow::{Context, Result, bail};
use mongodb::bson::{Bson, Document, RawDocumentBuf, Timestamp, doc, rawdoc};
use mongodb::{Client, Collection, Database};

/// What the library uses by default.
const DATABASE: &str = "fencelock";
const COLLECTION: &str = "locks";

/// For the report.
pub(crate) async fn version(url: &str) -> Result<String> {
    let client = Client::with_uri_str(url).await?;
    let about = client.database("admin").run_command(doc! { "buildInfo": 1 }).await?;
    Ok(format!("MongoDB {}, a replica set of three", about.get_str("version")?))
}

/// The port of the primary, on 127.0.0.1.
async fn primary(client: &Client) -> Result<u16> {
    let hello = client.database("admin").run_command(doc! { "hello": 1 }).await?;
    let address = hello.get_str("primary")?;
    address.rsplit(':').next().and_then(|port| port.parse().ok()).context("no port")
}

/// One write of a small document, acknowledged by a majority and its journals.
struct Bare {
    database: Database,
    command: RawDocumentBuf,
}

impl Bare {
    async fn new(url: &str) -> Result<Self> {
        let database = Client::with_uri_str(url).await?.database("bench");
        let bare: Collection<Document> = database.collection("bare");
        bare.delete_many(doc! {}).await?;
        bare.insert_one(doc! { "_id": "bench/free", "n": 0 }).await?;
        let command = rawdoc! {
            "findAndModify": "bare",
            "query": { "_id": "bench/free" },
            "update": { "$inc": { "n": 1 } },
            "new": true,
            "writeConcern": { "w": "majority", "j": true },
        };
        Ok(Bare { database, command })
    }

    async fn write(&self) -> Result<()> {
        let answer = self.database.run_raw_command(self.command.clone()).await?;
        match answer.get("writeConcernError") {
            None => Ok(()),
            Some(error) => bail!("no majority has it: {error}"),
        }
    }
}

/// What the primary did, by its own counters, since they were made.
pub(crate) struct Counters {
    client: Client,
    since: Timestamp,
}

impl Counters {
    pub(crate) async fn new(url: &str) -> Result<Self> {
        let client = Client::with_uri_str(url).await?;
        let newest = Self::log(&client).find_one(doc! {}).sort(doc! { "$natural": -1 }).await?;
        let newest = newest.context("an empty log")?;
        Ok(Counters { client, since: newest.get_timestamp("ts")? })
    }

    fn log(client: &Client) -> Collection<Document> {
        client.database("local").collection("oplog.rs")
    }

    /// Writes in the log: what the members have to copy, and a majority to acknowledge.
    pub(crate) async fn writes(&self) -> Result<u64> {
        let ns = format!("{DATABASE}.{COLLECTION}");
        let written = doc! { "ts": { "$gt": self.since }, "ns": ns };
        Ok(Self::log(&self.client).count_documents(written).await?)
    }

    /// Commands that clients of the library send; the members send none of these.
    pub(crate) async fn commands(&self) -> Result<u64> {
        let admin = self.client.database("admin");
        let status = admin.run_command(doc! { "serverStatus": 1 }).await?;
        let commands = status.get_document("metrics")?.get_document("commands")?;
        let names = ["findAndModify", "update", "aggregate"];
        names.iter().map(|name| total(commands, name)).sum()
    }
}

fn total(commands: &Document, name: &str) -> Result<u64> {
    match commands.get_document(name)?.get("total") {
        Some(Bson::Int64(n)) => Ok(*n as u64),
        Some(Bson::Int32(n)) => Ok(*n as u64),
        other => bail!("{name} was counted as {other:?}"),
    }
}

/// Everything that the primary is asked about locks, noted by its profiler.
pub(crate) struct Profile {
    database: Database,
}

impl Profile {
    pub(crate) async fn start(url: &str) -> Result<Self> {
        let database = Client::with_uri_str(url).await?.database(DATABASE);
        database.run_command(doc! { "profile": 0 }).await?;
        database.collection::<Document>("system.profile").drop().await?;
        // By default it keeps the last megabyte.
        let room = doc! { "create": "system.profile", "capped": true, "size": 64 << 20 };
        database.run_command(room).await?;
        database.run_command(doc! { "profile": 2 }).await?;
        Ok(Profile { database })
    }

    /// How many were writes, how many `getMore`, and how many anything else.
    pub(crate) async fn take(self) -> Result<[u64; 3]> {
        self.database.run_command(doc! { "profile": 0 }).await?;
        let locks = doc! { "ns": format!("{DATABASE}.{COLLECTION}") };
        let profile = self.database.collection::<Document>("system.profile");
        let mut seen = [0; 3];
        let mut notes = profile.find(locks).await?;
        while notes.advance().await? {
            let note = notes.deserialize_current()?;
            let command = note.get_document("command")?;
            let first = command.keys().next().map(String::as_str);
            let kind = match (note.get_str("op")?, first) {
                ("getmore", _) => 1,
                ("update", _) | (_, Some("findAndModify" | "findandmodify" | "update")) => 0,
                _ => 2,
            };
            seen[kind] += 1;
        }
        Ok(seen)
    }
}
