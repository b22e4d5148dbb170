//! Faults of a Redis server and of the way to it, and what the contract says of each.

use std::time::{Duration, Instant};

use fencelock::{Client, ClientOptions, LockOptions, LockState};
use redis::Value;

use crate::redis_server::RedisServer;
use crate::site::{lock, ms, queue_up, soon, until};

/// What a user at redis-cli would get.
pub(crate) fn cli<T: redis::FromRedisValue>(server: &RedisServer, command: &str) -> T {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut words = command.split(' ');
    let mut cmd = redis::cmd(words.next().unwrap());
    for word in words {
        cmd.arg(word);
    }
    cmd.query(&mut connection).unwrap_or_else(|e| panic!("{command}: {e}"))
}

fn keys(server: &RedisServer) -> Vec<String> {
    cli(server, "KEYS *")
}

fn script_calls(server: &RedisServer) -> u64 {
    let stats: String = cli(server, "INFO commandstats");
    let calls = |command: &str| -> u64 {
        stats
            .lines()
            .find_map(|line| {
                line.strip_prefix(&format!("cmdstat_{command}:calls="))?.split(',').next()
            })
            .map_or(0, |n| n.parse().unwrap())
    };
    calls("evalsha") + calls("eval")
}

async fn client(server: &RedisServer) -> Client {
    Client::connect(&server.url()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_a_frozen_server_cannot_keep_a_lease_held() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let ttl = ms(600);
    for _ in 0..3 {
        let lease = lock(&client, "a", ttl).acquire().await.unwrap();
        tokio::time::sleep(ms(300)).await;
        let frozen = Instant::now();
        server.freeze();
        soon("lost", lease.lost()).await;
        let lost = frozen.elapsed();
        // The last renewal that was answered was sent before the server froze.
        assert!(lost < ttl, "lost after {lost:?}");
        assert!(!lease.is_held());
        assert_eq!(lease.release().await.unwrap_err().kind().code(), "LOST");
        server.thaw();
        soon("the lock after the thaw", lock(&client, "a", ttl).acquire())
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_broken_connections_do_not_end_the_renewals() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let ttl = ms(1_000);
    let lease = lock(&client, "a", ttl).acquire().await.unwrap();
    let start = Instant::now();
    while start.elapsed() < ttl * 3 {
        let _: Value = cli(&server, "CLIENT KILL TYPE normal SKIPME yes");
        tokio::time::sleep(ms(200)).await;
        assert!(lease.is_held());
    }
    lease.release().await.unwrap();
    assert_eq!(client.inspect("a").await.unwrap().state, LockState::Free);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_release_that_got_no_answer_goes_on_and_nothing_is_renewed() {
    let server = RedisServer::start();
    let options = ClientOptions::new().request_timeout(ms(300));
    let client = Client::connect_with(&server.url(), options).await.unwrap();
    let lease = lock(&client, "a", ms(3_000)).acquire().await.unwrap();
    server.freeze();
    let start = Instant::now();
    let error = lease.release().await.unwrap_err();
    assert_eq!(error.kind().code(), "UNAVAILABLE");
    assert!(start.elapsed() < ms(2_000), "{:?}", start.elapsed());
    assert!(!lease.is_held());
    server.thaw();
    let next = soon("the lock after the thaw", lock(&client, "a", ms(3_000)).acquire()).await;
    assert!(start.elapsed() < ms(3_500), "{:?}", start.elapsed());
    // Asked again, the first release is told the truth: it was carried out.
    lease.release().await.unwrap();
    next.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_a_dropped_push_connection_delays_by_one_look_at_most() {
    let server = RedisServer::start();
    let client = client(&server).await;
    for _ in 0..3 {
        let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
        let waiting = queue_up(&client, &lock(&client, "a", ms(30_000))).await;
        let _: Value = cli(&server, "CLIENT KILL TYPE pubsub");
        let start = Instant::now();
        holder.release().await.unwrap();
        soon("the hand-off", waiting).await.unwrap().release().await.unwrap();
        assert!(start.elapsed() < ms(4_000), "{:?}", start.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g3_g4_a_restart_without_data_loses_the_lease_but_no_contender_and_no_token() {
    let mut server = RedisServer::start();
    let client = client(&server).await;
    let holder = lock(&client, "a", ms(900)).acquire().await.unwrap();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let lock = lock(&client, "a", ms(900));
            tokio::spawn(async move {
                let lease = lock.acquire().await.unwrap();
                let token = lease.token();
                lease.release().await.unwrap();
                token
            })
        })
        .collect();
    until("three contenders", || async { client.inspect("a").await.unwrap().queue.len() == 3 })
        .await;
    server.restart();
    soon("lost", holder.lost()).await;
    let mut tokens = vec![holder.token()];
    for task in waiting {
        tokens.push(soon("a turn after the restart", task).await.unwrap());
    }
    tokens.sort();
    tokens.dedup();
    assert_eq!((tokens.len(), tokens[0]), (4, holder.token()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g3_tokens_rise_although_the_server_was_emptied() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let mut last = None;
    for _ in 0..5 {
        let lease = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
        assert!(Some(lease.token()) > last);
        last = Some(lease.token());
        let _: Value = cli(&server, "FLUSHALL");
        assert_eq!(lease.release().await.unwrap_err().kind().code(), "LOST");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_contenders_start_again_when_the_server_was_emptied() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let holder = lock(&client, "a", ms(600)).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, "a", ms(600))).await;
    let _: Value = cli(&server, "FLUSHALL");
    soon("lost", holder.lost()).await;
    soon("the lock", waiting).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_waits_end_in_time_whatever_the_server_does() {
    let server = RedisServer::start();
    let options = ClientOptions::new().request_timeout(ms(300)).connect_timeout(ms(1_000));
    let client = Client::connect_with(&server.url(), options).await.unwrap();
    let lock = lock(&client, "a", ms(30_000));
    server.freeze();
    // Limit, what is expected, and by when (with room for a busy machine).
    let (timed_out, unavailable) = ("TIMEOUT", "UNAVAILABLE");
    for (timeout, code, by) in [
        (Some(ms(50)), timed_out, ms(100)),
        (Some(ms(500)), timed_out, ms(550)),
        (Some(ms(0)), unavailable, ms(350)),
        (None, unavailable, ms(1_050)),
    ] {
        let start = Instant::now();
        let error = lock.acquire_within(timeout).await.unwrap_err();
        assert_eq!(error.kind().code(), code, "{timeout:?}: {error}");
        assert!(start.elapsed() < by + ms(400), "{timeout:?}: {:?}", start.elapsed());
    }
    server.thaw();
    // The requests that were on their way find their owner ids ended.
    soon("the free lock", lock.acquire()).await.unwrap().release().await.unwrap();
    let left =
        || async { keys(&server).iter().all(|k| k.contains("~fl1:t:") || k.contains("~fl1:x:")) };
    until("nothing but token records and tombstones", left).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_a_queued_contender_outlives_an_outage() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, "a", ms(600))).await;
    server.freeze();
    tokio::time::sleep(ms(1_500)).await;
    assert!(!waiting.is_finished());
    server.thaw();
    holder.release().await.unwrap();
    soon("the lock after the outage", waiting).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_a_stalled_holder_does_not_renew_what_others_had_meanwhile() {
    let server = RedisServer::start();
    let other = client(&server).await;
    let url = server.url();
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let stalled = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let client = Client::connect(&url).await.unwrap();
            let lease = lock(&client, "a", ms(400)).acquire().await.unwrap();
            ready.send(()).unwrap();
            gone.recv().unwrap();
            (lease.is_held(), lease.renew().await, lease.release().await)
        })
    });
    is_ready.recv().unwrap();
    let between = soon("the lock", lock(&other, "a", ms(400)).acquire()).await.unwrap();
    between.release().await.unwrap();
    go.send(()).unwrap();
    let (held, renewed, released) =
        tokio::task::spawn_blocking(|| stalled.join().unwrap()).await.unwrap();
    assert!(!held);
    assert_eq!(renewed.unwrap_err().kind().code(), "LOST");
    assert_eq!(released.unwrap_err().kind().code(), "LOST");
    assert_eq!(other.inspect("a").await.unwrap().state, LockState::Free);
}

/// Somebody publishes an old grant again: it names a token below the floor of the last answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_stale_push_gives_nothing() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, "a", ms(30_000))).await;
    let queue = keys(&server).into_iter().find(|k| k.contains("~fl1:q:")).unwrap();
    let value: Vec<String> = cli(&server, &format!("ZRANGE {queue} 0 0"));
    let channel = format!("fencelock:~fl1:w:{}", value[0].split(':').nth(2).unwrap());
    until("the subscription", || async {
        let count: (String, u64) = cli(&server, &format!("PUBSUB NUMSUB {channel}"));
        count.1 == 1
    })
    .await;
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    for message in [
        format!("{} {}", value[0], holder.token()),
        format!("{} 1", value[0]),
        format!("{} 0", value[0]),
        format!("{} x", value[0]),
        "nonsense".to_owned(),
        String::new(),
    ] {
        let receivers: u64 =
            redis::cmd("PUBLISH").arg(&channel).arg(message).query(&mut connection).unwrap();
        assert_eq!(receivers, 1);
    }
    tokio::time::sleep(ms(300)).await;
    assert!(holder.is_held() && !waiting.is_finished(), "two hold at once");
    holder.release().await.unwrap();
    soon("the real grant", waiting).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_foreign_lock_excludes_ours_and_is_left_untouched() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let lock = lock(&client, "a", ms(30_000));
    for expiry in ["", " PX 60000"] {
        let _: Value = cli(&server, &format!("SET fencelock:a theirs NX{expiry}"));
        assert!(lock.try_acquire().await.unwrap().is_none());
        assert_eq!(lock.acquire_timeout(ms(50)).await.unwrap_err().kind().code(), "TIMEOUT");
        let info = client.inspect("a").await.unwrap();
        assert_eq!((info.state, info.owner.as_deref()), (LockState::Foreign, Some("theirs")));
        assert_eq!(info.ttl_left.is_none(), expiry.is_empty());
        let waiting = queue_up(&client, &lock).await;
        let value: String = cli(&server, "GET fencelock:a");
        assert_eq!(value, "theirs");
        let start = Instant::now();
        let _: Value = cli(&server, "DEL fencelock:a");
        let lease = soon("the lock after a foreign one", waiting).await.unwrap();
        assert!(start.elapsed() < ms(2_000), "{:?}", start.elapsed());
        let taken: Value = cli(&server, "SET fencelock:a theirs NX PX 1000");
        assert_eq!(taken, Value::Nil, "a foreign client got in beside us");
        lease.release().await.unwrap();
    }
    // A lease whose key was deleted and taken by a foreign client does not touch theirs.
    let lease = lock.acquire().await.unwrap();
    let _: Value = cli(&server, "SET fencelock:a theirs PX 60000");
    assert_eq!(lease.renew().await.unwrap_err().kind().code(), "LOST");
    assert_eq!(lease.release().await.unwrap_err().kind().code(), "LOST");
    let value: String = cli(&server, "GET fencelock:a");
    assert_eq!(value, "theirs");
    assert!(client.force_release("a").await.unwrap());
    assert!(lock.try_acquire().await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_and_missing_scripts_are_met_at_acquire() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let _: Value = cli(&server, "HSET fencelock:a field value");
    for result in [
        lock(&client, "a", ms(30_000)).acquire().await.map(drop),
        lock(&client, "a", ms(30_000)).try_acquire().await.map(drop),
        client.inspect("a").await.map(drop),
    ] {
        assert_eq!(result.unwrap_err().kind().code(), "CONFLICT");
    }
    let value: String = cli(&server, "HGET fencelock:a field");
    assert_eq!(value, "value");
    let _: Value = cli(&server, "SCRIPT FLUSH");
    let lease = lock(&client, "b", ms(600)).acquire().await.unwrap();
    let _: Value = cli(&server, "SCRIPT FLUSH");
    tokio::time::sleep(ms(1_200)).await;
    assert!(lease.is_held());
    let _: Value = cli(&server, "SCRIPT FLUSH");
    lease.release().await.unwrap();
    let _: Value = cli(&server, "SET fencelock:c fl2:something");
    let error = lock(&client, "c", ms(30_000)).acquire().await.unwrap_err();
    assert_eq!(error.kind().code(), "UNSUPPORTED", "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_cycle_is_two_commands_and_a_contended_one_two_as_well() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let free = lock(&client, "a", ms(30_000));
    free.acquire().await.unwrap().release().await.unwrap();
    let before = script_calls(&server);
    for _ in 0..100 {
        free.acquire().await.unwrap().release().await.unwrap();
    }
    assert_eq!(script_calls(&server) - before, 200);
    let before = script_calls(&server);
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let lock = free.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    lock.acquire().await.unwrap().release().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        soon("a worker's end", task).await.unwrap();
    }
    // The first wait of a client subscribes, after which all its contenders look once.
    let calls = script_calls(&server) - before;
    assert!(calls <= 2 * 320 + 40, "{calls} calls for 320 contended cycles");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_contenders_send_at_most_half_a_command_a_second() {
    const CONTENDERS: u64 = 50;
    let server = RedisServer::start();
    let client = client(&server).await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let tasks: Vec<_> = (0..CONTENDERS)
        .map(|_| {
            let lock = lock(&client, "a", ms(30_000));
            tokio::spawn(async move { drop(lock.acquire().await) })
        })
        .collect();
    until("all of them in the queue", || async {
        client.inspect("a").await.unwrap().queue.len() as u64 == CONTENDERS
    })
    .await;
    // The looks after the subscription are over by then.
    tokio::time::sleep(ms(500)).await;
    let before = script_calls(&server);
    let start = Instant::now();
    tokio::time::sleep(ms(6_000)).await;
    let rate = (script_calls(&server) - before) as f64 / start.elapsed().as_secs_f64();
    assert!(rate / CONTENDERS as f64 <= 0.52, "{rate} commands a second");
    drop(holder);
    for task in tasks {
        task.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_nothing_is_left_in_redis_and_nothing_is_sent_after_cancelled_acquires() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let contended = lock(&client, "a", ms(30_000));
    let holder = contended.acquire().await.unwrap();
    for round in 0..300 {
        let wait = Duration::from_micros(round * 7 % 1_500);
        let _ = tokio::time::timeout(wait, contended.acquire()).await;
    }
    holder.release().await.unwrap();
    until("nothing but token records", || async {
        keys(&server).iter().all(|key| key.contains("~fl1:t:"))
    })
    .await;
    for key in keys(&server) {
        let ttl: i64 = cli(&server, &format!("PTTL {key}"));
        assert!(ttl > 0, "{key} stays for ever");
    }
    let before = script_calls(&server);
    tokio::time::sleep(ms(2_000)).await;
    assert_eq!(script_calls(&server), before, "somebody still renews or looks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connecting_fails_fast_and_says_why() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let http = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let http_address = http.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in http.incoming() {
            use std::io::{Read, Write};
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 512]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let locked = RedisServer::start_with(&["--requirepass", "sesame"]);
    let locked_url = |user: &str| format!("redis://{user}127.0.0.1:{}/", locked.port());
    for (url, code, says) in [
        ("redis://127.0.0.1:1/".to_owned(), "UNAVAILABLE", "127.0.0.1:1"),
        (format!("redis://{silent}/?fl.connect_timeout_ms=300"), "UNAVAILABLE", "300 ms"),
        (format!("redis://{http_address}/"), "UNAVAILABLE", "Redis"),
        (locked_url(""), "AUTH_FAILED", ""),
        (locked_url(":hunter2@"), "AUTH_FAILED", ""),
        (locked_url("nobody:hunter2@"), "AUTH_FAILED", ""),
    ] {
        let start = Instant::now();
        let error = Client::connect(&url).await.unwrap_err();
        assert_eq!(error.kind().code(), code, "{url}: {error}");
        assert!(error.to_string().contains(says), "{url}: {error}");
        assert!(start.elapsed() < ms(2_000), "{url}: {:?}", start.elapsed());
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
    let client = Client::connect(&locked_url(":sesame@")).await.unwrap();
    client.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unix_socket_and_a_prefix_of_ones_own() {
    let server = RedisServer::start();
    let client = Client::connect(&format!("{}?fl.prefix=", server.unix_url())).await.unwrap();
    let lease = client.lock("plain").unwrap().acquire().await.unwrap();
    let value: String = cli(&server, "GET plain");
    assert!(value.starts_with("fl1:"), "{value}");
    assert_eq!(client.list().await.unwrap().len(), 1);
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_a_fixed_lease_that_was_handed_off_gets_its_full_ttl() {
    let server = RedisServer::start();
    let client = client(&server).await;
    let holder = lock(&client, "a", ms(30_000)).acquire().await.unwrap();
    let fixed = client.lock_with("a", LockOptions::new().ttl(ms(8_000)).renew(false)).unwrap();
    let waiting = queue_up(&client, &fixed).await;
    holder.release().await.unwrap();
    let lease = soon("the hand-off", waiting).await.unwrap();
    // A hand-off grants five seconds; the watchdog makes it eight.
    until("the full ttl", || async { lease.remaining() > ms(7_000) }).await;
    lease.release().await.unwrap();
}
