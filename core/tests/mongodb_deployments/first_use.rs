//! First users, and what stands where locks should be.

use futures_util::future::join_all;
use mongodb::bson::{DateTime, Document, doc};

use super::*;
use crate::mongo_server::MongoServer;

/// No collection, no document, no index: all of them come with the first requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g8_fifty_first_ever_acquires_at_once_are_all_served() {
    let server = tokio::task::block_in_place(MongoServer::start);
    let url = server.url();
    // Each with connections of its own.
    let clients = join_all((0..10).map(|_| Client::connect(&url))).await;
    let clients: Vec<_> = clients.into_iter().map(Result::unwrap).collect();
    for round in 0..3 {
        let turns = (0..50).map(|n| {
            let lock = lock(&clients[n % 10], &format!("first {round}"), ms(30_000));
            async move {
                let lease = lock.acquire().await.unwrap();
                let token = lease.token();
                lease.release().await.unwrap();
                token
            }
        });
        let mut tokens = soon("fifty turns", join_all(turns)).await;
        tokens.sort();
        assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g4_leases_end_by_the_servers_time_also_when_nothing_is_ever_deleted() {
    let arguments = ["--setParameter", "ttlMonitorEnabled=false"];
    let server = tokio::task::block_in_place(|| MongoServer::start_with(&arguments));
    let (client, other) = (
        Client::connect(&server.url()).await.unwrap(),
        Client::connect(&server.url()).await.unwrap(),
    );
    let options = LockOptions::new().ttl(ms(1_000)).renew(false);
    let lease = client.lock_with("a", options).unwrap().acquire().await.unwrap();
    let start = Instant::now();
    let next = soon("the next lease", lock(&other, "a", ms(30_000)).acquire()).await.unwrap();
    assert!(start.elapsed() < ms(2_500), "{:?}", start.elapsed());
    assert!(lease.is_lost() && next.token() > lease.token());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g1_documents_of_others_are_reported_at_acquire_and_left_alone() {
    let server = tokio::task::block_in_place(MongoServer::start);
    let client = Client::connect(&server.url()).await.unwrap();
    let raw = mongodb::Client::with_uri_str(server.url()).await.unwrap();
    let collection = raw.database("fencelock").collection::<Document>("locks");
    for (n, mut foreign) in [
        doc! { "owner": "host-1:4711", "expireAt": DateTime::now() },
        doc! { "locked": false, "v": "1", "purge": DateTime::from_millis(0) },
        doc! { "seq": 42_i64, "h": Document::new(), "q": [1, 2] },
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("foreign {n}");
        foreign.insert("_id", &name);
        collection.insert_one(&foreign).await.unwrap();
        let lock = lock(&client, &name, ms(30_000));
        for error in [
            lock.acquire().await.unwrap_err(),
            lock.try_acquire().await.unwrap_err(),
            client.force_release(&name).await.unwrap_err(),
        ] {
            assert_eq!(error.kind().code(), "CONFLICT", "{error}");
            assert!(error.to_string().contains(&name), "{error}");
        }
        assert_eq!(client.inspect(&name).await.unwrap().state.as_str(), "foreign");
        let after = collection.find_one(doc! { "_id": &name }).await.unwrap().unwrap();
        let fields = |document: &Document| {
            let mut fields: Vec<_> = document.clone().into_iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            fields
        };
        assert_eq!(fields(&after), fields(&foreign));
    }
}
