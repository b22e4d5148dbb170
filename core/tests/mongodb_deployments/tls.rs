//! TLS is the driver's, by the options of its URL: here it is seen to be in what we ship.

use fencelock::ClientOptions;

use super::*;
use crate::authority::Authority;
use crate::mongo_server::MongoServer;

/// A certificate with its key in one file, as both the server and the driver want it.
fn pem(authority: &Authority, file: &str, host: &str) -> String {
    let (cert, key) = authority.sign(file, host, 2100);
    let both = cert.with_extension("both");
    let text = [cert, key].map(|file| std::fs::read_to_string(file).unwrap()).concat();
    std::fs::write(&both, text).unwrap();
    both.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_work_over_tls_with_an_authority_and_a_client_certificate_of_ones_own() {
    let (authority, stranger) = (Authority::new("ours"), Authority::new("theirs"));
    let ca = authority.ca().display().to_string();
    let server = pem(&authority, "server", "127.0.0.1");
    let arguments =
        ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", &server, "--tlsCAFile", &ca];
    let server = tokio::task::block_in_place(|| MongoServer::start_with(&arguments));
    let url = |ca: &Authority, client: &Authority, host: &str| {
        format!(
            "mongodb://{host}:{}/?tls=true&tlsCAFile={}&tlsCertificateKeyFile={}",
            server.port(),
            ca.ca().display(),
            pem(client, "client", "client")
        )
    };
    let client = Client::connect(&url(&authority, &authority, "127.0.0.1")).await.unwrap();
    let lock = lock(&client, "a", ms(30_000));
    let lease = lock.acquire().await.unwrap();
    let waiting = queue_up(&client, &lock).await;
    lease.release().await.unwrap();
    soon("the hand-off", waiting).await.unwrap().release().await.unwrap();

    for wrong in [
        url(&stranger, &authority, "127.0.0.1"),
        url(&authority, &stranger, "127.0.0.1"),
        url(&authority, &authority, "localhost"),
        format!("mongodb://127.0.0.1:{}/", server.port()),
    ] {
        let quick = ClientOptions::new().connect_timeout(ms(1_000));
        let connected = Client::connect_with(&wrong, quick).await;
        let error = connected.err().unwrap_or_else(|| panic!("{wrong} was accepted"));
        assert!(["UNAVAILABLE", "AUTH_FAILED"].contains(&error.kind().code()), "{wrong}: {error}");
    }
}
