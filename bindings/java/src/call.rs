//! One operation of the core. What is done at once, or within the moment that the calling thread has,
//! is answered on that thread; what has to wait longer goes on in the runtime, and its end is queued
//! for Java under the call's ticket.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use fencelock::{Error, ErrorKind, LockInfo, Result};
use fencelock_shared::{Cancel, OpenClient, Runtime, handles, panic};
use futures_util::future::{Either, poll_fn, select};
use jni::errors::ThrowRuntimeExAndDefault;
use jni::objects::{JByteArray, JClass, JLongArray};
use jni::sys::jlong;
use jni::{Env, EnvUnowned};

use crate::bytes::Writer;
use crate::client::Client;
use crate::lease::Lease;
use crate::{completions, explain};

/// What Java finds in the first of the two numbers of an answer.
const LATER: jlong = -1;
const DONE: jlong = 0;
const FAILED: jlong = 1;

/// What an operation gives.
pub(crate) enum Value {
    Nothing,
    Number(i64),
    Client(Arc<OpenClient>),
    Lease(Arc<OpenClient>, fencelock::Lease),
    Infos(Vec<LockInfo>),
}

/// Completes when Java does not want the result any more.
pub(crate) type Cancelled = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The end of an operation, in what crosses the border.
pub(crate) struct Done {
    pub(crate) status: jlong,
    pub(crate) number: jlong,
    pub(crate) details: Option<Vec<u8>>,
}

impl From<Result<Value>> for Done {
    fn from(outcome: Result<Value>) -> Self {
        let done = |number, details| Done { status: DONE, number, details };
        let handle = |handle: Result<u64>| handle.map(|handle| done(handle as jlong, None));
        let outcome = outcome.and_then(|value| match value {
            Value::Nothing => Ok(done(0, None)),
            Value::Number(number) => Ok(done(number, None)),
            Value::Client(client) => handle(handles::add(Arc::new(Client(client)))),
            Value::Lease(client, lease) => {
                handle(handles::add(Arc::new(Lease::new(lease, client))))
            }
            Value::Infos(infos) => Ok(done(infos.len() as jlong, Some(Writer::infos(infos)))),
        });
        outcome.unwrap_or_else(|error| Done {
            status: FAILED,
            number: 0,
            details: Some(explain(&error)),
        })
    }
}

static UNDER_WAY: Mutex<BTreeMap<jlong, Cancel>> = Mutex::new(BTreeMap::new());

/// Begins an operation that ends by itself, soon, when the future that it is given completes. `out`
/// says for how many nanoseconds the calling thread may be kept.
pub(crate) fn begin<'l, F, W>(
    env: &mut EnvUnowned<'l>,
    out: &JLongArray<'l>,
    ticket: jlong,
    work: F,
) -> JByteArray<'l>
where
    F: FnOnce(&mut Env<'l>, Cancelled) -> Result<W>,
    W: Future<Output = Result<Value>> + Send + 'static,
{
    env.with_env(|env| {
        let mut moment = [0];
        out.get_region(env, 0, &mut moment)?;
        let moment = Duration::from_nanos(moment[0].try_into().unwrap_or(0));
        let cancel = Cancel::new();
        let cancelled = Box::pin(cancel.cancelled());
        let done = match panic::catch(|| work(env, cancelled)) {
            Ok(work) => start(ticket, cancel, moment, work),
            Err(error) => Some(Err(error).into()),
        };
        answer(env, out, done)
    })
    .resolve::<ThrowRuntimeExAndDefault>()
}

/// An operation that is dropped when Java does not want its result any more.
pub(crate) async fn unless<T>(
    cancelled: Cancelled,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    match select(cancelled, Box::pin(work)).await {
        Either::Left(_) => Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
        Either::Right((outcome, _)) => outcome,
    }
}

fn start<W>(ticket: jlong, cancel: Cancel, moment: Duration, work: W) -> Option<Done>
where
    W: Future<Output = Result<Value>> + Send + 'static,
{
    let runtime = match Runtime::current() {
        Ok(runtime) => runtime,
        Err(closed) => return Some(Err(closed).into()),
    };
    let mut work = Box::pin(panic::catch_async(work));
    if let Some(outcome) = within(runtime, moment, work.as_mut()) {
        return Some(outcome.into());
    }
    under_way(|calls| calls.insert(ticket, cancel));
    drop(runtime.spawn(async move {
        let outcome = work.await;
        under_way(|calls| calls.remove(&ticket));
        completions::push(ticket, outcome.into());
    }));
    None
}

/// What the work gives, if it does on the calling thread within a moment. An uncontended acquire or
/// release does, and is spared the ways to the runtime's thread, to Java's and back.
///
/// Waits without tokio's timer, which would wake the runtime's thread to look at it.
fn within<T>(
    runtime: &Runtime,
    moment: Duration,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let started = Instant::now();
    loop {
        let look =
            |_: &mut Context<'_>| Poll::Ready(work.as_mut().poll(&mut Context::from_waker(&waker)));
        if let Poll::Ready(outcome) = runtime.block_on(poll_fn(look)) {
            return Some(outcome);
        }
        let left = moment.checked_sub(started.elapsed()).filter(|left| !left.is_zero())?;
        thread::park_timeout(left);
    }
}

/// Wakes a thread that waits in [`within`].
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

fn under_way<T>(change: impl FnOnce(&mut BTreeMap<jlong, Cancel>) -> T) -> T {
    change(&mut UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Puts status and number into `out`, and returns the details.
pub(crate) fn answer<'l>(
    env: &mut Env<'l>,
    out: &JLongArray<'l>,
    done: Option<Done>,
) -> jni::errors::Result<JByteArray<'l>> {
    let Some(done) = done else {
        out.set_region(env, 0, &[LATER, 0])?;
        return Ok(JByteArray::default());
    };
    out.set_region(env, 0, &[done.status, done.number])?;
    match done.details {
        Some(details) => env.byte_array_from_slice(&details),
        None => Ok(JByteArray::default()),
    }
}

/// Ends a call that has not ended; its end is queued as of every other.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_fencelock_Native_cancel(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    ticket: jlong,
) {
    if let Some(cancel) = under_way(|calls| calls.get(&ticket).cloned()) {
        cancel.cancel();
    }
}
