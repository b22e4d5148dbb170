//! A request that arrives after its contender has ended, seen from the client.

use redis::FromRedisValue;

use super::proxy::Proxy;
use super::*;
use crate::{Client, LockOptions};

/// How many scripts the server has run or refused to run.
fn script_calls(connection: &mut Connection) -> u64 {
    let stats: String = redis::cmd("INFO").arg("commandstats").query(connection).unwrap();
    let calls = |line: &str| line.split(['=', ',']).nth(1).unwrap().parse::<u64>().unwrap();
    stats.lines().filter(|line| line.starts_with("cmdstat_eval")).map(calls).sum()
}

fn ask<T: FromRedisValue>(connection: &mut Connection, command: &[&str]) -> T {
    redis::cmd(command[0]).arg(&command[1..]).query(connection).unwrap()
}

/// Waits for `lock` on a way that swallows the first request, then lets that request arrive when
/// the wait and what followed it are over. It must find its owner id ended.
async fn check_late_intro(wait: Duration, expected: Option<crate::ErrorKind>) {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port()).await;
    let mut raw = raw(server.port());
    let url = format!("{}?fl.request_timeout_ms=300", proxy.url());
    let client = Client::connect(&url).await.unwrap();
    let lock = client.lock_with("a", LockOptions::new().ttl(TTL)).unwrap();
    // So that the server knows the scripts, and the late request is not refused for want of one.
    lock.acquire().await.unwrap().release().await.unwrap();

    proxy.black_hole();
    match lock.acquire_timeout(wait).await {
        Ok(lease) => {
            assert_eq!(expected, None);
            lease.release().await.unwrap();
        }
        Err(error) => assert_eq!(Some(error.kind()), expected),
    }
    until("the tombstone", || {
        let keys: Vec<String> = ask(&mut raw, &["KEYS", "*~fl1:x:*"]);
        async move { !keys.is_empty() }
    })
    .await;
    assert_eq!(ask::<Option<String>>(&mut raw, &["GET", "fencelock:a"]), None);

    let before = script_calls(&mut raw);
    proxy.deliver_late();
    until("the late request", || {
        let calls = script_calls(&mut raw);
        async move { calls > before }
    })
    .await;
    let holder: Option<String> = ask(&mut raw, &["GET", "fencelock:a"]);
    assert_eq!(holder, None, "a request of an ended owner id took the lock");
}

#[tokio::test]
async fn g7_a_request_that_arrives_after_its_wait_timed_out_finds_it_ended() {
    check_late_intro(ms(100), Some(crate::ErrorKind::Timeout)).await;
}

#[tokio::test]
async fn g7_a_request_that_arrives_after_its_second_try_was_released_finds_it_ended() {
    check_late_intro(ms(10_000), None).await;
}
