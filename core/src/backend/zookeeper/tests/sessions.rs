//! How long a session lasts, and what the ensemble says of that.

use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::span;

use super::proxy::{Frame, Op};
use super::*;
use crate::backend::{Renewal, Renewed};

/// Keeps what is said at WARN and above in this thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

/// The ensemble's answer is made to grant so many milliseconds.
fn grant(scene: &Scene, millis: i32) {
    scene.proxy.edit(move |frame, body| {
        if frame == Frame::Answer(Op::Connect) {
            body[4..8].copy_from_slice(&millis.to_be_bytes());
        }
    });
}

#[tokio::test]
async fn g2_a_session_that_the_ensemble_keeps_for_another_time_is_warned_of_and_counts_the_shorter()
{
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let scene = Scene::new().await;
    let told = || std::mem::take(&mut *warnings.0.lock().unwrap());
    assert!(!told().iter().any(|text| text.contains("asked_ms")), "30 s are granted");
    for (ttl, granted_ms, longest) in [(5_000, 4_000, 4_000), (6_000, 9_000, 6_000)] {
        grant(&scene, granted_ms);
        let (place, _) = scene.hold(ms(ttl)).await;
        let said = told();
        let expected = format!("asked_ms={ttl} granted_ms={granted_ms} ");
        assert!(said.iter().any(|text| text.contains(&expected)), "{said:?}");
        let left = crate::clock::Instant::now().until(scene.keeper(&place).deadline());
        assert!(left < ms(longest), "{left:?}");
        scene.release(&place).await;
    }
}

/// Some servers that only look like ZooKeeper answer a reconnect with another session, and the
/// crate takes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_another_session_after_a_reconnect_is_none_of_ours() {
    let scene = Scene::new().await;
    let (holder, token) = scene.hold(TTL).await;
    let keeper = scene.keeper(&holder);
    scene.proxy.edit(|frame, body| {
        if frame == Frame::Request(Op::Connect) {
            // No session id and no password: a new session.
            body[16..24].fill(0);
            body[28..44].fill(0);
        }
    });
    scene.proxy.cut();
    soon("the end of the session", keeper.over()).await;
    assert_eq!(scene.again(&holder).await, Look::Gone);
    let lease = Renewal { place: holder.clone(), token };
    let mut renewed = soon("a renewal", scene.zookeeper.renew(vec![lease])).await.unwrap();
    assert_eq!(renewed.pop().unwrap().unwrap(), Renewed::NotOurs);
    scene.proxy.edit(|_, _| {});
    // The old session ends by itself; until then its node is before ours.
    // Who still meets the one that ends starts again.
    let mut next = place(TTL);
    while scene.intro(&next).await == Look::Gone {
        next = place(TTL);
    }
    queued(scene.again(&next).await);
    assert_ne!(scene.keeper(&next).session.id(), keeper.session.id());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_session_that_nobody_uses_is_closed_and_one_in_use_is_not() {
    let scene = Scene::new().await;
    let (used, _) = scene.hold(ms(2_000)).await;
    let unused = Arc::new(Place {
        owner: OwnerId::random(),
        name: Name::new("other").unwrap(),
        ttl: ms(1_000),
        metadata: "".into(),
    });
    granted(scene.intro(&unused).await);
    let (kept, idle) = (scene.keeper(&used), scene.keeper(&unused));
    let (session, lines) = (idle.session.id(), idle.session.lines());
    let start = Instant::now();
    scene.release(&unused).await;
    soon("the end of the upkeep", idle.over()).await;
    drop(idle);
    soon("the end of the session", lines.ended()).await;
    assert!(start.elapsed() >= ms(10_000), "{:?}", start.elapsed());
    assert!(kept.is_connected() && crate::clock::Instant::now() < kept.deadline());
    let again = scene.queue(ms(1_000)).await;
    assert_ne!(scene.keeper(&again).session.id(), session);
}
