//! What moves a session's deadline, and what does not.

use super::proxy::{Fate, Frame, Op};
use super::*;
use crate::backend::{Renewal, Renewed};
use crate::clock;

/// A session without writes: everything else is answered.
fn lose_writes(frame: Frame) -> Fate {
    match frame {
        Frame::Request(op) if op.is_write() => Fate::Lose,
        _ => Fate::Pass,
    }
}

async fn sleep_until(when: clock::Instant) {
    while clock::Instant::now() < when {
        tokio::time::sleep(ms(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_reads_pings_and_sync_do_not_move_the_deadline() {
    let scene = Scene::new().await;
    let (place, _) = scene.hold(ms(2_000)).await;
    let keeper = scene.keeper(&place);
    scene.proxy.rule(lose_writes);
    // What was under way is answered by then.
    tokio::time::sleep(ms(100)).await;
    let deadline = keeper.deadline();
    let directory = scene.directory();
    while clock::Instant::now() < deadline {
        keeper.session.sync(&directory).await.unwrap();
        keeper.session.list(&directory).await.unwrap();
        keeper.session.exists(&directory).await.unwrap();
        assert_eq!(keeper.deadline(), deadline);
        tokio::time::sleep(ms(20)).await;
    }
    // All the while it was connected, and its node is there.
    assert!(keeper.is_connected());
    assert_eq!(scene.nodes().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_an_idle_session_is_kept_alive_by_writes() {
    let scene = Scene::new().await;
    let (place, _) = scene.hold(ms(1_000)).await;
    let keeper = scene.keeper(&place);
    scene.proxy.log();
    for _ in 0..20 {
        tokio::time::sleep(ms(100)).await;
        assert!(clock::Instant::now() < keeper.deadline());
    }
    let requests = scene.proxy.requests();
    assert!(requests.iter().all(|op| *op == Op::Multi), "{requests:?}");
    assert!((5..=10).contains(&requests.len()), "{requests:?}");
    scene.release(&place).await;
    scene.proxy.log();
    tokio::time::sleep(ms(1_000)).await;
    let requests = scene.proxy.requests();
    assert!(requests.iter().all(|op| *op == Op::Delete), "{requests:?}");
    assert!((2..=5).contains(&requests.len()), "{requests:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_turn_that_comes_after_the_deadline_is_no_grant_before_a_write_is_answered() {
    let scene = Scene::new().await;
    let theirs = scene.foreign("lock-").await;
    let waiting = scene.queue(ms(2_000)).await;
    let keeper = scene.keeper(&waiting);
    scene.proxy.rule(lose_writes);
    tokio::time::sleep(ms(100)).await;
    sleep_until(keeper.deadline()).await;
    scene.raw.delete(&theirs, None).await.unwrap();
    let looked = tokio::time::timeout(ms(500), async {
        while let Look::Queued(_) = scene.again(&waiting).await {
            tokio::time::sleep(ms(2)).await;
        }
    });
    assert!(looked.await.is_err(), "granted past the deadline");
    scene.proxy.pass();
    scene.proxy.cut();
    let look = scene.again(&waiting).await;
    let Look::Granted(_, Term::Until(until)) = look else { panic!("{look:?}") };
    assert!(clock::Instant::now() < until);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_renew_is_one_write_now_and_tells_of_a_node_that_is_gone() {
    let scene = Scene::new().await;
    let (kept, token) = scene.hold(TTL).await;
    let renew = async |place: &Arc<Place>| {
        let lease = Renewal { place: place.clone(), token };
        let mut renewed = soon("a renewal", scene.zookeeper.renew(vec![lease])).await.unwrap();
        renewed.pop().unwrap().unwrap()
    };
    scene.proxy.log();
    assert!(matches!(renew(&kept).await, Renewed::Ours(Term::Until(_))));
    assert_eq!(scene.proxy.requests(), [Op::Multi]);
    scene.delete_node_of(&kept).await;
    assert_eq!(renew(&kept).await, Renewed::NotOurs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g6_of_many_leases_only_the_one_whose_node_is_gone_is_lost() {
    let scene = Scene::new().await;
    let places: Vec<_> = (0..450)
        .map(|number| {
            Arc::new(Place {
                owner: OwnerId::random(),
                name: Name::new(&format!("n{number}")).unwrap(),
                ttl: TTL,
                metadata: "".into(),
            })
        })
        .collect();
    let mut leases = Vec::new();
    for place in &places {
        let token = granted(scene.intro(place).await);
        leases.push(Renewal { place: place.clone(), token });
    }
    for number in [7, 299] {
        let directory = format!("{}/n{number}", scene.root);
        let [node] = scene.raw.list_children(&directory).await.unwrap().try_into().unwrap();
        scene.raw.delete(&format!("{directory}/{node}"), None).await.unwrap();
    }
    let renewed = soon("the renewals", scene.zookeeper.renew(leases)).await.unwrap();
    for (number, renewed) in renewed.into_iter().enumerate() {
        let is_lost = renewed.unwrap() == Renewed::NotOurs;
        assert_eq!(is_lost, [7, 299].contains(&number), "{number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_locks_of_one_ttl_share_a_session_and_others_do_not() {
    let scene = Scene::new().await;
    let other_name = Arc::new(Place {
        owner: OwnerId::random(),
        name: Name::new("other").unwrap(),
        ttl: ms(1_000),
        metadata: "".into(),
    });
    let (first, _) = scene.hold(ms(1_000)).await;
    granted(scene.intro(&other_name).await);
    let second = scene.queue(ms(2_000)).await;
    let id = |place: &Place| scene.keeper(place).session.id();
    assert_eq!(id(&first), id(&other_name));
    assert_ne!(id(&first), id(&second));
    assert_eq!(scene.keeper(&first).session.timeout(), ms(1_000));
    assert_eq!(scene.keeper(&second).session.timeout(), ms(2_000));
}
