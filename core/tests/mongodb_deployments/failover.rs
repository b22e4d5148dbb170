//! The primary goes, in every way that there is, while leases are held, renewed and waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Mutex;

use super::*;
use crate::mongo_set::MongoSet;

/// Long enough for an election, short enough that a lease needs a renewal soon after.
const TTL: Duration = ms(12_000);

/// One set at a time: three members that elect need a machine's attention.
static TURN: Mutex<()> = Mutex::const_new(());

/// Tries all the time to take a lock that is held, which must not succeed for as long as it is.
struct Rival {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<u32>,
}

impl Rival {
    async fn of(url: &str, held: Arc<Lease>) -> Self {
        let client = Client::connect(url).await.unwrap();
        let lock = lock(&client, held.name(), TTL);
        let stop = Arc::<AtomicBool>::default();
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut refused = 0;
            while !stopped.load(Ordering::Acquire) {
                match lock.try_acquire().await {
                    Ok(Some(lease)) => {
                        assert!(!held.is_held(), "two hold at once: {lease:?}");
                        assert!(lease.token() > held.token());
                        lease.release().await.unwrap();
                        break;
                    }
                    Ok(None) => refused += 1,
                    Err(error) => assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}"),
                }
                tokio::time::sleep(ms(20)).await;
            }
            refused
        });
        Rival { stop, task }
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Release);
        assert!(soon("the rival's end", self.task).await.unwrap() > 0);
    }
}

/// What happens to leases that are renewed.
#[derive(PartialEq)]
enum Leases {
    Kept,
    /// The other members may need many seconds until they notice that they follow a member that
    /// has gone silent; without them there is no majority, so leases may come to their deadline.
    MayEnd,
}

/// What a fault of the primary must not do: give a lock to two, lose a place in the queue, or keep
/// those who wait from being served; and end a lease, unless there is no majority for that long.
async fn outlived(
    mut set: MongoSet,
    leases: Leases,
    fault: impl FnOnce(&mut MongoSet),
    after: impl FnOnce(&mut MongoSet),
) {
    let url = set.url();
    let (client, other) =
        (Client::connect(&url).await.unwrap(), Client::connect(&url).await.unwrap());
    let held = Arc::new(lock(&client, "held", TTL).acquire().await.unwrap());
    let rival = Rival::of(&url, held.clone()).await;
    let waited_for = lock(&client, "waited for", TTL).acquire().await.unwrap();
    let first = queue_up(&other, &lock(&other, "waited for", TTL)).await;
    let start = Instant::now();
    tokio::task::block_in_place(|| fault(&mut set));
    // It may need more than one try, and is then told the truth.
    until("the release", || async {
        match waited_for.release().await {
            Ok(()) => true,
            Err(error) => error.kind().code() == "LOST" || start.elapsed() > TTL / 3,
        }
    })
    .await;
    tokio::task::block_in_place(|| after(&mut set));
    let next = soon("the hand-off", first).await.unwrap();
    assert!(next.token() > waited_for.token() && !waited_for.is_held());
    // Long enough that it could not be held without a renewal by the new primary.
    let renewed_by = start + TTL + ms(1_000);
    tokio::time::sleep(renewed_by.saturating_duration_since(Instant::now())).await;
    let lost = held.is_lost() || next.is_lost();
    assert!(!lost || leases == Leases::MayEnd, "a lease was lost");
    rival.end().await;
    for lease in [&held, &next] {
        until("a release", || async { lease.is_lost() || lease.release().await.is_ok() }).await;
    }
    for name in ["held", "waited for"] {
        let lease = soon("the lock", lock(&other, name, TTL).acquire()).await.unwrap();
        assert!(lease.token() > held.token().min(next.token()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g1_g2_g4_a_primary_that_steps_down_costs_nobody_a_lease_or_a_place() {
    let _turn = TURN.lock().await;
    let set = tokio::task::block_in_place(MongoSet::start);
    outlived(set, Leases::Kept, |set| _ = set.step_down(), |_| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g1_g2_g4_a_primary_that_is_killed_costs_nobody_a_lease_or_a_place() {
    let _turn = TURN.lock().await;
    let set = tokio::task::block_in_place(MongoSet::start);
    let kill = |set: &mut MongoSet| {
        let primary = set.primary();
        set.members[primary].kill();
        set.primary_after(primary);
    };
    outlived(set, Leases::Kept, kill, |_| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g1_g2_g4_a_primary_that_freezes_and_goes_on_grants_nothing_that_counts() {
    let _turn = TURN.lock().await;
    let set = tokio::task::block_in_place(MongoSet::start);
    let primary = tokio::task::block_in_place(|| set.primary());
    let freeze = |set: &mut MongoSet| {
        set.members[primary].freeze();
        set.primary_after(primary);
    };
    // What lies in its sockets is served now.
    outlived(set, Leases::MayEnd, freeze, |set| set.members[primary].thaw()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g1_g2_g4_a_primary_that_is_cut_off_grants_nothing_that_counts() {
    let _turn = TURN.lock().await;
    let set = tokio::task::block_in_place(MongoSet::start_with_links);
    outlived(set, Leases::MayEnd, |set| _ = set.isolate_primary(), |set| set.links().heal()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g2_without_a_majority_leases_end_at_their_deadline_and_nothing_is_granted() {
    let _turn = TURN.lock().await;
    let mut set = tokio::task::block_in_place(MongoSet::start);
    let ttl = ms(4_000);
    let client = Client::connect(&set.url()).await.unwrap();
    let lease = lock(&client, "a", ttl).acquire().await.unwrap();
    let free = lock(&client, "b", ttl);
    free.acquire().await.unwrap().release().await.unwrap();
    let secondaries = tokio::task::block_in_place(|| set.secondaries());
    for &member in &secondaries {
        set.members[member].freeze();
    }
    let start = Instant::now();
    // The primary takes it, and says that no majority has it.
    let error = free.try_acquire().await.unwrap_err();
    assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}");
    soon("lost", lease.lost()).await;
    assert!(start.elapsed() < ttl, "{:?}", start.elapsed());
    for &member in &secondaries {
        set.members[member].thaw();
    }
    let next = soon("a lease when all are back", async {
        loop {
            if let Ok(lease) = lock(&client, "a", ttl).acquire().await {
                return lease;
            }
        }
    })
    .await;
    assert!(next.token() > lease.token());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g4_no_primary_is_reported_within_the_connect_timeout() {
    let _turn = TURN.lock().await;
    let mut set = tokio::task::block_in_place(MongoSet::start);
    let url = format!("{}&fl.connect_timeout_ms=2000", set.url());
    for member in tokio::task::block_in_place(|| set.secondaries()) {
        set.members[member].kill();
    }
    // The last one steps down when it sees that it is alone.
    let start = Instant::now();
    until("no primary", || {
        let url = url.clone();
        async move { Client::connect(&url).await.is_err() }
    })
    .await;
    assert!(start.elapsed() < PATIENCE);
    let start = Instant::now();
    let error = Client::connect(&url).await.unwrap_err();
    assert_eq!(error.kind().code(), "UNAVAILABLE", "{error}");
    assert!(start.elapsed() < ms(3_000), "{:?}", start.elapsed());
}
