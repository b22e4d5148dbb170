//! One command and its answer. Nothing is ever sent twice.

use std::time::Duration;

use mongodb::bson::{Document, RawArrayBuf, RawDocumentBuf, rawdoc};
use mongodb::{ClientSession, Database};

use super::address::Namespace;
use super::fault::{Fault, Server};
use super::steps;
use crate::error::{Error, Result};

/// The collection with the locks.
pub(super) struct Store {
    pub(super) database: Database,
    pub(super) collection: String,
    pub(super) server: Server,
}

impl Store {
    pub(super) fn new(client: &mongodb::Client, namespace: Namespace, server: Server) -> Self {
        let Namespace { database, collection } = namespace;
        Store { database: client.database(&database), collection, server }
    }

    /// One step on one document, which comes back as it is afterwards.
    pub(super) async fn step(
        &self,
        filter: RawDocumentBuf,
        pipeline: RawArrayBuf,
        upsert: bool,
        fields: RawDocumentBuf,
        limit: Duration,
    ) -> Result<Option<Document>, Fault> {
        let command = rawdoc! {
            "findAndModify": self.collection.as_str(),
            "query": filter,
            "update": pipeline,
            "new": true,
            "upsert": upsert,
            "fields": fields,
            "writeConcern": majority(),
            "maxTimeMS": steps::millis(limit).max(1),
        };
        let mut answer = self.run(command).await?;
        match answer.remove("value") {
            Some(mongodb::bson::Bson::Document(document)) => Ok(Some(document)),
            _ => Ok(None),
        }
    }

    /// Updates, each of one document; how many of them found theirs.
    pub(super) async fn update(
        &self,
        statements: RawArrayBuf,
        limit: Duration,
    ) -> Result<usize, Fault> {
        let command = rawdoc! {
            "update": self.collection.as_str(),
            "updates": statements,
            "ordered": false,
            "writeConcern": majority(),
            "maxTimeMS": steps::millis(limit).max(1),
        };
        let answer = self.run(command).await?;
        Ok(usize::try_from(answer.get_i32("n").unwrap_or(0)).unwrap_or(0))
    }

    /// A command to the primary. What no majority has is no answer: it may still be undone, and
    /// the driver does not look for that in commands that it does not know.
    pub(super) async fn run(&self, command: RawDocumentBuf) -> Result<Document, Fault> {
        acknowledged(self.database.run_raw_command(command).await?)
    }

    /// The same within a session, which a cursor belongs to.
    pub(super) async fn run_in(
        &self,
        session: &mut ClientSession,
        command: RawDocumentBuf,
    ) -> Result<Document, Fault> {
        acknowledged(self.database.run_raw_command(command).session(session).await?)
    }

    pub(super) fn explain(&self, fault: &Fault) -> Error {
        self.server.explain(fault)
    }
}

/// Whatever the URL says: a lock that a minority knows is none.
fn majority() -> RawDocumentBuf {
    rawdoc! { "w": "majority", "j": true }
}

fn acknowledged(answer: Document) -> Result<Document, Fault> {
    let text = |error: &Document| error.get_str("errmsg").unwrap_or("no reason given").to_owned();
    match answer.get_document("writeConcernError") {
        Ok(error) => Err(Fault::Unacknowledged(text(error))),
        Err(_) => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::doc;

    #[test]
    fn g1_an_answer_without_a_majority_is_none() {
        let answer = doc! { "ok": 1.0, "value": { "t": 1_i64 } };
        assert!(acknowledged(answer.clone()).is_ok());
        let mut answer = answer;
        answer.insert("writeConcernError", doc! { "code": 64, "errmsg": "waiting timed out" });
        assert!(
            matches!(acknowledged(answer), Err(Fault::Unacknowledged(text)) if text == "waiting timed out")
        );
    }
}
