//! TLS: what is trusted works, and everything else says what is wrong, in time.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fencelock::{Client, ClientOptions};

use crate::authority::Authority;
use crate::redis_server::{RedisServer, SECOND_PORT};
use crate::site::{ms, queue_up, soon};

/// A server with TLS on a second port, which it returns.
fn start(ca: &Path, (cert, key): &(PathBuf, PathBuf), clients: &str) -> (RedisServer, u16) {
    let text = |path: &Path| path.display().to_string();
    let server = RedisServer::start_with(&[
        "--tls-port",
        SECOND_PORT,
        "--tls-cert-file",
        &text(cert),
        "--tls-key-file",
        &text(key),
        "--tls-ca-cert-file",
        &text(ca),
        "--tls-auth-clients",
        clients,
    ]);
    let port = server.second_port();
    (server, port)
}

async fn refused(url: &str, options: ClientOptions) -> (&'static str, String) {
    let begin = Instant::now();
    let error = Client::connect_with(url, options.connect_timeout(ms(2_000))).await.unwrap_err();
    assert!(begin.elapsed() < ms(4_000), "{url}: {:?}", begin.elapsed());
    (error.kind().code(), error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_work_over_tls_with_an_authority_and_a_client_certificate_of_ones_own() {
    let authority = Authority::new("ours");
    let (cert, key) = authority.sign("client", "client", 2100);
    let (server, port) =
        start(&authority.ca(), &authority.sign("server", "127.0.0.1", 2100), "yes");
    let url = format!(
        "rediss://127.0.0.1:{port}/?fl.tls_ca={}&fl.tls_cert={}&fl.tls_key={}",
        authority.ca().display(),
        cert.display(),
        key.display()
    );
    let client = Client::connect(&url).await.unwrap();
    let lock = client.lock("a").unwrap();
    let holder = lock.acquire().await.unwrap();
    // The wake-up comes through TLS, too.
    let waiting = queue_up(&client, &lock).await;
    holder.release().await.unwrap();
    let lease = soon("the hand-off", waiting).await.unwrap();
    lease.renew().await.unwrap();
    // A plaintext client sees the same lock.
    let plain = Client::connect(&server.url()).await.unwrap();
    assert_eq!(plain.inspect("a").await.unwrap().owner, Some(lease.owner()));
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_that_are_not_trusted_are_refused_and_the_error_says_why() {
    let (authority, stranger) = (Authority::new("ours"), Authority::new("theirs"));
    let ours = || ClientOptions::new().tls_ca(authority.ca());
    for (signed, says) in [
        (authority.sign("other-host", "db.example", 2100), "not valid for name"),
        (authority.sign("expired", "127.0.0.1", 2021), "expired"),
        (stranger.sign("unknown", "127.0.0.1", 2100), "UnknownIssuer"),
    ] {
        let (_server, port) = start(&authority.ca(), &signed, "no");
        let (code, text) = refused(&format!("rediss://127.0.0.1:{port}/"), ours()).await;
        assert_eq!(code, "AUTH_FAILED", "{text}");
        assert!(text.contains(says), "{says}: {text}");
    }
    // Ours, but only the system's authorities are asked.
    let (_server, port) = start(&authority.ca(), &authority.sign("good", "127.0.0.1", 2100), "yes");
    let url = format!("rediss://127.0.0.1:{port}/");
    let (code, text) = refused(&url, ClientOptions::new()).await;
    assert_eq!(code, "AUTH_FAILED", "{text}");
    // The server wants to know who we are.
    let (code, text) = refused(&url, ours()).await;
    assert_eq!(code, "AUTH_FAILED", "{text}");
    assert!(text.contains("tls_cert"), "{text}");
    let (cert, key) = stranger.sign("client", "client", 2100);
    let (code, text) = refused(&url, ours().tls_cert(cert).tls_key(key)).await;
    assert_eq!(code, "AUTH_FAILED", "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wrong_kind_of_port_is_named() {
    let authority = Authority::new("ours");
    let (server, port) = start(&authority.ca(), &authority.sign("server", "127.0.0.1", 2100), "no");
    let ours = || ClientOptions::new().tls_ca(authority.ca());
    let (code, text) = refused(&format!("rediss://127.0.0.1:{}/", server.port()), ours()).await;
    assert_eq!(code, "UNAVAILABLE", "{text}");
    assert!(text.contains("begins with redis"), "{text}");
    let (code, text) = refused(&format!("redis://127.0.0.1:{port}/"), ClientOptions::new()).await;
    assert_eq!(code, "UNAVAILABLE", "{text}");
    assert!(text.contains("begins with rediss"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_files_that_cannot_be_used_are_refused_before_any_connection() {
    let authority = Authority::new("ours");
    let (cert, key) = authority.sign("client", "client", 2100);
    let (_, other_key) = authority.sign("other", "other", 2100);
    let empty = authority.ca().with_file_name("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    let options = ClientOptions::new;
    let nowhere = "rediss://127.0.0.1:1/";
    for (url, options) in [
        (nowhere, options().tls_ca("/does/not/exist.pem")),
        (nowhere, options().tls_ca(&empty)),
        (nowhere, options().tls_cert(&cert)),
        (nowhere, options().tls_key(&key)),
        (nowhere, options().tls_cert(&cert).tls_key(&empty)),
        (nowhere, options().tls_cert(&key).tls_key(&key)),
        (nowhere, options().tls_cert(&cert).tls_key(&other_key)),
        ("redis://127.0.0.1:1/", options().tls_ca(authority.ca())),
        ("memory:", options().tls_ca(authority.ca())),
        ("memory:", options().replicas(1)),
        ("redis://127.0.0.1:1/", options().sentinel_password("x")),
        ("redis://127.0.0.1:1/", options().replicas(101)),
    ] {
        let (code, text) = refused(url, options).await;
        assert_eq!(code, "INVALID_ARGUMENT", "{text}");
    }
}
