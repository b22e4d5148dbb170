//! Wake-ups: events, and reads where there are none.

use tokio::time::timeout;

use super::*;
use crate::wakeups::{Mail, Mailbox};

/// The next mail that is not a bare wake-up.
async fn next_mail(mailbox: &Mailbox) -> Mail {
    let mail = async {
        loop {
            match mailbox.next().await {
                Mail::Woken => {}
                mail => return mail,
            }
        }
    };
    soon("mail", mail).await
}

/// The next grant that an event tells of. A read that came before may have sent us to look.
async fn next_grant(mailbox: &Mailbox) -> u64 {
    loop {
        if let Mail::Granted(token) = next_mail(mailbox).await {
            return token;
        }
    }
}

async fn no_mail(mailbox: &Mailbox, within: Duration) {
    let mail = timeout(within, next_mail(mailbox)).await;
    assert!(mail.is_err(), "{mail:?}");
}

/// The change streams of this client.
async fn streams(scene: &Scene) -> Vec<i64> {
    let client = scene.mongo.shared.client.to_string();
    let admin = scene.mongo.shared.driver.database("admin");
    let command = doc! {
        "aggregate": 1,
        "pipeline": [
            { "$currentOp": { "idleCursors": true, "localOps": true } },
            { "$match": { "cursor.cursorId": { "$exists": true } } },
        ],
        "cursor": {},
    };
    let answer = admin.run_command(command).await.unwrap();
    let rows = answer.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
    let of_client = |row: &&Bson| {
        let text = row.to_string();
        text.contains("$changeStream") && text.contains(&client)
    };
    let id = |row: &Bson| row.as_document()?.get_document("cursor").ok()?.get_i64("cursorId").ok();
    rows.iter().filter(of_client).filter_map(id).collect()
}

async fn listening(scene: &Scene) -> i64 {
    until("a change stream", || async { streams(scene).await.len() == 1 }).await;
    streams(scene).await[0]
}

#[tokio::test]
async fn g5_a_release_wakes_the_one_that_it_hands_the_lock_to_and_nobody_else() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    scene.attempt(&place("n", TTL)).await;
    assert!(streams(&scene).await.is_empty(), "not before it is needed");
    let [first, second] = [place("n", TTL), place("n", TTL)];
    let [first_mail, second_mail] =
        [&first, &second].map(|place| scene.wakeups.await_grant(place.owner));
    let floor = queued(scene.intro(&first).await).floor;
    scene.intro(&second).await;
    listening(&scene).await;
    scene.release(&holder, token).await;
    let token = next_grant(&first_mail).await;
    assert_eq!(token, number(&scene.document().await, "t"));
    assert!(token >= floor);
    no_mail(&second_mail, ms(100)).await;
    assert_eq!(streams(&scene).await.len(), 1, "one per client");
}

#[tokio::test]
async fn g5_events_reach_contenders_of_other_clients() {
    let scene = Scene::new().await;
    let (other, wakeups) = connect(&scene.url, &scene.collection).await;
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    let mailbox = wakeups.await_grant(waiting.owner);
    queued(other.contend(&waiting, Mode::Intro).await.unwrap());
    scene.release(&holder, token).await;
    assert!(matches!(next_mail(&mailbox).await, Mail::Granted(_) | Mail::Look));
}

#[tokio::test]
async fn g4_a_grant_while_no_stream_was_open_is_found_when_it_opens_again() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    let mailbox = scene.wakeups.await_grant(waiting.owner);
    scene.intro(&waiting).await;
    let cursor = listening(&scene).await;
    let kill = doc! {
        "killCursors": scene.mongo.shared.store.collection.as_str(), "cursors": [cursor],
    };
    scene.mongo.shared.store.database.run_command(kill).await.unwrap();
    scene.release(&holder, token).await;
    // By whichever way it came.
    let mail = next_mail(&mailbox).await;
    assert!(matches!(mail, Mail::Granted(_) | Mail::Look), "{mail:?}");
    until("another stream", || async {
        streams(&scene).await.iter().any(|stream| *stream != cursor)
    })
    .await;
}

#[tokio::test]
async fn g4_a_dropped_collection_wakes_everybody() {
    let scene = Scene::new().await;
    scene.hold(TTL).await;
    let waiting = place("n", TTL);
    let mailbox = scene.wakeups.await_grant(waiting.owner);
    scene.intro(&waiting).await;
    listening(&scene).await;
    scene.raw.drop().await.unwrap();
    assert_eq!(next_mail(&mailbox).await, Mail::Look);
    assert_eq!(scene.again(&waiting).await, Look::Gone);
}

#[tokio::test]
async fn g4_the_first_in_line_looks_when_the_holders_time_is_over() {
    let scene = Scene::new().await;
    let waiting = place("n", TTL);
    let mailbox = scene.wakeups.await_grant(waiting.owner);
    let (_, token) = scene.hold(ms(3_000)).await;
    queued(scene.intro(&waiting).await);
    let start = Instant::now();
    assert_eq!(next_mail(&mailbox).await, Mail::Look);
    assert!(start.elapsed() < ms(6_000), "{:?}", start.elapsed());
    assert!(granted(scene.again(&waiting).await) > token);
}

/// The holder was handed the lock and died, long before anybody's next look.
#[tokio::test]
async fn g4_who_becomes_first_in_line_looks_when_the_next_holders_time_is_over() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let dead = place("n", ms(4_000));
    let other = scene.client().await;
    queued(other.contend(&dead, Mode::Intro).await.unwrap());
    let waiting = place("n", TTL);
    let mailbox = scene.wakeups.await_grant(waiting.owner);
    assert!(!queued(scene.intro(&waiting).await).first);
    listening(&scene).await;
    scene.release(&holder, token).await;
    let start = Instant::now();
    assert_eq!(next_mail(&mailbox).await, Mail::Look);
    assert!(start.elapsed() < ms(8_000), "{:?}", start.elapsed());
    granted(scene.again(&waiting).await);
}

#[tokio::test]
async fn g4_one_behind_a_dead_first_looks_a_second_later() {
    let scene = Scene::new().await;
    scene.hold(ms(3_000)).await;
    let other = scene.client().await;
    queued(other.contend(&place("n", ms(300)), Mode::Intro).await.unwrap());
    other.close().await.unwrap();
    let waiting = place("n", TTL);
    let mailbox = scene.wakeups.await_grant(waiting.owner);
    assert!(!queued(scene.intro(&waiting).await).first);
    assert_eq!(next_mail(&mailbox).await, Mail::Look);
    granted(scene.again(&waiting).await);
}

#[tokio::test]
async fn g4_a_standalone_server_is_read_until_the_lock_is_there() {
    let scene = Scene::standalone().await;
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    let mailbox = scene.wakeups.await_grant(waiting.owner);
    queued(scene.intro(&waiting).await);
    no_mail(&mailbox, ms(150)).await;
    scene.release(&holder, token).await;
    let start = Instant::now();
    assert_eq!(next_mail(&mailbox).await, Mail::Look, "a read is a hint, never a grant");
    assert!(start.elapsed() < ms(5_000), "{:?}", start.elapsed());
    assert!(granted(scene.again(&waiting).await) > token);
    let info = scene.mongo.inspect(&waiting.name).await.unwrap();
    assert_eq!(info.owner, Some(waiting.owner.to_string()));
}

#[tokio::test]
async fn g1_malformed_events_are_ignored() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    let mailbox = scene.wakeups.await_grant(waiting.owner);
    scene.intro(&waiting).await;
    listening(&scene).await;
    // Reads all names once, which finds nothing.
    tokio::time::sleep(ms(50)).await;
    let client = scene.mongo.shared.client;
    let owner = waiting.owner;
    for word in [
        format!("{client}:"),
        format!("{client}:x:5"),
        format!("{client}:{owner}"),
        format!("{client}:{owner}:x"),
        format!("{client}:{owner}:-1"),
    ] {
        scene.set(doc! { "w": { "$literal": word } }).await;
    }
    no_mail(&mailbox, ms(200)).await;
    scene.release(&holder, token).await;
    let token = next_grant(&mailbox).await;
    assert_eq!(token, number(&scene.document().await, "t"));
}
