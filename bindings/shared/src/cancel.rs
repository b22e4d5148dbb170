//! Cancelling a call from another thread.

use std::future::Future;

use tokio_util::sync::CancellationToken;

/// A wish to end one call: for [`Lock::acquire_unless`](fencelock::Lock::acquire_unless), which
/// then withdraws and returns `Cancelled`. Cheap to clone; clones are the same wish.
///
/// A call that had succeeded by then is not changed by it, nor one that succeeds at once because
/// the lock is free: what it gave stays the caller's.
#[derive(Clone, Debug, Default)]
pub struct Cancel(CancellationToken);

impl Cancel {
    /// One that nobody has made yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels. From any thread, as often as you like; never blocks.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether [`cancel`](Cancel::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Completes when it is cancelled; at once if it was before. Refers to nothing.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.clone().cancelled_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use fencelock::{ClientOptions, ErrorKind};

    use crate::{OpenClient, Runtime};

    #[test]
    fn g7_a_wait_is_cancelled_from_another_thread_and_leaves_nothing() {
        let runtime = Runtime::current().unwrap();
        let url = Some("memory:".to_owned());
        let client = runtime.block_on(OpenClient::connect(url, ClientOptions::new())).unwrap();
        let lock = client.lock("a").unwrap();
        let lease = runtime.block_on(lock.acquire()).unwrap();
        let cancel = Cancel::new();
        let waiter = {
            let (lock, cancelled) = (lock.clone(), cancel.cancelled());
            std::thread::spawn(move || {
                let wait = lock.acquire_unless(None, cancelled);
                Runtime::current().unwrap().block_on(wait).map(drop)
            })
        };
        let waiting = || runtime.block_on(client.inspect("a")).unwrap().queue.len();
        while waiting() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!cancel.is_cancelled());
        cancel.cancel();
        cancel.clone().cancel();
        assert!(cancel.is_cancelled());
        assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(waiting(), 0);
        let error = runtime.block_on(lock.acquire_unless(None, cancel.cancelled())).map(drop);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled, "cancelled before it began");
        assert_eq!(waiting(), 0);
        runtime.block_on(lease.release()).unwrap();
    }
}
