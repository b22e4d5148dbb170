//! The connection for requests: opened once, replaced when it broke or went silent.

use tokio::net::TcpListener;
use tokio::time::timeout;

use super::proxy::Proxy;
use super::*;

/// As the core limits requests.
async fn attempt(redis: &Redis, limit: Duration) -> Option<crate::Result<Look>> {
    timeout(limit, redis.contend(&place("n", TTL), Mode::Try)).await.ok()
}

#[tokio::test]
async fn g4_a_connection_that_was_closed_while_idle_costs_no_request() {
    let mut scene = Scene::new().await;
    for _ in 0..5 {
        let () = scene.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        // Time to notice.
        tokio::time::sleep(ms(50)).await;
        scene.attempt(&place("n", TTL)).await;
    }
}

#[tokio::test]
async fn g4_requests_go_on_after_a_restart_of_the_server() {
    let mut scene = Scene::new().await;
    scene.server.kill();
    let error = scene.redis.contend(&place("n", TTL), Mode::Intro).await.unwrap_err();
    assert!(error.is_passing());
    scene.server.restart();
    until("a grant", || async {
        matches!(attempt(&scene.redis, ms(2_000)).await, Some(Ok(Look::Granted(..))))
    })
    .await;
}

#[tokio::test]
async fn g4_a_black_hole_costs_one_request_and_not_minutes() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port()).await;
    let (redis, _) = connect(&proxy.url()).await;
    assert!(attempt(&redis, ms(2_000)).await.is_some());
    proxy.black_hole();
    assert!(attempt(&redis, ms(400)).await.is_none());
    let start = Instant::now();
    assert!(attempt(&redis, ms(10_000)).await.is_some_and(|look| look.is_ok()));
    assert!(start.elapsed() < ms(2_000), "{:?}", start.elapsed());
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn g4_short_requests_find_a_black_hole_together() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port()).await;
    let (redis, _) = connect(&proxy.url()).await;
    proxy.black_hole();
    let start = Instant::now();
    let mut tries = 0;
    while attempt(&redis, ms(34)).await.is_none() {
        tries += 1;
        assert!(start.elapsed() < ms(5_000), "still no connection after {tries} tries");
    }
    assert!(tries >= 5, "a single slow answer is no reason to connect again ({tries})");
}

#[tokio::test]
async fn g4_requests_given_up_on_a_connection_that_works_do_not_replace_it() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port()).await;
    let (redis, _) = connect(&proxy.url()).await;
    for _ in 0..20 {
        // Sent, and given up before the answer can be there.
        let place = place("n", TTL);
        let mut request = redis.contend(&place, Mode::Try);
        assert!(futures_util::poll!(request.as_mut()).is_pending());
        drop(request);
        tokio::time::sleep(ms(20)).await;
    }
    assert!(attempt(&redis, ms(2_000)).await.is_some());
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn g4_a_server_that_stops_for_a_while_answers_when_it_goes_on() {
    let scene = Scene::new().await;
    scene.server.freeze();
    assert!(attempt(&scene.redis, ms(300)).await.is_none());
    let waiting = attempt(&scene.redis, ms(15_000));
    let thaw = async {
        tokio::time::sleep(ms(300)).await;
        scene.server.thaw();
    };
    let (look, ()) = tokio::join!(waiting, thaw);
    assert!(look.is_some_and(|look| look.is_ok()));
}

#[tokio::test]
async fn g4_waiting_requests_share_one_attempt_to_connect_and_its_error() {
    // Accepts and closes at once, so that each attempt fails and can be counted.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let attempts = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = attempts.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let redis = Redis::new(&target(&url), &settings(PREFIX), Arc::default()).unwrap();
    let attempts = || attempts.load(std::sync::atomic::Ordering::SeqCst);
    let all = (0..50).map(|_| attempt(&redis, ms(5_000)));
    for result in futures_util::future::join_all(all).await {
        assert!(result.unwrap().unwrap_err().is_passing());
    }
    assert_eq!(attempts(), 1);
    // One after the other: 20 ms, 40 ms, 80 ms … between them.
    let start = Instant::now();
    for _ in 0..4 {
        assert!(attempt(&redis, ms(5_000)).await.unwrap().is_err());
    }
    assert_eq!(attempts(), 5);
    assert!(start.elapsed() >= ms(20 + 40 + 80 + 160 - 10), "{:?}", start.elapsed());
}

#[tokio::test]
async fn g4_giving_up_does_not_stop_an_attempt_to_connect() {
    let server = RedisServer::start();
    server.freeze();
    let redis = Redis::new(&target(&server.url()), &settings(PREFIX), Arc::default()).unwrap();
    for _ in 0..3 {
        assert!(attempt(&redis, ms(30)).await.is_none());
    }
    server.thaw();
    assert!(attempt(&redis, ms(5_000)).await.is_some_and(|look| look.is_ok()));
    let clients: String = redis::cmd("CLIENT").arg("LIST").query(&mut raw(server.port())).unwrap();
    assert_eq!(clients.lines().count(), 2, "one connection of ours:\n{clients}");
}

#[tokio::test]
async fn g8_a_closed_client_sends_nothing_more() {
    let mut scene = Scene::new().await;
    scene.hold(TTL).await;
    scene.intro(&place("n", TTL)).await;
    scene.redis.close().await.unwrap();
    let error = scene.redis.contend(&place("n", TTL), Mode::Try).await.unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Closed);
    until("the end of both connections", || {
        let clients: String = scene.command(&["CLIENT", "LIST"]);
        std::future::ready(clients.lines().count() == 1)
    })
    .await;
}

#[test]
fn g8_a_backend_outlives_the_runtime_it_connected_in() {
    let server = RedisServer::start();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (redis, _) = runtime().block_on(connect(&server.url()));
    for _ in 0..3 {
        let look = runtime().block_on(attempt(&redis, ms(5_000)));
        look.unwrap().unwrap();
    }
}

#[tokio::test]
async fn idle_clients_send_nothing() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    let waiting = super::place("n", TTL);
    scene.intro(&waiting).await;
    scene.redis.release(&place, Some(token), false).await.unwrap();
    scene.redis.release(&waiting, None, false).await.unwrap();
    // The subscription stands from now on.
    let commands = |scene: &mut Scene| {
        let stats: String = scene.command(&["INFO", "stats"]);
        let line = stats.lines().find_map(|l| l.strip_prefix("total_commands_processed:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    until("the subscription", || {
        let clients: String = scene.command(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        std::future::ready(!clients.is_empty())
    })
    .await;
    let before = commands(&mut scene);
    tokio::time::sleep(ms(2_500)).await;
    assert_eq!(commands(&mut scene), before + 1, "only our own INFO");
}
