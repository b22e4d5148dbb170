//! TLS on a port of its own: what is trusted works, and nothing else.

use std::path::{Path, PathBuf};
use std::time::Instant;

use fencelock::{Client, ClientOptions};

use crate::authority::Authority;
use crate::ports::Port;
use crate::site::{lock, ms, queue_up, soon};
use crate::zookeeper_server::ZooKeeperServer;

/// A server that asks clients for certificates on a second port, which it returns.
async fn start(ca: &Path, (cert, key): &(PathBuf, PathBuf)) -> (ZooKeeperServer, Port) {
    let port = Port::reserve();
    // The server wants both in one file.
    let both = cert.with_extension("both.pem");
    let [key, cert] = [key, cert].map(|file| std::fs::read_to_string(file).unwrap());
    std::fs::write(&both, key + &cert).unwrap();
    let lines = [
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory".to_owned(),
        format!("secureClientPort={}\nsecureClientPortAddress=127.0.0.1", port.number()),
        format!("ssl.keyStore.location={}\nssl.keyStore.type=PEM", both.display()),
        format!("ssl.trustStore.location={}\nssl.trustStore.type=PEM", ca.display()),
    ];
    let server = tokio::task::spawn_blocking(move || ZooKeeperServer::start_with(&lines));
    (server.await.unwrap(), port)
}

/// The first handshake of a server takes it seconds on a busy machine: it loads what it needs for TLS.
async fn first_of(url: &str, options: ClientOptions) -> Client {
    let connected = async {
        loop {
            match Client::connect_with(url, options.clone()).await {
                Ok(client) => return client,
                Err(error) => assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}"),
            }
        }
    };
    soon("a client", connected).await
}

async fn refused(url: &str, options: ClientOptions) -> String {
    let start = Instant::now();
    let error = Client::connect_with(url, options.connect_timeout(ms(2_000))).await.unwrap_err();
    assert!(start.elapsed() < ms(4_000), "{:?}", start.elapsed());
    assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_work_over_tls_with_an_authority_and_a_client_certificate_of_ones_own() {
    let authority = Authority::new("ours");
    let (cert, key) = authority.sign("client", "client", 2100);
    let server = authority.sign("server", "127.0.0.1", 2100);
    let (server, port) = start(&authority.ca(), &server).await;
    let url = format!(
        "zookeeper://{}/?fl.tls_ca={}&fl.tls_cert={}&fl.tls_key={}",
        port.host(),
        authority.ca().display(),
        cert.display(),
        key.display()
    );
    let client = first_of(&url, ClientOptions::new()).await;
    let lock = lock(&client, "a", ms(30_000));
    let holder = soon("a lease", lock.acquire()).await.unwrap();
    let waiting = queue_up(&client, &lock).await;
    holder.release().await.unwrap();
    let lease = soon("the hand-off", waiting).await.unwrap();
    // A plaintext client sees the same lock.
    let plain = Client::connect(&server.url()).await.unwrap();
    assert_eq!(plain.inspect("a").await.unwrap().owner, Some(lease.owner()));
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tls_nobody_is_trusted_whom_the_authority_has_not_signed() {
    let (authority, stranger) = (Authority::new("ours"), Authority::new("theirs"));
    let (cert, key) = authority.sign("client", "client", 2100);
    let ours = || ClientOptions::new().tls_ca(authority.ca()).tls_cert(&cert).tls_key(&key);
    let server = authority.sign("server", "127.0.0.1", 2100);
    let (server, port) = start(&authority.ca(), &server).await;
    let url = format!("zookeeper://{}/", port.host());
    first_of(&url, ours()).await.close().await;
    // We do not know the server, or it does not know us.
    refused(&url, ours().tls_ca(stranger.ca())).await;
    refused(&url, ClientOptions::new().tls_ca(authority.ca())).await;
    let (cert, key) = stranger.sign("client", "client", 2100);
    refused(&url, ours().tls_cert(cert).tls_key(key)).await;
    // The wrong kind of port, either way.
    refused(&server.url(), ours()).await;
    refused(&url, ClientOptions::new()).await;
    // A certificate for another host.
    let server = authority.sign("other-host", "db.example", 2100);
    let (_server, port) = start(&authority.ca(), &server).await;
    refused(&format!("zookeeper://{}/", port.host()), ours()).await;
}
