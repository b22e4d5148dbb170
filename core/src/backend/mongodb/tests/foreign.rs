//! Documents that are not ours, and layouts that we do not know.

use super::*;

fn shapes() -> Vec<Document> {
    vec![
        // As hand-written locks have it.
        doc! { "_id": "n", "owner": "host-1", "expires": DateTime::now() },
        doc! { "_id": "n", "locked": true, "v": "1" },
        // Nearly ours: one field of another type.
        doc! { "_id": "n", "v": 1, "t": 5_i32, "u": DateTime::now(), "q": {}, "x": [], "h": Bson::Null },
        doc! { "_id": "n", "v": 0, "u": "soon", "h": { "o": 1 }, "q": [1], "n": 7, "w": Bson::Null },
    ]
}

#[tokio::test]
async fn g1_a_foreign_document_is_a_conflict_for_every_step_and_stays_as_it_was() {
    for shape in shapes() {
        let scene = Scene::new().await;
        scene.insert(shape.clone()).await;
        let place = place("n", TTL);
        let token = Token::new(7).unwrap();
        for mode in [Mode::Intro, Mode::Again, Mode::Try] {
            let error = scene.mongo.contend(&place, mode).await.unwrap_err();
            assert_eq!(error.kind().code(), "CONFLICT", "{shape}: {error}");
        }
        for (token, mark) in [(Some(token), false), (None, false), (None, true)] {
            let error = scene.mongo.release(&place, token, mark).await.unwrap_err();
            assert_eq!(error.kind().code(), "CONFLICT", "{shape}: {error}");
        }
        let error = scene.mongo.force_release(&place.name).await.unwrap_err();
        assert_eq!(error.kind().code(), "CONFLICT", "{shape}: {error}");
        let renewal = crate::backend::Renewal { place: place.clone(), token };
        let renewed = scene.mongo.renew(vec![renewal]).await.unwrap().pop().unwrap();
        assert_eq!(renewed.unwrap(), crate::backend::Renewed::NotOurs);
        assert_eq!(scene.document().await, shape);
        let info = scene.mongo.inspect(&place.name).await.unwrap();
        assert_eq!(info.state, crate::LockState::Foreign);
        assert!(info.token.is_none() && info.queue.is_empty());
        assert!(info.owner.unwrap().contains("_id"));
        assert!(scene.mongo.list().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn g1_a_newer_layout_is_not_touched() {
    let scene = Scene::new().await;
    let newer = doc! { "_id": "n", "v": 2, "everything": "else" };
    scene.insert(newer.clone()).await;
    let place = place("n", TTL);
    for mode in [Mode::Intro, Mode::Again, Mode::Try] {
        let error = scene.mongo.contend(&place, mode).await.unwrap_err();
        assert_eq!(error.kind().code(), "UNSUPPORTED", "{error}");
    }
    let error = scene.mongo.inspect(&place.name).await.unwrap_err();
    assert_eq!(error.kind().code(), "UNSUPPORTED");
    let error = scene.mongo.force_release(&place.name).await.unwrap_err();
    assert_eq!(error.kind().code(), "UNSUPPORTED");
    assert_eq!(scene.document().await, newer);
}

#[tokio::test]
async fn g1_a_collation_that_mixes_up_names_is_a_conflict() {
    let scene = Scene::new().await;
    let store = &scene.mongo.shared.store;
    let create = doc! {
        "create": store.collection.as_str(), "collation": { "locale": "en", "strength": 1 },
    };
    store.database.run_command(create).await.unwrap();
    granted(scene.intro(&place("name", TTL)).await);
    let error = scene.mongo.contend(&place("NAME", TTL), Mode::Intro).await.unwrap_err();
    assert_eq!(error.kind().code(), "CONFLICT", "{error}");
    assert!(error.to_string().contains("collation"), "{error}");
}
