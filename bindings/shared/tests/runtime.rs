//! The runtime slot: what exit does. A forked child cannot be made without unsafe code here; the
//! Python tests do that.

use std::time::{Duration, Instant};

use fencelock::{ClientOptions, ErrorKind};
use fencelock_shared::{OpenClient, Runtime, runtime};

#[test]
fn g7_exit_releases_leases_ends_waits_and_refuses_new_work() {
    let slot = Runtime::current().unwrap();
    let url = || Some("memory:exit".to_owned());
    let client = slot.block_on(OpenClient::connect(url(), ClientOptions::new())).unwrap();
    let lock = client.lock("a").unwrap();
    let lease = slot.block_on(lock.acquire()).unwrap();
    let waiter = std::thread::spawn(move || {
        let slot = Runtime::current().unwrap();
        let _call = slot.enter();
        slot.block_on(lock.acquire()).map(drop)
    });
    while slot.block_on(client.inspect("a")).unwrap().queue.is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }

    let start = Instant::now();
    runtime::close_all();
    assert!(start.elapsed() < Duration::from_millis(600), "{:?}", start.elapsed());
    assert!(!lease.is_held() && !lease.is_lost());
    assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(Runtime::current().err().unwrap().kind(), ErrorKind::Closed);

    runtime::reopen();
    let again = Runtime::current().unwrap();
    let client = again.block_on(OpenClient::connect(url(), ClientOptions::new())).unwrap();
    let lease = again.block_on(client.lock("a").unwrap().try_acquire()).unwrap();
    assert!(lease.is_some(), "released at exit");
}
