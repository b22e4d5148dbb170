//! Users. The smallest role is `find`, `insert` and `update` on the collection; with
//! `changeStream` a hand-off is told at once, without it contenders find it by reading, and with
//! `createIndex` documents that nobody has used for a day are deleted.

use mongodb::bson::{Document, doc};

use super::*;
use crate::mongo_set::MongoSet;

const ALL: [&str; 4] = ["find", "insert", "update", "changeStream"];

/// The commands of the page for users, which is what is tested.
fn commands() -> [Document; 2] {
    let page = include_str!("../../src/backend/mongodb/RIGHTS.md");
    let mut blocks = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    [(); 2].map(|()| serde_json::from_str(blocks.next().unwrap()).unwrap())
}

/// A user as the page makes it, but with these actions. The name is also that of the role.
fn user_with(set: &MongoSet, name: &str, actions: &[&str]) -> String {
    let [mut role, mut user] = commands();
    let privilege = role.get_array_mut("privileges").unwrap()[0].as_document_mut().unwrap();
    let documented = privilege.insert("actions", actions.to_vec()).unwrap();
    assert_eq!(documented, ALL.to_vec().into(), "the page has what is tested");
    role.insert("createRole", name);
    role.insert("writeConcern", doc! { "w": 3 });
    user.insert("createUser", name);
    user.get_array_mut("roles").unwrap()[0].as_document_mut().unwrap().insert("role", name);
    tokio::task::block_in_place(|| {
        let primary = &set.members[set.primary()];
        primary.admin(role);
        primary.admin(user);
    });
    format!("{}&authSource=admin", set.url_as(name, "secret"))
}

/// Takes the lock, hands it over, and asks for everything else.
async fn use_all(url: &str) -> Duration {
    let client = Client::connect(url).await.unwrap();
    let lock = lock(&client, "a", ms(30_000));
    let lease = lock.acquire().await.unwrap();
    lease.renew().await.unwrap();
    let waiting = queue_up(&client, &lock).await;
    // The stream opens, or is refused.
    tokio::time::sleep(ms(500)).await;
    let start = Instant::now();
    lease.release().await.unwrap();
    let next = soon("the hand-off", waiting).await.unwrap();
    let handed_over = start.elapsed();
    assert_eq!(client.list().await.unwrap().len(), 1);
    assert!(client.force_release("a").await.unwrap());
    drop(next);
    handed_over
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_smallest_role_is_enough_and_each_missing_right_is_reported_at_acquire() {
    let set = tokio::task::block_in_place(MongoSet::start_locked);
    use_all(&user_with(&set, "all", &ALL)).await;
    let handed_over = use_all(&user_with(&set, "reader", &ALL[..3])).await;
    assert!(handed_over < ms(2_000), "{handed_over:?}");
    for missing in &ALL[..3] {
        let actions: Vec<_> = ALL.into_iter().filter(|action| action != missing).collect();
        let url = user_with(&set, &format!("without-{missing}"), &actions);
        let client = Client::connect(&url).await.unwrap();
        for error in [
            client.lock("b").unwrap().acquire().await.unwrap_err(),
            client.lock("b").unwrap().try_acquire().await.unwrap_err(),
        ] {
            assert_eq!(error.kind().code(), "AUTH_FAILED", "{missing}: {error}");
            assert!(error.to_string().contains("find, insert and update"), "{error}");
        }
    }
    // The password is refused when we connect, and shown nowhere.
    let url = set.url_as("all", "hunter2");
    let error = Client::connect(&format!("{url}&authSource=admin")).await.unwrap_err();
    assert_eq!(error.kind().code(), "AUTH_FAILED", "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    // Without a user one may connect, but not lock.
    let url = set.url_as("all", "secret").replace("all:secret@", "");
    let client = Client::connect(&url).await.unwrap();
    let error = client.lock("b").unwrap().acquire().await.unwrap_err();
    assert_eq!(error.kind().code(), "AUTH_FAILED", "{error}");
}
