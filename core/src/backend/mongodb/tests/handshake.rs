//! Connecting.

use super::*;

fn quick(timeout: Duration) -> Settings {
    ClientOptions::new().connect_timeout(timeout).settled(Family::MongoDb).unwrap()
}

#[tokio::test]
async fn g10_nothing_is_asked_before_the_settings_are_checked() {
    let nobody = "mongodb://127.0.0.1:1/";
    let error = try_connect(nobody, &settings("locks")).await.err().unwrap();
    assert_eq!(error.kind().code(), "INVALID_ARGUMENT", "{error}");
}

#[tokio::test]
async fn g4_a_server_that_is_not_there_is_reported_within_the_connect_timeout() {
    let start = Instant::now();
    let error = try_connect("mongodb://127.0.0.1:1/", &quick(ms(600))).await.err().unwrap();
    assert_eq!(error.kind().code(), "UNAVAILABLE");
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
    assert!(start.elapsed() < ms(3_000), "{:?}", start.elapsed());
    assert!(!error.to_string().contains('\n'));
}

#[tokio::test]
async fn g4_a_secondary_alone_is_refused() {
    let scene = Scene::new().await;
    let hello = scene.mongo.shared.store.database.run_command(doc! { "hello": 1 }).await.unwrap();
    let primary = hello.get_str("primary").unwrap().to_owned();
    let hosts = hello.get_array("hosts").unwrap();
    let secondary = hosts.iter().filter_map(Bson::as_str).find(|h| *h != primary).unwrap();
    let url = format!("mongodb://{secondary}/?directConnection=true");
    let error = try_connect(&url, &quick(ms(3_000))).await.err().unwrap();
    assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}");
    assert!(error.to_string().contains("secondary"), "{error}");
    assert!(!error.is_passing());
    let url = format!("mongodb://{primary}/?directConnection=true");
    assert!(try_connect(&url, &quick(ms(3_000))).await.is_ok());
}

#[tokio::test]
async fn g7_a_closed_client_says_so_and_closing_takes_no_time() {
    let scene = Scene::new().await;
    let start = Instant::now();
    scene.mongo.close().await.unwrap();
    assert!(start.elapsed() < ms(20), "{:?}", start.elapsed());
    until("the end of the driver", || async {
        let error = scene.mongo.contend(&place("n", TTL), Mode::Try).await;
        error.is_err_and(|error| error.kind() == crate::ErrorKind::Closed)
    })
    .await;
}
