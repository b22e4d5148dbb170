//! A runtime of the fixtures, beside that of the test, which they must neither block nor need.

use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

pub(crate) static BACKGROUND: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

/// What the work comes to; the calling thread waits for it.
pub(crate) fn blocking<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let (answer, answers) = std::sync::mpsc::channel();
    BACKGROUND.spawn(async move { answer.send(work.await) });
    answers.recv().expect("the work panicked")
}
