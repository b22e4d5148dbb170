//! G9: in a forked child, clients and leases of the parent are foreign. Here and not in core,
//! because forking needs unsafe code.

// A test that cannot go on has failed; the lint's own exception covers only #[test] functions.
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fencelock::ErrorKind;
use fencelock::blocking::Client;
use fencelock_shared::handles::{self, Handled};

/// Runs `work` in a forked child; whether it ended without a panic.
fn in_child(work: impl FnOnce()) -> bool {
    // SAFETY: the child has this thread only. It uses nothing that another thread of the parent
    // may have locked but the allocator, which glibc makes usable in a child, and it leaves
    // without running what the parent registered for its exit.
    match unsafe { libc::fork() } {
        -1 => panic!("cannot fork"),
        0 => {
            let ended = catch_unwind(AssertUnwindSafe(work));
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
        child => {
            let mut status = 0;
            // SAFETY: `child` is ours and not waited for yet.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            status == 0
        }
    }
}

fn a_child_touches_nothing_of_its_parent(url: &str) {
    let client = Client::connect(url).unwrap();
    let lease = client.lock("g9").unwrap().acquire().unwrap();
    let ended_well = in_child(|| {
        assert!(!lease.is_held() && !lease.is_lost());
        for refused in [
            lease.check(),
            lease.release(),
            client.lock("other").unwrap().acquire().map(drop),
            client.lock("other").unwrap().try_acquire().map(drop),
        ] {
            assert_eq!(refused.unwrap_err().kind().code(), "FORKED");
        }
        // SAFETY: the copies in the parent are other values; these are this child's to drop.
        drop(unsafe { std::ptr::read(&lease) });
        drop(unsafe { std::ptr::read(&client) });
    });
    assert!(ended_well);
    assert!(lease.is_held());
    let info = client.inspect("g9").unwrap();
    assert_eq!(info.token, Some(lease.token()));
    lease.release().unwrap();
}

fn a_new_client_in_the_child_just_works(url: &str) {
    let client = Client::connect(url).unwrap();
    let lease = client.lock("g9 new").unwrap().acquire().unwrap();
    let token = lease.token();
    let ended_well = in_child(|| {
        let client = Client::connect(url).unwrap();
        assert!(client.lock("g9 new").unwrap().try_acquire().unwrap().is_none());
        let own = client.lock("g9 of the child").unwrap().acquire().unwrap();
        own.release().unwrap();
        client.close();
    });
    assert!(ended_well);
    assert!(lease.is_held());
    assert_eq!(client.inspect("g9 new").unwrap().token, Some(token));
    lease.release().unwrap();
}

/// The shared server of `make test`.
fn redis_url() -> String {
    let url = std::env::var("FENCELOCK_TEST_REDIS_URL").expect(
        "FENCELOCK_TEST_REDIS_URL is not set; `make test` sets it, as does `tests/services/run redis COMMAND`",
    );
    format!("{url}?fl.prefix=g9-{}:", std::process::id())
}

#[test]
fn g9_a_child_touches_nothing_of_its_parent_memory() {
    a_child_touches_nothing_of_its_parent("memory:");
}

#[test]
fn g9_a_child_touches_nothing_of_its_parent_file() {
    let directory = tempfile::tempdir().unwrap();
    a_child_touches_nothing_of_its_parent(&format!("file://{}/l", directory.path().display()));
}

#[test]
fn g9_a_child_touches_nothing_of_its_parent_redis() {
    a_child_touches_nothing_of_its_parent(&redis_url());
}

#[test]
fn g9_a_new_client_in_the_child_just_works_file() {
    let directory = tempfile::tempdir().unwrap();
    a_new_client_in_the_child_just_works(&format!("file://{}/l", directory.path().display()));
}

#[test]
fn g9_a_new_client_in_the_child_just_works_redis() {
    a_new_client_in_the_child_just_works(&redis_url());
}

struct Number(u32);

impl Handled for Number {
    const WHAT: &'static str = "number";
}

#[test]
fn g9_handles_of_the_parent_are_foreign_in_a_child() {
    let ours = handles::add(Arc::new(Number(1))).unwrap();
    let ended_well = in_child(|| {
        assert_eq!(handles::get::<Number>(ours).map(drop).unwrap_err().kind(), ErrorKind::Forked);
        assert_eq!(handles::take::<Number>(ours).map(drop).unwrap_err().kind(), ErrorKind::Forked);
        let own = handles::add(Arc::new(Number(2))).unwrap();
        assert_ne!(own, ours);
        assert_eq!(handles::get::<Number>(own).unwrap().0, 2);
        assert!(in_child(|| {
            for foreign in [ours, own] {
                let found = handles::get::<Number>(foreign).map(drop);
                assert_eq!(found.unwrap_err().kind(), ErrorKind::Forked);
            }
        }));
        handles::take::<Number>(own).unwrap();
    });
    assert!(ended_well);
    assert_eq!(handles::take::<Number>(ours).unwrap().0, 1);
}
