//! The wake-up channel of a client.

use tokio::time::timeout;

use super::proxy::Proxy;
use super::*;
use crate::wakeups::{Mail, Mailbox};

/// How many clients listen on the channel of this one.
fn listeners(scene: &mut Scene) -> u64 {
    let channel = scene.redis.shared.prefix.channel(scene.redis.shared.client);
    let (_, count): (String, u64) = scene.command(&["PUBSUB", "NUMSUB", &channel]);
    count
}

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

#[tokio::test]
async fn g4_the_first_queued_answer_subscribes_and_then_everybody_looks() {
    let mut scene = Scene::new().await;
    let (place_held, token) = scene.hold(TTL).await;
    scene.attempt(&place("n", TTL)).await;
    tokio::time::sleep(ms(50)).await;
    assert_eq!(listeners(&mut scene), 0, "not before it is needed");
    let [first, second] = [place("n", TTL), place("n", TTL)];
    let [first_mail, second_mail] =
        [&first, &second].map(|place| scene.wakeups.await_grant(place.owner));
    queued(scene.intro(&first).await);
    assert_eq!(next_mail(&first_mail).await, Mail::Look);
    assert_eq!(next_mail(&second_mail).await, Mail::Look);
    queued(scene.intro(&second).await);
    assert_eq!(listeners(&mut scene), 1, "one per client");
    scene.redis.release(&place_held, Some(token), false).await.unwrap();
    let Mail::Granted(token) = next_mail(&first_mail).await else { panic!("no grant") };
    assert_eq!(scene.record().unwrap().0, token);
    let no_more = timeout(ms(50), next_mail(&second_mail)).await;
    assert!(no_more.is_err(), "{no_more:?}");
}

#[tokio::test]
async fn g4_a_broken_subscription_is_made_again_and_then_everybody_looks() {
    let mut scene = Scene::new().await;
    scene.hold(TTL).await;
    let waiting = place("n", TTL);
    let mailbox = scene.wakeups.await_grant(waiting.owner);
    scene.intro(&waiting).await;
    for _ in 0..3 {
        assert_eq!(next_mail(&mailbox).await, Mail::Look);
        assert_eq!(listeners(&mut scene), 1);
        let () = scene.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    }
    scene.server.restart();
    assert_eq!(next_mail(&mailbox).await, Mail::Look);
}

#[tokio::test]
async fn g4_a_subscription_that_died_without_a_word_is_found_by_the_first_lost_message() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port()).await;
    let (redis, wakeups) = connect(&proxy.url()).await;
    let scene = Scene::on(server).await;
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    let mailbox = wakeups.await_grant(waiting.owner);
    queued(redis.contend(&waiting, Mode::Intro).await.unwrap());
    assert_eq!(next_mail(&mailbox).await, Mail::Look);
    proxy.black_hole();
    scene.redis.release(&holder, Some(token), false).await.unwrap();
    // The request's own connection is found dead first, then its next look finds the grant.
    assert!(timeout(ms(300), redis.contend(&waiting, Mode::Again)).await.is_err());
    let look = soon("an answer", redis.contend(&waiting, Mode::Again)).await;
    granted(look.unwrap());
    assert_eq!(next_mail(&mailbox).await, Mail::Look, "subscribed again");
}

#[tokio::test]
async fn g4_malformed_messages_are_ignored() {
    let mut scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let waiting = place("n", TTL);
    let mailbox = scene.wakeups.await_grant(waiting.owner);
    scene.intro(&waiting).await;
    assert_eq!(next_mail(&mailbox).await, Mail::Look);
    let channel = scene.redis.shared.prefix.channel(scene.redis.shared.client);
    let member = owner_value(&waiting, &scene.redis);
    for message in ["", "x", " 1", &member, &format!("{member} x"), &format!("lost {member}")] {
        let () = scene.command(&["PUBLISH", &channel, message]);
    }
    scene.redis.release(&holder, Some(token), false).await.unwrap();
    let Mail::Granted(token) = next_mail(&mailbox).await else { panic!("no grant") };
    assert_eq!(scene.record().unwrap().0, token);
}
