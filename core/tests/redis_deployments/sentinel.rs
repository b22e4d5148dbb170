//! Sentinel: failovers with holders and contenders parked.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use fencelock::{Client, ClientOptions, Lease};
use redis::Value;

use crate::redis_sentinel::{PASSWORD, RedisService, SERVICE, ask, connection};
use crate::redis_server::RedisServer;
use crate::replication::wait_for_replicas;
use crate::site::{lock, ms, queue_up, soon, until};

/// Longer than a failover takes, on a busy machine too.
const LONG: Duration = Duration::from_secs(30);

/// All that was written so far is at every replica.
fn replicated(service: &RedisService) {
    let replicas = service.servers.len() - 1;
    wait_for_replicas(&mut connection(service.primary()).unwrap(), "in step", replicas);
}

async fn failed_over(service: &RedisService, old: u16) {
    until("a new primary", || async { service.primary() != old }).await;
}

/// The lease, which must not be lost, is extended by a server that answers.
async fn goes_on(lease: &Lease) {
    until("a renewal by the new primary", || async {
        assert!(lease.is_held(), "lost");
        lease.renew().await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_g4_holders_and_contenders_survive_the_death_of_the_primary() {
    let mut service = RedisService::start(2);
    let client = Client::connect(&service.url()).await.unwrap();
    let old = service.primary();
    let kept = lock(&client, "kept", LONG).acquire().await.unwrap();
    let holder = lock(&client, "wanted", LONG).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, "wanted", LONG)).await;
    replicated(&service);
    // Written when no replica listens: lost with its server.
    for replica in &service.servers[1..] {
        let _: Value = ask(replica.port(), &["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    }
    let unlucky = lock(&client, "unlucky", LONG).acquire().await.unwrap();
    service.servers[0].kill();
    failed_over(&service, old).await;
    goes_on(&kept).await;
    goes_on(&holder).await;
    // It learns the truth from the new primary, long before its deadline.
    until("lost", || async { unlucky.renew().await.is_err() && !unlucky.is_held() }).await;
    assert!(unlucky.is_lost());
    let next = soon("the name is free", lock(&client, "unlucky", LONG).acquire()).await.unwrap();
    assert!(next.token() > unlucky.token());
    // The contender is still first in line, at a server that it had never talked to.
    holder.release().await.unwrap();
    let lease = soon("the hand-off by the new primary", waiting).await.unwrap();
    assert!(lease.token() > holder.token());
    for lease in [kept, next, lease] {
        lease.release().await.unwrap();
    }
    // Who comes in new finds it too.
    let late = Client::connect(&service.url()).await.unwrap();
    assert!(late.list().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_g4_a_primary_that_is_demoted_alive_is_left() {
    let service = RedisService::start(1);
    let client = Client::connect(&service.url()).await.unwrap();
    let old = service.primary();
    let holder = lock(&client, "a", LONG).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, "a", LONG)).await;
    replicated(&service);
    let _: Value = service.sentinel(&["SENTINEL", "FAILOVER", SERVICE]);
    failed_over(&service, old).await;
    // For a while both take writes, and who is at the old one stays there.
    until("the demotion", || async {
        // Our own connection is cut in it, too.
        let role: Result<Vec<Value>, _> = ask(old, &["ROLE"]);
        role.is_ok_and(|role| role[0] == Value::BulkString(b"slave".to_vec()))
    })
    .await;
    goes_on(&holder).await;
    holder.release().await.unwrap();
    let lease = soon("the hand-off", waiting).await.unwrap();
    let owner: String = ask(service.primary(), &["GET", "fencelock:a"]).unwrap();
    assert!(owner.contains(&lease.owner()), "{owner}");
    lease.release().await.unwrap();
}

/// Nobody cuts the client's connection: the answer READONLY has to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_an_answer_of_a_replica_makes_the_client_ask_the_sentinels_again() {
    let (old, new) = (RedisServer::start(), RedisServer::start());
    let named = Arc::new(AtomicU16::new(old.port()));
    let sentinel = play_sentinel(named.clone());
    let url = format!("redis-sentinel://127.0.0.1:{sentinel}/{SERVICE}");
    let client = Client::connect(&url).await.unwrap();
    client.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    let following = ["REPLICAOF", "127.0.0.1", &new.port().to_string()];
    let _: Value = ask(old.port(), &following).unwrap();
    let waiting = tokio::spawn({
        let lock = client.lock("a").unwrap();
        async move { lock.acquire().await }
    });
    // Named is still the one that follows, which its role gives away.
    tokio::time::sleep(ms(200)).await;
    assert!(!waiting.is_finished());
    named.store(new.port(), Ordering::Relaxed);
    let lease = soon("a lock of the real primary", waiting).await.unwrap().unwrap();
    let owner: String = ask(new.port(), &["GET", "fencelock:a"]).unwrap();
    assert!(owner.contains(&lease.owner()), "{owner}");
}

/// Answers as a sentinel that names this port.
fn play_sentinel(named: Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (named, socket) = (named.clone(), socket.unwrap());
            std::thread::spawn(move || {
                let mut writer = socket.try_clone().unwrap();
                // Each word of a command is a line of its own.
                for line in BufReader::new(socket).lines().map_while(Result::ok) {
                    let reply = match line.as_str() {
                        SERVICE => {
                            let port = named.load(Ordering::Relaxed).to_string();
                            format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len())
                        }
                        "SETINFO" => "+OK\r\n".to_owned(),
                        _ => continue,
                    };
                    let _ = writer.write_all(reply.as_bytes());
                }
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_do_not_help_are_named() {
    let service = RedisService::start_locked();
    let url = service.url();
    let quick = || ClientOptions::new().connect_timeout(ms(3_000));
    let with = |password: &str| quick().sentinel_password(password);
    let unknown = url.replace(SERVICE, "nobody");
    for (url, options, code, says) in [
        (url.as_str(), quick(), "AUTH_FAILED", "fl.sentinel_password"),
        (url.as_str(), with("wrong"), "AUTH_FAILED", "fl.sentinel_password"),
        (unknown.as_str(), with(PASSWORD), "UNAVAILABLE", "nobody"),
        ("redis-sentinel://127.0.0.1:1/x", quick(), "UNAVAILABLE", "no sentinel"),
    ] {
        let error = Client::connect_with(url, options).await.unwrap_err();
        assert_eq!(error.kind().code(), code, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let client = Client::connect_with(&url, with(PASSWORD)).await.unwrap();
    client.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

/// The two users that the page for users has: one at the servers, one at the sentinels.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_the_smallest_users_behind_sentinel() {
    let page = include_str!("../../src/backend/redis/RIGHTS.md");
    let command = |user: &str| {
        let start = format!("ACL SETUSER {user} on >");
        let line = page.lines().find(|line| line.starts_with(&start)).unwrap();
        line.split(' ').collect::<Vec<_>>()
    };
    let service = RedisService::start_locked();
    let everywhere = |command: &[&str]| {
        let url = service.url();
        let (_, hosts) = url.split_once("//").unwrap();
        for host in hosts.split('/').next().unwrap().split(',') {
            let (_, port) = host.split_once(':').unwrap();
            ask::<()>(port.parse().unwrap(), command).unwrap();
        }
    };
    ask::<()>(service.primary(), &command("fencelock")).unwrap();
    everywhere(&command("looker"));
    let url = service.url().replace("redis-sentinel://", "redis-sentinel://fencelock:secret@");
    let options = || ClientOptions::new().sentinel_user("looker").sentinel_password("secret");
    let client = Client::connect_with(&url, options()).await.unwrap();
    let lock = lock(&client, "a", LONG);
    let lease = lock.acquire().await.unwrap();
    let waiting = queue_up(&client, &lock).await;
    lease.release().await.unwrap();
    soon("the hand-off", waiting).await.unwrap().release().await.unwrap();

    everywhere(&["ACL", "SETUSER", "looker", "-@all"]);
    let error = Client::connect_with(&url, options()).await.unwrap_err();
    assert_eq!(error.kind().code(), "AUTH_FAILED", "{error}");
}
