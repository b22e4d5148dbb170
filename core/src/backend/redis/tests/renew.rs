//! Every branch of `renew.lua`, and what a batch makes of its members.

use super::*;
use crate::backend::{Renewal, Renewed};
use crate::period::Term;
use crate::{ErrorKind, Result};

impl Scene {
    async fn renew(&self, place: &Arc<Place>, token: Token) -> Renewed {
        let mut results = self.renew_all(vec![Renewal { place: place.clone(), token }]).await;
        assert_eq!(results.len(), 1);
        results.remove(0).unwrap()
    }

    async fn renew_all(&self, leases: Vec<Renewal>) -> Vec<Result<Renewed>> {
        self.redis.renew(leases).await.unwrap()
    }

    /// Holds many locks at once.
    async fn hold_many(&self, count: usize) -> Vec<Renewal> {
        let places: Vec<_> = (0..count).map(|n| place(&format!("n{n}"), TTL)).collect();
        let looks = places.iter().map(|place| self.redis.contend(place, Mode::Intro));
        let looks = futures_util::future::join_all(looks).await;
        let renewal = |(place, look): (Arc<Place>, Result<Look>)| Renewal {
            place,
            token: granted(look.unwrap()),
        };
        places.into_iter().zip(looks).map(renewal).collect()
    }
}

#[tokio::test]
async fn g6_a_renewal_sets_lease_and_record_to_their_full_time() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    let names = keys("n");
    let record = scene.record();
    for key in [&names.lock, &names.record] {
        let () = scene.command(&["PEXPIRE", key, "2000"]);
    }
    assert_eq!(scene.renew(&place, token).await, Renewed::Ours(Term::FullTtl));
    assert_just_below(scene.pttl(&names.lock), TTL);
    assert_just_below(scene.pttl(&names.record), ms(600_000) + TTL);
    assert_eq!(scene.record(), record);
}

#[tokio::test]
async fn g6_a_renewal_never_creates_the_lock_again() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    scene.expire_lock();
    let before = scene.all_keys();
    assert_eq!(scene.renew(&place, token).await, Renewed::NotOurs);
    assert_eq!(scene.all_keys(), before);
    let (other, _) = scene.hold(TTL).await;
    let () = scene.command(&["PEXPIRE", &keys("n").lock, "2000"]);
    assert_eq!(scene.renew(&place, token).await, Renewed::NotOurs);
    assert_eq!(scene.get(&keys("n").lock), Some(owner_value(&other, &scene.redis)));
    assert!(scene.pttl(&keys("n").lock) <= 2000);
}

#[tokio::test]
async fn g6_a_renewal_does_not_touch_a_foreign_holder() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    scene.set(keys("n").lock, "foreign");
    assert_eq!(scene.renew(&place, token).await, Renewed::NotOurs);
    assert_eq!(scene.pttl(&keys("n").lock), -1);
}

#[tokio::test]
async fn g3_a_renewal_restores_a_record_that_was_lost() {
    let mut scene = Scene::new().await;
    let (place, token) = scene.hold(TTL).await;
    let () = scene.command(&["DEL", &keys("n").record]);
    assert_eq!(scene.renew(&place, token).await, Renewed::Ours(Term::FullTtl));
    assert_eq!(scene.record(), Some((token.get(), "H".to_owned(), token.get() - 1)));
    assert_just_below(scene.pttl(&keys("n").record), ms(600_000) + TTL);
}

#[tokio::test]
async fn g6_each_lease_of_a_batch_is_judged_alone() {
    let mut scene = Scene::new().await;
    // Three pipelines, the last one not full.
    let leases = scene.hold_many(1100).await;
    for n in [0, 499, 500, 1099] {
        let () = scene.command(&["DEL", &format!("{PREFIX}n{n}")]);
    }
    for n in [7, 1000] {
        let () = scene.command(&["DEL", &format!("{PREFIX}n{n}")]);
        let () = scene.command(&["LPUSH", &format!("{PREFIX}n{n}"), "x"]);
    }
    let results = scene.renew_all(leases).await;
    assert_eq!(results.len(), 1100);
    for (n, result) in results.into_iter().enumerate() {
        match n {
            0 | 499 | 500 | 1099 => assert_eq!(result.unwrap(), Renewed::NotOurs, "{n}"),
            7 | 1000 => assert_eq!(result.unwrap_err().kind(), ErrorKind::Conflict, "{n}"),
            _ => assert_eq!(result.unwrap(), Renewed::Ours(Term::FullTtl), "{n}"),
        }
    }
}

#[tokio::test]
async fn g6_a_server_that_forgot_the_scripts_gets_them_again() {
    let mut scene = Scene::new().await;
    let leases = scene.hold_many(700).await;
    for _ in 0..2 {
        let () = scene.command(&["SCRIPT", "FLUSH"]);
        let results = scene.renew_all(leases.clone()).await;
        assert!(results.into_iter().all(|result| result.unwrap() == Renewed::Ours(Term::FullTtl)));
    }
    let () = scene.command(&["SCRIPT", "FLUSH"]);
    let (held, token) = scene.hold(TTL).await;
    let () = scene.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(
        scene.redis.release(&held, Some(token), false).await.unwrap(),
        crate::backend::Verdict::Released
    );
    // Known from now on: one call is one command.
    let calls = |scene: &mut Scene| {
        let stats: String = scene.command(&["INFO", "commandstats"]);
        let calls = stats.lines().find_map(|l| l.strip_prefix("cmdstat_eval:calls=")).unwrap();
        calls.split(',').next().unwrap().parse::<u64>().unwrap()
    };
    let other = place("m", TTL);
    let mut before = 0;
    for round in 0..2 {
        before = calls(&mut scene);
        scene.intro(&other).await;
        assert_eq!(scene.renew_all(leases.clone()).await.len(), 700, "{round}");
    }
    assert_eq!(calls(&mut scene), before);
}

#[tokio::test]
async fn g6_a_batch_without_an_answer_fails_lease_by_lease() {
    let mut scene = Scene::new().await;
    let leases = scene.hold_many(3).await;
    assert!(scene.renew_all(Vec::new()).await.is_empty());
    scene.server.kill();
    let results = scene.renew_all(leases).await;
    assert_eq!(results.len(), 3);
    for result in results {
        let error = result.unwrap_err();
        assert!(error.is_passing(), "{error}");
    }
}
