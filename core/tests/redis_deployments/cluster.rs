//! A cluster of three: any name, slots that move, nodes that die.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fencelock::{Client, LockOptions, LockState};
use redis::Value;

use crate::redis_cluster::{RedisCluster, connection};
use crate::replication::wait_for_replicas;
use crate::site::{lock, ms, queue_up, soon, until};

const LONG: Duration = Duration::from_secs(30);
/// A node that is silent for this long is taken for dead by the others.
const NODE_TIMEOUT: &[&str] = &["--cluster-node-timeout", "2000"];

async fn client(cluster: &RedisCluster) -> Client {
    Client::connect(&cluster.url()).await.unwrap()
}

/// The master that has the name, as the layout was at the start.
fn home(cluster: &RedisCluster, name: &str) -> usize {
    cluster.master_of(cluster.slot(&format!("fencelock:{name}")))
}

/// Some name at this master.
fn name_at(cluster: &RedisCluster, node: usize) -> String {
    (0..).map(|n| format!("name {n}")).find(|name| home(cluster, name) == node).unwrap()
}

fn keys(cluster: &RedisCluster) -> Vec<String> {
    (0..3).flat_map(|node| cluster.ask::<Vec<String>>(node, &["KEYS", "*"])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_name_is_a_lock_of_its_own_from_end_to_end() {
    let cluster = RedisCluster::start();
    let client = client(&cluster).await;
    let names = [
        "a",
        "{x}",
        "a{b",
        "a}b",
        "{}x",
        "x}{y",
        "{}{z}",
        "}{",
        "{{x}}",
        "*",
        "[a]",
        "$ne",
        "../a",
        "/a//b",
        "🔒",
        "é",
        "e\u{301}",
        "new\nline",
        "a b",
        "~f",
        "%7B",
    ];
    let mut held = Vec::new();
    for name in names {
        let lock = lock(&client, name, LONG);
        let lease = lock.acquire().await.unwrap_or_else(|e| panic!("{name:?}: {e}"));
        let waiting = queue_up(&client, &lock).await;
        held.push((lease, waiting));
    }
    assert_eq!(client.list().await.unwrap().len(), names.len());
    for (lease, waiting) in held {
        lease.renew().await.unwrap();
        assert_eq!(client.inspect(lease.name()).await.unwrap().owner, Some(lease.owner()));
        lease.release().await.unwrap();
        let next = soon("the hand-off", waiting).await.unwrap();
        assert!(client.force_release(next.name()).await.unwrap(), "{:?}", next.name());
        until("lost", || std::future::ready(next.is_lost())).await;
    }
    until("an empty list", || async { client.list().await.unwrap().is_empty() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_leases_of_all_nodes_are_renewed_in_one_pipeline_to_each() {
    let cluster = RedisCluster::start();
    let client = client(&cluster).await;
    let mut leases = Vec::new();
    for n in 0..300 {
        leases.push(lock(&client, &format!("name {n}"), ms(2_000)).acquire().await.unwrap());
    }
    for _ in 0..2 {
        for node in 0..3 {
            cluster.ask::<()>(node, &["SCRIPT", "FLUSH"]);
        }
        tokio::time::sleep(ms(1_500)).await;
    }
    assert!(leases.iter().all(fencelock::Lease::is_held));
    for lease in leases {
        lease.release().await.unwrap();
    }
}

/// Begins to move a slot, and moves its keys.
fn begin_move(cluster: &RedisCluster, slot: u16, from: usize, to: usize) {
    let slot = slot.to_string();
    let id = |node: usize| cluster.ask::<String>(node, &["CLUSTER", "MYID"]);
    cluster.ask::<()>(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
    cluster.ask::<()>(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
    let port = cluster.nodes[to].port().to_string();
    loop {
        let keys: Vec<String> = cluster.ask(from, &["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
        if keys.is_empty() {
            return;
        }
        let mut command = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "REPLACE", "KEYS"];
        command.extend(keys.iter().map(String::as_str));
        // A key that ends meanwhile is no error.
        let _: Value = cluster.ask(from, &command);
    }
}

fn end_move(cluster: &RedisCluster, slot: u16, to: usize) {
    let id: String = cluster.ask(to, &["CLUSTER", "MYID"]);
    // The target first, so that the slot is never without a node.
    for node in [to, (to + 1) % 3, (to + 2) % 3] {
        cluster.ask::<()>(node, &["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &id]);
    }
}

/// For as long as the move is open, a lease is renewed where its keys are. Scripts that also name
/// keys which do not exist are refused by both nodes, so nobody gets in meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_g4_a_slot_moves_while_it_is_held_and_waited_for() {
    let cluster = RedisCluster::start();
    let (holding, waiting) = (client(&cluster).await, client(&cluster).await);
    let name = name_at(&cluster, 0);
    let slot = cluster.slot(&format!("fencelock:{name}"));
    let ttl = ms(3_000);
    let holder = lock(&holding, &name, ttl).acquire().await.unwrap();
    let first = queue_up(&waiting, &lock(&waiting, &name, ttl)).await;
    let second = queue_up(&waiting, &lock(&waiting, &name, ttl)).await;
    begin_move(&cluster, slot, 0, 1);
    let start = Instant::now();
    while start.elapsed() < ttl + ms(500) {
        assert!(holder.is_held(), "lost in the middle of a move");
        assert!(!first.is_finished() && !second.is_finished(), "two hold at once");
        tokio::time::sleep(ms(20)).await;
    }
    end_move(&cluster, slot, 1);
    // MOVED from now on.
    holder.renew().await.unwrap();
    assert_eq!(waiting.inspect(&name).await.unwrap().queue.len(), 2);
    // The move was longer than a sign of life lasts; a release before their next look would have
    // passed them over.
    until("signs of life after the move", || {
        let signs: Vec<String> = cluster.ask(1, &["KEYS", "*~fl1:s:*"]);
        let (seconds, _): (u64, u64) = cluster.ask(1, &["TIME"]);
        let after = (seconds * 1_000 + 1_000).to_string();
        let alive: u64 =
            signs.first().map_or(0, |key| cluster.ask(1, &["ZCOUNT", key, &after, "+inf"]));
        std::future::ready(alive == 2)
    })
    .await;
    holder.release().await.unwrap();
    let first = soon("the first turn", first).await.unwrap();
    assert!(first.token() > holder.token() && !second.is_finished());
    first.release().await.unwrap();
    let second = soon("the second turn", second).await.unwrap();
    assert!(second.token() > first.token());
    second.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_nobody_overlaps_while_a_slot_moves_to_and_fro() {
    let cluster = RedisCluster::start();
    let name = name_at(&cluster, 0);
    let slot = cluster.slot(&format!("fencelock:{name}"));
    let (inside, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let mut workers = Vec::new();
    for _ in 0..4 {
        let (inside, done) = (inside.clone(), done.clone());
        let lock = lock(&client(&cluster).await, &name, ms(3_000));
        workers.push(tokio::spawn(async move {
            let mut turns = 0;
            let mut last = None;
            while !done.load(Ordering::Relaxed) {
                let lease = lock.acquire().await.unwrap();
                assert!(Some(lease.token()) > last, "a token came again");
                last = Some(lease.token());
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold at once");
                tokio::time::sleep(ms(3)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                assert!(lease.is_held());
                // In a move it may have to wait for the end of that.
                while let Err(error) = lease.release().await {
                    assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}");
                }
                turns += 1;
            }
            turns
        }));
    }
    for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2)] {
        tokio::time::sleep(ms(200)).await;
        begin_move(&cluster, slot, from, to);
        tokio::time::sleep(ms(150)).await;
        end_move(&cluster, slot, to);
    }
    done.store(true, Ordering::Relaxed);
    for worker in workers {
        assert!(soon("a worker's end", worker).await.unwrap() > 1, "somebody never got in");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_a_node_that_goes_silent_costs_no_lease_of_the_others() {
    let cluster = RedisCluster::start();
    let client = client(&cluster).await;
    let ttl = ms(3_000);
    let mut leases = Vec::new();
    // Acquired together, so that they are renewed together.
    for node in [0, 1, 2, 0, 1, 2] {
        let name = (0..)
            .map(|n| format!("silent {n}"))
            .find(|name| {
                home(&cluster, name) == node
                    && leases.iter().all(|(_, l): &(usize, fencelock::Lease)| l.name() != name)
            })
            .unwrap();
        leases.push((node, lock(&client, &name, ttl).acquire().await.unwrap()));
    }
    cluster.nodes[0].freeze();
    for (node, lease) in &leases {
        if *node == 0 {
            soon("lost", lease.lost()).await;
        }
    }
    // Two more periods.
    tokio::time::sleep(ttl * 2).await;
    for (node, lease) in &leases {
        assert_eq!(lease.is_held(), *node != 0, "node {node}");
    }
    cluster.nodes[0].thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_g4_a_node_dies_and_its_replica_takes_over() {
    let mut cluster = RedisCluster::start_with(1, NODE_TIMEOUT);
    let client = client(&cluster).await;
    let [dying, other, third] = [0, 1, 2].map(|node| name_at(&cluster, node));
    let kept = lock(&client, &dying, LONG).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, &dying, LONG)).await;
    let elsewhere = lock(&client, &other, ms(5_000)).acquire().await.unwrap();
    // A key of the same slot.
    let key = format!("in step {{fencelock:{dying}}}");
    wait_for_replicas(&mut connection(&cluster.nodes[0]), &key, 1);
    cluster.nodes[0].kill();
    // What other nodes have goes on as if nothing were.
    lock(&client, &third, LONG).acquire().await.unwrap().release().await.unwrap();
    until("a renewal by the new primary", || async {
        assert!(kept.is_held() && elsewhere.is_held(), "{kept:?} {elsewhere:?}");
        kept.renew().await.is_ok()
    })
    .await;
    kept.release().await.unwrap();
    let next = soon("the hand-off by the new primary", waiting).await.unwrap();
    assert!(next.token() > kept.token());
    next.release().await.unwrap();
    elsewhere.release().await.unwrap();
    // One that begins with a dead seed finds its way, too.
    let late = self::client(&cluster).await;
    late.lock(&dying).unwrap().acquire().await.unwrap().release().await.unwrap();
    assert!(late.list().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_the_wake_up_subscription_moves_away_from_a_node_that_died() {
    let mut cluster = RedisCluster::start_with(0, NODE_TIMEOUT);
    let client = client(&cluster).await;
    let subscribed = |cluster: &RedisCluster, node: usize| {
        let clients: String = cluster.ask(node, &["CLIENT", "LIST", "TYPE", "pubsub"]);
        clients.contains("sub=1")
    };
    let names = [0, 1, 2].map(|node| name_at(&cluster, node));
    let first = lock(&client, &names[0], LONG);
    let holder = first.acquire().await.unwrap();
    let waiting = queue_up(&client, &first).await;
    let mut listening = 0;
    until("the subscription", || {
        let found = (0..3).find(|node| subscribed(&cluster, *node));
        listening = found.unwrap_or(0);
        std::future::ready(found.is_some())
    })
    .await;
    waiting.abort();
    holder.release().await.unwrap();
    cluster.nodes[listening].kill();
    let others = [(listening + 1) % 3, (listening + 2) % 3];
    until("a subscription elsewhere", || {
        std::future::ready(others.iter().any(|node| subscribed(&cluster, *node)))
    })
    .await;
    let lock = lock(&client, &names[others[0]], LONG);
    let holder = soon("a lock of a live node", async {
        loop {
            if let Ok(lease) = lock.acquire().await {
                break lease;
            }
        }
    })
    .await;
    let waiting = queue_up(&client, &lock).await;
    holder.release().await.unwrap();
    soon("the hand-off", waiting).await.unwrap().release().await.unwrap();
    // A lock of the dead node fails within the connect timeout and says so.
    let dead = client.lock(&names[listening]).unwrap();
    let error = dead.acquire_timeout(ms(0)).await.unwrap_err();
    assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g3_tokens_rise_over_release_expiry_and_an_emptied_cluster() {
    let cluster = RedisCluster::start();
    let client = client(&cluster).await;
    let fixed = LockOptions::new().ttl(ms(150)).renew(false);
    for name in ["a", "{x}", "b"] {
        let mut last = None;
        for round in 0..6 {
            let lease = client.lock_with(name, fixed.clone()).unwrap().acquire().await.unwrap();
            assert!(Some(lease.token()) > last, "{name} {round}");
            last = Some(lease.token());
            match round % 3 {
                0 => lease.release().await.unwrap(),
                1 => soon("its expiry", lease.lost()).await,
                _ => cluster.ask(home(&cluster, name), &["FLUSHALL"]),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_and_missing_scripts_are_met_at_acquire() {
    let cluster = RedisCluster::start();
    let client = client(&cluster).await;
    for node in 0..3 {
        let name = name_at(&cluster, node);
        cluster.ask::<()>(node, &["HSET", &format!("fencelock:{name}"), "field", "value"]);
        let error = client.lock(&name).unwrap().acquire().await.unwrap_err();
        assert_eq!(error.kind().code(), "CONFLICT", "{error}");
        cluster.ask::<()>(node, &["DEL", &format!("fencelock:{name}")]);
        cluster.ask::<()>(node, &["SCRIPT", "FLUSH"]);
        let lease = client.lock(&name).unwrap().acquire().await.unwrap();
        cluster.ask::<()>(node, &["SCRIPT", "FLUSH"]);
        lease.release().await.unwrap();
    }
    // A user without rights at one of the nodes learns it at once.
    for node in 0..3 {
        let rights = if node == 2 { "-eval" } else { "+@all" };
        cluster.ask::<()>(
            node,
            &["ACL", "SETUSER", "u", "on", ">hunter2", "~*", "&*", "+@all", rights],
        );
    }
    let url = cluster.url().replace("redis-cluster://", "redis-cluster://u:hunter2@");
    // At once, if all nodes answer in time.
    let error = soon("a refusal", async {
        loop {
            if let Err(error) = Client::connect(&url).await {
                return error;
            }
        }
    })
    .await;
    assert_eq!(error.kind().code(), "AUTH_FAILED", "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    cluster.ask::<()>(2, &["ACL", "SETUSER", "u", "+eval"]);
    Client::connect(&url).await.unwrap();
    // One node of a cluster is no server, and one server no cluster.
    let node = format!("redis://127.0.0.1:{}/", cluster.nodes[0].port());
    let single = Client::connect(&node).await;
    let code = match single {
        Ok(client) => {
            let lock = client.lock(&name_at(&cluster, 1)).unwrap();
            lock.acquire().await.unwrap_err().kind().code()
        }
        Err(error) => error.kind().code(),
    };
    assert_eq!(code, "UNSUPPORTED");
    let single = crate::redis_server::RedisServer::start();
    let error = Client::connect(&single.url().replace("redis:", "redis-cluster:")).await;
    assert_eq!(error.unwrap_err().kind().code(), "UNSUPPORTED");
}

/// The rights that the page for users has, and what it says a cluster needs besides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_the_smallest_user_of_a_cluster() {
    let page = include_str!("../../src/backend/redis/RIGHTS.md");
    let command = page.lines().find(|line| line.starts_with("ACL SETUSER fencelock")).unwrap();
    assert!(page.contains("| `+cluster\\|slots` | a cluster"), "the page names the right");
    let cluster = RedisCluster::start();
    let url = cluster.url().replace("redis-cluster://", "redis-cluster://fencelock:secret@");
    let command: Vec<_> = command.split(' ').collect();
    for node in 0..3 {
        cluster.ask::<()>(node, &command);
    }
    let error = Client::connect(&url).await.unwrap_err();
    assert_eq!(error.kind().code(), "AUTH_FAILED", "{error}");
    for node in 0..3 {
        cluster.ask::<()>(node, &["ACL", "SETUSER", "fencelock", "+cluster|slots"]);
    }
    let client = Client::connect(&url).await.unwrap();
    for node in 0..3 {
        let lock = lock(&client, &name_at(&cluster, node), ms(30_000));
        let lease = lock.acquire().await.unwrap();
        let waiting = queue_up(&client, &lock).await;
        lease.release().await.unwrap();
        soon("the hand-off", waiting).await.unwrap().release().await.unwrap();
    }
}

/// Half of the contenders are of a client that stops without a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_g7_dead_contenders_are_passed_over_and_no_helper_key_stays() {
    let cluster = RedisCluster::start();
    let client = client(&cluster).await;
    let name = name_at(&cluster, 1);
    let ttl = ms(1_500);
    let holder = lock(&client, &name, ttl).acquire().await.unwrap();
    // Their runtime ends, and with it all that they would still do.
    let dying = tokio::task::spawn_blocking({
        let (url, name) = (cluster.url(), name.clone());
        move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let client = Client::connect(&url).await.unwrap();
                for _ in 0..5 {
                    std::mem::forget(queue_up(&client, &lock(&client, &name, ttl)).await);
                }
            });
            runtime.shutdown_background();
        }
    });
    dying.await.unwrap();
    let mut living = Vec::new();
    for _ in 0..5 {
        living.push(queue_up(&client, &lock(&client, &name, ttl)).await);
    }
    holder.release().await.unwrap();
    let mut last = holder.token();
    for task in living {
        let lease = soon("a turn", task).await.unwrap();
        assert!(lease.token() > last, "out of order");
        last = lease.token();
        lease.release().await.unwrap();
    }
    until("nothing but token records and tombstones", || {
        let left = keys(&cluster);
        let all = left.iter().all(|k| k.contains("~fl1:t:") || k.contains("~fl1:x:"));
        std::future::ready(all)
    })
    .await;
    assert_eq!(client.inspect(&name).await.unwrap().state, LockState::Free);
}
