//! G10: names, ttl, timeouts and URLs are checked before any I/O.

use std::time::Duration;

use fencelock::{Client, ClientOptions, LockOptions};

use crate::site::{Site, ms, on_each_backend};

on_each_backend!(g10_bad_names_options_and_timeouts_are_refused);

async fn g10_bad_names_options_and_timeouts_are_refused(site: Site) {
    let client = site.client().await;
    for name in ["", "a\0", "~fl", "~fl1:q:{x}:a", &"x".repeat(1025)] {
        assert_eq!(client.lock(name).unwrap_err().kind().code(), "INVALID_ARGUMENT");
        assert_eq!(client.inspect(name).await.unwrap_err().kind().code(), "INVALID_ARGUMENT");
        assert_eq!(client.force_release(name).await.unwrap_err().kind().code(), "INVALID_ARGUMENT");
    }
    let options = LockOptions::new().ttl(ms(99));
    let error = client.lock_with("a", options).unwrap_err();
    assert!(error.to_string().contains("100 ms to 24 h"), "{error}");
    let error = client.lock("a").unwrap().acquire_timeout(Duration::MAX).await.unwrap_err();
    assert!(error.to_string().contains("0 to 10 years"), "{error}");
}

#[tokio::test]
async fn g10_bad_urls_are_refused_before_any_connection_and_show_no_password() {
    for (url, code) in [
        ("", "INVALID_ARGUMENT"),
        ("localhost:6379", "UNSUPPORTED"),
        ("localhost", "INVALID_ARGUMENT"),
        ("http://user:hunter2@localhost/", "UNSUPPORTED"),
        ("redis://user:hunter2@localhost:notaport/", "INVALID_ARGUMENT"),
        ("redis://127.0.0.1:1/?fl.prefix=a%7Bb", "INVALID_ARGUMENT"),
        ("redis://127.0.0.1:1/?fl.prefix=a%00", "INVALID_ARGUMENT"),
        ("redis://127.0.0.1:1/?fl.nonsense=1", "INVALID_ARGUMENT"),
        ("redis://127.0.0.1:1/?fl.request_timeout_ms=0", "INVALID_ARGUMENT"),
        ("redis://127.0.0.1:1/?fl.connect_timeout_ms=-1", "INVALID_ARGUMENT"),
        ("memory:a/b", "INVALID_ARGUMENT"),
    ] {
        let error = Client::connect(url).await.unwrap_err();
        assert_eq!(error.kind().code(), code, "{url}: {error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    let options = ClientOptions::new().request_timeout(Duration::ZERO);
    let error = Client::connect_with("memory:", options).await.unwrap_err();
    assert!(error.to_string().contains("1 ms to 1 h"), "{error}");
}
