//! How often the network is crossed, with one that takes its time.

use super::*;

/// Each way; far above what a busy machine adds.
const DELAY: Duration = ms(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_a_free_lock_costs_one_round_trip_and_its_release_another() {
    let scene = Scene::new().await;
    // The session, the nodes above, and the right to delete are there from now on.
    let (first, _) = scene.hold(TTL).await;
    scene.release(&first).await;
    scene.proxy.delay(DELAY);
    let mut least = [f64::MAX; 2];
    // The best of a few: the machine may be busy.
    for _ in 0..3 {
        let place = place(TTL);
        let start = Instant::now();
        granted(scene.intro(&place).await);
        let acquired = Instant::now();
        scene.release(&place).await;
        let taken = [acquired - start, acquired.elapsed()];
        for (least, taken) in least.iter_mut().zip(taken) {
            *least = least.min(taken.as_secs_f64() / (DELAY * 2).as_secs_f64());
        }
    }
    assert!(least.iter().all(|trips| (1.0..1.6).contains(trips)), "round trips: {least:?}");
}

/// What the time on a loopback device does not show: there the kernel acknowledges a request at once,
/// however long the proxy keeps it.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g4_no_connection_holds_a_request_back_until_the_one_before_is_acknowledged() {
    use super::super::nodelay::is_set;

    let scene = Scene::new().await;
    let set = async || {
        until("TCP_NODELAY", || async { is_set(scene.proxy.address()).unwrap() == Some(true) })
            .await;
    };
    set().await;
    let (_, _) = scene.hold(ms(1_000)).await;
    set().await;
    scene.proxy.log();
    scene.proxy.cut();
    until("a new connection", || async {
        scene.proxy.log().contains(&proxy::Frame::Answer(proxy::Op::Connect))
    })
    .await;
    set().await;
}
