//! The steps of the protocol: update pipelines, each decided on the server in one go, by its time.
//!
//! A pipeline is the same for every call but for one stage with the parameters, so the rest is
//! made once. Names with an underscore are temporary fields; what the others mean is in
//! `document.rs`. All operators are those of MongoDB 4.2.
//!
//! `$$NOW` is taken when a command starts, however long it then waits for its turn. So times in
//! the document are only ever raised: else a step with an old `$$NOW` would take back what a newer
//! one has promised.

use std::sync::LazyLock;
use std::time::Duration;

use mongodb::bson::{
    Bson, DateTime, Document, RawArrayBuf, RawDocumentBuf, bson, cstr, doc, rawdoc,
};

use super::document::LAYOUT;
use crate::backend::{Mode, Place};
use crate::owner::{ClientId, OwnerId};

/// How many may wait for one name: what they need stays far below the server's 16 MB.
pub(super) const LONGEST_QUEUE: i32 = 4096;
/// W, the claim window, at most.
const CLAIM_WINDOW_MS: i64 = 5_000;
/// D, for how long a sign of life counts, at most: a look period and an election.
const SIGN_OF_LIFE_MS: i64 = 25_000;
/// For how long an owner id that ended stays known, and how many of them.
const TOMBSTONE_MS: i64 = 120_000;
const MOST_TOMBSTONES: i32 = 1024;
/// When a document that nobody uses may be deleted. The date is raised once an hour only, so that
/// its index is not written by each step.
const PURGE_MS: i64 = 24 * 3_600_000;
const PURGE_SLACK_MS: i64 = 3_600_000;

/// The stages before and after the parameters.
struct Stages {
    open: RawDocumentBuf,
    body: Vec<RawDocumentBuf>,
}

impl Stages {
    fn new(body: impl IntoIterator<Item = Document>) -> Self {
        let body = expired_holder().into_iter().chain(body).chain(close());
        Stages { open: raw(&open()), body: body.map(|stage| raw(&stage)).collect() }
    }

    fn with(&self, parameters: RawDocumentBuf) -> RawArrayBuf {
        let mut pipeline = RawArrayBuf::new();
        pipeline.push(&*self.open);
        pipeline.push(rawdoc! { "$set": parameters });
        for stage in &self.body {
            pipeline.push(&**stage);
        }
        pipeline
    }
}

/// One look of a contender.
pub(super) fn contend(place: &Place, client: ClientId, mode: Mode) -> RawArrayBuf {
    static STAGES: LazyLock<Stages> = LazyLock::new(|| Stages::new(contend_body()));
    STAGES.with(rawdoc! {
        "_me": place.owner.to_string(),
        "_key": key(place.owner),
        "_client": client.to_string(),
        "_ttl": millis(place.ttl),
        // A text of the user: `$where` is a text here and nothing else.
        "_meta": { "$literal": &*place.metadata },
        "_again": mode == Mode::Again,
        "_try": mode == Mode::Try,
    })
}

/// Gives a lease back or withdraws a contender, and hands the lock on.
pub(super) fn release(place: &Place, client: ClientId, mark: bool) -> RawArrayBuf {
    static STAGES: LazyLock<Stages> = LazyLock::new(|| Stages::new(release_body()));
    STAGES.with(rawdoc! {
        "_me": place.owner.to_string(),
        "_key": key(place.owner),
        "_client": client.to_string(),
        "_mark": mark,
    })
}

/// Ends the lease that the filter names, and hands the lock on. The flag stays as it is, so that
/// the lease counts as lost.
pub(super) fn force_release(client: ClientId) -> RawArrayBuf {
    static STAGES: LazyLock<Stages> = LazyLock::new(|| Stages::new(force_body()));
    STAGES.with(rawdoc! { "_client": client.to_string() })
}

/// The short form of a look that takes a free lock, for a filter that says that it is free and
/// that nobody waits. The same as the branch `_take` of the long one.
pub(super) fn short_grant(place: &Place, client: ClientId) -> RawArrayBuf {
    let until = doc! { "$add": ["$$NOW", millis(place.ttl)] };
    let mut set = doc! {
        "t": next_token(),
        "l": lost_token("$t"),
        "f": "H",
        "u": until.clone(),
        "z": "$$NOW",
        "purge": purge(until.into()),
    };
    // As an expression, which replaces the field; a bare document would be merged into it.
    set.insert(
        "h",
        doc! { "$cond": [true, {
            "o": place.owner.to_string(),
            "c": client.to_string(),
            "ttl": millis(place.ttl),
            "a": "$$NOW",
            "k": "own",
            "m": { "$literal": &*place.metadata },
        }, null] },
    );
    one_stage(set)
}

/// The short form of a release, for a filter that says that the lease is ours and that nobody
/// waits.
pub(super) fn short_release() -> RawArrayBuf {
    one_stage(doc! { "h": null, "u": epoch(), "f": "R", "z": "$$NOW" })
}

/// Raises the time of a lease that the filter names.
pub(super) fn renew(ttl: Duration) -> RawArrayBuf {
    let until = doc! { "$max": ["$u", { "$add": ["$$NOW", millis(ttl)] }] };
    one_stage(doc! {
        "u": until.clone(),
        "h": { "$mergeObjects": ["$h", { "k": "own" }] },
        "z": "$$NOW",
        "purge": purge(until.into()),
    })
}

/// The field of the queue that an owner id has. Begins with a letter, because a path with a bare
/// number would mean an array.
pub(super) fn key(owner: OwnerId) -> String {
    format!("o{owner}")
}

/// Every step begins with a whole document: a missing one gets its fields, and one of another
/// shape is put aside, to come out of the step byte for byte as it was.
fn open() -> Document {
    let new = doc! { "$eq": [{ "$size": { "$objectToArray": "$$ROOT" } }, 1] };
    let ours = doc! { "$and": [
        { "$eq": ["$v", LAYOUT] },
        { "$eq": [{ "$type": "$t" }, "long"] },
        { "$eq": [{ "$type": "$u" }, "date"] },
        { "$eq": [{ "$type": "$q" }, "object"] },
        { "$eq": [{ "$type": "$x" }, "array"] },
        { "$in": [{ "$type": "$h" }, ["object", "null"]] },
    ] };
    let fresh = doc! {
        "_id": "$_id",
        "v": LAYOUT,
        "t": 0_i64,
        "f": "R",
        "l": 0_i64,
        "h": null,
        "u": epoch(),
        "q": { "$literal": {} },
        "n": "", "w": "",
        "x": { "$literal": [] }, "z": epoch(), "purge": epoch(),
    };
    let mut aside = fresh.clone();
    aside.insert("_foreign", "$$ROOT");
    doc! { "$replaceWith": { "$cond": [
        { "$or": [new, ours] },
        { "$mergeObjects": [fresh, "$$ROOT"] },
        aside,
    ] } }
}

/// Whose time is over holds no more. A hand-off that nobody claimed shows a dead client: its
/// contenders lose their places, but for those that were seen since, else each of them would
/// cost the others a claim window. Not those of who asks, which is alive.
fn expired_holder() -> [Document; 2] {
    [
        doc! { "$set": { "_over": { "$and": [
            { "$ne": ["$h", null] },
            { "$lte": ["$u", "$$NOW"] },
        ] } } },
        doc! { "$set": {
            "_holder": { "$cond": ["$_over", null, "$h"] },
            "_queue": { "$let": {
                "vars": { "all": { "$objectToArray": "$q" } },
                "in": { "$cond": [
                    { "$and": [
                        "$_over",
                        { "$eq": ["$h.k", "hand"] },
                        { "$ne": ["$h.c", "$_client"] },
                    ] },
                    { "$filter": { "input": "$$all", "as": "e", "cond": { "$or": [
                        { "$ne": ["$$e.v.c", "$h.c"] },
                        { "$gte": ["$$e.v.s", "$h.a"] },
                    ] } } },
                    "$$all",
                ] },
            } },
        } },
    ]
}

/// Finds the first contender that is alive, and what the next grant would be.
fn head() -> [Document; 3] {
    let alive = doc! { "$gt": [
        { "$add": ["$$e.v.s", { "$min": ["$$e.v.ttl", SIGN_OF_LIFE_MS] }] },
        "$$NOW",
    ] };
    let none = doc! { "$lt": ["$_at", 0] };
    [
        doc! { "$set": { "_at": { "$indexOfArray": [
            { "$map": { "input": "$_queue", "as": "e", "in": alive } },
            true,
        ] } } },
        doc! { "$set": {
            "_head": { "$cond": [none.clone(), null, { "$arrayElemAt": ["$_queue", "$_at"] }] },
            "_rest": { "$cond": [none, [], { "$slice": [
                "$_queue",
                { "$add": ["$_at", 1] },
                { "$max": [1, { "$size": "$_queue" }] },
            ] }] },
            "_token": next_token(),
        } },
        doc! { "$set": { "_lost": lost_token("$_token") } },
    ]
}

/// Grows by the clock too, so that it is greater than earlier ones also when the document was
/// deleted meanwhile.
fn next_token() -> Document {
    doc! { "$max": [
        { "$add": ["$t", 1_i64] },
        { "$multiply": [{ "$toLong": "$$NOW" }, 1_000_i64] },
    ] }
}

/// The newest token known to have ended without a release, as of the next grant. Of tokens before
/// this document nothing is known.
fn lost_token(next: &str) -> Document {
    doc! { "$cond": [
        { "$eq": ["$t", 0_i64] },
        { "$subtract": [next, 1_i64] },
        { "$cond": [{ "$eq": ["$f", "H"] }, "$t", "$l"] },
    ] }
}

/// The holder that a hand-off makes of the first contender.
fn handed_holder() -> Document {
    doc! {
        "o": owner_of("$_head.k"),
        "c": "$_head.v.c",
        "ttl": "$_head.v.ttl",
        "a": "$$NOW",
        "k": "hand",
        "m": "$_head.v.m",
    }
}

/// A hand-off lasts for the claim window from the later of now and the contender's own sign of
/// life. That is what it counts from: it may have looked after the `$$NOW` of this step.
fn handed_until() -> Document {
    doc! { "$add": [
        { "$max": ["$$NOW", "$_head.v.s"] },
        { "$min": ["$_head.v.ttl", CLAIM_WINDOW_MS] },
    ] }
}

/// Says whose the lock is now. It ends in the token, so that each hand-off changes it.
fn handed_word() -> Document {
    doc! { "$cond": [
        "$_hand",
        { "$concat": ["$_head.v.c", ":", owner_of("$_head.k"), ":", { "$toString": "$_token" }] },
        "$w",
    ] }
}

fn owner_of(key: &str) -> Document {
    doc! { "$substrBytes": [key, 1, 32] }
}

fn contend_body() -> Vec<Document> {
    let mut stages = vec![
        doc! { "$set": {
            "_mine": { "$eq": ["$_holder.o", "$_me"] },
            "_queued": { "$in": ["$_key", "$_queue.k"] },
        } },
        doc! { "$set": {
            // Only a first request may take a place, and only for an owner id that has not ended.
            "_gone": { "$and": [
                { "$not": "$_mine" },
                { "$cond": ["$_again", { "$not": "$_queued" }, { "$in": ["$_me", "$x.o"] }] },
            ] },
            // A sign of life before anything is judged: late, but not yet passed over, keeps the
            // place.
            "_queue": { "$cond": [
                "$_queued",
                { "$map": { "input": "$_queue", "as": "e", "in": { "$cond": [
                    { "$eq": ["$$e.k", "$_key"] },
                    { "k": "$$e.k", "v": { "$mergeObjects": [
                        "$$e.v",
                        { "s": { "$max": ["$$e.v.s", "$$NOW"] } },
                    ] } },
                    "$$e",
                ] } } },
                "$_queue",
            ] },
        } },
    ];
    stages.extend(head());
    let free = doc! { "$eq": ["$_holder", null] };
    stages.extend([
        doc! { "$set": {
            "_take": { "$and": [free.clone(), { "$not": "$_gone" }, { "$or": [
                { "$eq": ["$_head", null] },
                { "$eq": ["$_head.k", "$_key"] },
            ] }] },
            // Nobody passes the queue, and a free lock does not stay behind a step that saw it.
            "_hand": { "$and": [free, { "$ne": ["$_head", null] }, { "$or": [
                "$_gone", { "$ne": ["$_head.k", "$_key"] },
            ] }] },
        } },
        doc! { "$set": { "_granted": { "$or": ["$_take", "$_hand"] } } },
        doc! { "$set": {
            "h": choose([
                ("$_take", bson!({
                    "o": "$_me", "c": "$_client", "ttl": "$_ttl",
                    "a": "$$NOW", "k": "own", "m": "$_meta",
                })),
                ("$_hand", handed_holder().into()),
                ("$_mine", bson!({ "$mergeObjects": ["$_holder", { "k": "own" }] })),
            ], "$_holder".into()),
            "u": choose([
                ("$_take", bson!({ "$add": ["$$NOW", "$_ttl"] })),
                ("$_hand", handed_until().into()),
                // An older look that comes late must not shorten what a newer one was told.
                ("$_mine", bson!({ "$max": ["$u", { "$add": ["$$NOW", "$_ttl"] }] })),
            ], bson!({ "$cond": ["$_over", epoch(), "$u"] })),
            "t": { "$cond": ["$_granted", "$_token", "$t"] },
            "l": { "$cond": ["$_granted", "$_lost", "$l"] },
            "f": { "$cond": ["$_granted", "H", "$f"] },
            "w": handed_word(),
            "_queue": { "$cond": ["$_granted", "$_rest", "$_queue"] },
            "_changed": { "$or": [
                "$_mine",
                "$_over",
                "$_granted",
                { "$and": [{ "$not": "$_gone" }, { "$not": "$_try" }] },
            ] },
        } },
        doc! { "$set": { "_queue": { "$cond": [
            { "$and": [
                { "$not": "$_take" },
                { "$not": "$_mine" },
                { "$not": "$_try" },
                { "$not": "$_gone" },
                { "$not": "$_queued" },
                { "$lt": [{ "$size": "$_queue" }, LONGEST_QUEUE] },
            ] },
            { "$concatArrays": ["$_queue", [{ "k": "$_key", "v": {
                "c": "$_client", "ttl": "$_ttl", "s": "$$NOW", "e": "$$NOW", "m": "$_meta",
            } }]] },
            "$_queue",
        ] } } },
    ]);
    stages
}

fn release_body() -> Vec<Document> {
    let mut stages = vec![
        doc! { "$set": {
            "_ours": { "$eq": ["$_holder.o", "$_me"] },
            "_queued": { "$in": ["$_key", "$_queue.k"] },
            "_queue": { "$filter": {
                "input": "$_queue", "as": "e", "cond": { "$ne": ["$$e.k", "$_key"] },
            } },
        } },
        doc! { "$set": {
            "_free": { "$or": ["$_ours", { "$eq": ["$_holder", null] }] },
            // Before the next grant is worked out, which would count us as lost.
            "f": { "$cond": ["$_ours", "R", "$f"] },
        } },
    ];
    stages.extend(head());
    stages.push(doc! { "$set": { "_hand": { "$and": [
        "$_free",
        { "$ne": ["$_head", null] },
    ] } } });
    stages.push(hand_on());
    stages.push(doc! { "$set": {
        "x": { "$cond": [
            "$_mark",
            { "$slice": [
                { "$concatArrays": [
                    { "$filter": {
                        "input": "$x", "as": "ended", "cond": { "$gt": ["$$ended.e", "$$NOW"] },
                    } },
                    [{ "o": "$_me", "e": { "$add": ["$$NOW", TOMBSTONE_MS] } }],
                ] },
                -MOST_TOMBSTONES,
            ] },
            "$x",
        ] },
        "_changed": { "$or": ["$_ours", "$_queued", "$_over", "$_mark", "$_hand"] },
    } });
    stages
}

fn force_body() -> Vec<Document> {
    let mut stages = vec![doc! { "$set": { "_holder": null, "_free": true } }];
    stages.extend(head());
    stages.push(doc! { "$set": { "_hand": { "$ne": ["$_head", null] }, "_changed": true } });
    stages.push(hand_on());
    stages
}

/// Gives a free lock to the first contender, if there is one.
fn hand_on() -> Document {
    doc! { "$set": {
        "h": choose(
            [("$_hand", handed_holder().into()), ("$_free", Bson::Null)],
            "$_holder".into(),
        ),
        "u": choose([("$_hand", handed_until().into()), ("$_free", epoch())], "$u".into()),
        "t": { "$cond": ["$_hand", "$_token", "$t"] },
        "l": { "$cond": ["$_hand", "$_lost", "$l"] },
        "f": { "$cond": ["$_hand", "H", "$f"] },
        "w": handed_word(),
        "_queue": { "$cond": ["$_hand", "$_rest", "$_queue"] },
    } }
}

/// Puts the queue back and removes the temporary fields. A step that changed nothing leaves the
/// document as it was, so that the server writes nothing either.
fn close() -> [Document; 3] {
    const TEMPORARY: [&str; 24] = [
        "_me", "_key", "_client", "_ttl", "_meta", "_again", "_try", "_mark", "_over", "_holder",
        "_queue", "_mine", "_ours", "_queued", "_gone", "_free", "_at", "_head", "_rest", "_token",
        "_lost", "_take", "_hand", "_granted",
    ];
    let changed = |value: Bson, field: &str| doc! { "$cond": ["$_changed", value, field] };
    let first = doc! { "$cond": [
        { "$eq": [{ "$size": "$_queue" }, 0] },
        "",
        { "$let": {
            "vars": { "first": { "$arrayElemAt": ["$_queue", 0] } },
            "in": { "$concat": ["$$first.v.c", ":", owner_of("$$first.k")] },
        } },
    ] };
    let temporary = TEMPORARY.into_iter().chain(["_changed"]).map(Bson::from);
    [
        doc! { "$set": {
            "q": changed(bson!({ "$arrayToObject": "$_queue" }), "$q"),
            "n": changed(first.into(), "$n"),
            "z": changed("$$NOW".into(), "$z"),
            "purge": changed(purge("$u".into()).into(), "$purge"),
        } },
        doc! { "$unset": temporary.collect::<Vec<_>>() },
        doc! { "$replaceWith": { "$ifNull": ["$_foreign", "$$ROOT"] } },
    ]
}

/// The date of deletion for a lease that lasts until `until`.
fn purge(until: Bson) -> Document {
    let in_use = doc! { "$max": [until, "$$NOW"] };
    doc! { "$cond": [
        { "$lt": ["$purge", { "$add": [in_use.clone(), PURGE_MS - PURGE_SLACK_MS] }] },
        { "$add": [in_use, PURGE_MS] },
        "$purge",
    ] }
}

fn choose<const N: usize>(branches: [(&str, Bson); N], otherwise: Bson) -> Document {
    let branches = branches.map(|(case, then)| bson!({ "case": case, "then": then }));
    doc! { "$switch": { "branches": branches.to_vec(), "default": otherwise } }
}

fn one_stage(set: Document) -> RawArrayBuf {
    let mut pipeline = RawArrayBuf::new();
    let mut stage = RawDocumentBuf::new();
    stage.append(cstr!("$set"), raw(&set));
    pipeline.push(stage);
    pipeline
}

fn raw(document: &Document) -> RawDocumentBuf {
    // Fails only for a key with NUL; all keys stand in this file.
    RawDocumentBuf::try_from(document).expect("keys without NUL")
}

/// "Over since ever".
fn epoch() -> Bson {
    DateTime::from_millis(0).into()
}

pub(super) fn millis(span: Duration) -> i64 {
    // Checked options are whole milliseconds, 24 h at most.
    span.as_millis() as i64
}
