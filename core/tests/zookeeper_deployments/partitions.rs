//! Members of the ensemble that die, freeze or lose each other while a client holds.

use std::time::{Duration, Instant};

use fencelock::{Client, Lease};

use crate::site::{lock, ms, queue_up, soon};
use crate::zookeeper_ensemble::ZooKeeperEnsemble;

const TTL: Duration = ms(2_000);

async fn client(ensemble: &ZooKeeperEnsemble, members: &[usize]) -> Client {
    let hosts: Vec<_> = members.iter().map(|n| ensemble.members[*n].host()).collect();
    Client::connect(&format!("zookeeper://{}/", hosts.join(","))).await.unwrap()
}

/// Blocks while members start.
async fn ensemble() -> ZooKeeperEnsemble {
    tokio::task::spawn_blocking(ZooKeeperEnsemble::start).await.unwrap()
}

/// When the lease was first seen lost; looks all the time, as a holder does between its steps.
fn end_of(lease: Lease) -> std::thread::JoinHandle<Instant> {
    std::thread::spawn(move || {
        while lease.is_held() {
            std::thread::sleep(Duration::from_micros(200));
        }
        Instant::now()
    })
}

/// Waits behind the holder, in a session that outlives an election.
async fn behind(other: &Client) -> tokio::task::JoinHandle<Lease> {
    queue_up(other, &lock(other, "a", ms(10_000))).await
}

/// The holder is lost before the lock is another's. Prints by how much.
async fn assert_lost_before_the_next_grant(holder: Lease, waiting: tokio::task::JoinHandle<Lease>) {
    let lost = end_of(holder);
    let next = soon("the next lease", waiting).await.unwrap();
    let granted = Instant::now();
    let lost = tokio::task::spawn_blocking(|| lost.join().unwrap()).await.unwrap();
    assert!(lost < granted, "two held for {:?}", lost - granted);
    println!("the holder knew {:?} before the next grant", granted - lost);
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_holder_behind_a_follower_that_lost_its_leader_is_lost_in_time() {
    let ensemble = ensemble().await;
    let followers = ensemble.followers();
    let holding = client(&ensemble, &followers[..1]).await;
    let other = client(&ensemble, &[ensemble.leader(), followers[1]]).await;
    let holder = lock(&holding, "a", TTL).acquire().await.unwrap();
    // Several beats.
    let waiting = behind(&other).await;
    tokio::time::sleep(TTL).await;
    assert!(holder.is_held());
    ensemble.isolate(followers[0]);
    assert_lost_before_the_next_grant(holder, waiting).await;
    ensemble.links().heal();
    // It serves again, with a session of its own.
    let again = soon("a lease after the cut", lock(&holding, "a", TTL).acquire()).await.unwrap();
    again.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_holder_at_a_leader_without_its_quorum_is_lost_in_time() {
    let ensemble = ensemble().await;
    let leader = ensemble.leader();
    let holding = client(&ensemble, &[leader]).await;
    let other = client(&ensemble, &ensemble.followers()).await;
    let holder = lock(&holding, "a", TTL).acquire().await.unwrap();
    let waiting = behind(&other).await;
    tokio::time::sleep(TTL).await;
    ensemble.isolate(leader);
    assert_lost_before_the_next_grant(holder, waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_a_holder_whose_server_is_frozen_is_lost_in_time() {
    let mut ensemble = ensemble().await;
    let follower = ensemble.followers()[0];
    let others: Vec<_> = (0..3).filter(|n| *n != follower).collect();
    let holding = client(&ensemble, &[follower]).await;
    let other = client(&ensemble, &others).await;
    let holder = lock(&holding, "a", TTL).acquire().await.unwrap();
    let waiting = behind(&other).await;
    tokio::time::sleep(TTL).await;
    ensemble.members[follower].freeze();
    assert_lost_before_the_next_grant(holder, waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_a_lease_and_a_contender_outlive_the_death_of_the_leader() {
    let mut ensemble = ensemble().await;
    let leader = ensemble.leader();
    let client = Client::connect(&ensemble.url()).await.unwrap();
    let ttl = ms(30_000);
    let holder = lock(&client, "a", ttl).acquire().await.unwrap();
    let waiting = queue_up(&client, &lock(&client, "a", ttl)).await;
    ensemble.members[leader].kill();
    let lease = soon("another lease", lock(&client, "b", ttl).acquire()).await.unwrap();
    assert!(holder.is_held() && lease.token() > holder.token());
    holder.release().await.unwrap();
    soon("the hand-over", waiting).await.unwrap().release().await.unwrap();
}
