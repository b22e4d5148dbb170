//! The ends of calls, on their way into one event loop: that of the main thread, or of a worker.
//!
//! They are queued here, and a threadsafe function that carries nothing rings for them. What such a
//! function itself carries is leaked when its environment ends first, and a leaked lease would be
//! renewed for ever.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use fencelock::Result;
use fencelock_shared::{OpenClient, Runtime, panic, runtime};
use futures_util::FutureExt;
use futures_util::future::join_all;
use napi::bindgen_prelude::{Either6, Function, Unknown};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status, sys};
use napi_derive::napi;
use tokio::sync::Notify;

use crate::errors::{Failure, Thrown, internal, thrown};
use crate::value::{Reply, Value};
use crate::warnings;

type Work = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

/// The number of a call: exact in JavaScript, and never used again.
pub(crate) type Number = f64;

/// Rings in the event loop, without keeping it alive by itself.
type Bell = ThreadsafeFunction<(), Unknown<'static>, (), Status, false, true>;

/// One operation of the core, not begun yet.
pub(crate) struct Call {
    work: Work,
    /// Whether somebody waits for its end, so that the process must not end before.
    awaited: bool,
}

impl Call {
    pub(crate) fn new(work: impl Future<Output = Result<Value>> + Send + 'static) -> Self {
        Call { work: Box::pin(panic::catch_async(work)), awaited: true }
    }

    /// A call that only watches: the process may end meanwhile.
    pub(crate) fn watching(work: impl Future<Output = Result<Value>> + Send + 'static) -> Self {
        Call { awaited: false, ..Call::new(work) }
    }
}

/// The queue of one environment.
pub(crate) struct Queue {
    bell: Bell,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The environment has ended; nobody takes anything any more.
    closed: bool,
    ended: Vec<(Number, bool, Result<Value>)>,
    warnings: Vec<Warning>,
    /// Those that this environment has connected: it closes them when it ends.
    clients: Vec<Weak<OpenClient>>,
}

impl Queue {
    fn push(&self, number: Number, awaited: bool, outcome: Result<Value>) {
        self.add(|state| state.ended.push((number, awaited, outcome)));
    }

    /// Whether the warning will be shown.
    pub(crate) fn warn(&self, fault: bool, message: &str) -> bool {
        self.add(|state| state.warnings.push(Warning { fault, message: message.to_owned() }))
    }

    /// Adds something and rings. What is not taken is dropped, a lease is released by that.
    fn add(&self, add: impl FnOnce(&mut State)) -> bool {
        let mut state = self.state();
        if state.closed {
            return false;
        }
        let rung = !state.ended.is_empty() || !state.warnings.is_empty();
        add(&mut state);
        drop(state);
        rung || self.bell.call((), ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok
    }

    /// The environment ends: what it has connected is closed, which releases its leases.
    fn close(&self) {
        let State { ended, clients, .. } =
            std::mem::replace(&mut *self.state(), State { closed: true, ..State::default() });
        drop(ended);
        let clients: Vec<_> = clients.iter().filter_map(Weak::upgrade).collect();
        if let Some(runtime) = Runtime::existing().filter(|_| !clients.is_empty()) {
            let closing = join_all(clients.iter().map(|client| client.close()));
            let closing = async { tokio::time::timeout(runtime::CLOSING, closing).await };
            let _ = runtime.block_on(closing);
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a call that was begun.
#[napi(object, object_from_js = false)]
pub struct Outcome {
    /// The number of the call.
    pub number: Number,
    /// What it gave, if it did not fail.
    pub value: Reply,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// A warning for `process.emitWarning`.
#[napi(object, object_from_js = false)]
pub struct Warning {
    /// Whether it is about a fault of this library.
    pub fault: bool,
    /// One line.
    pub message: String,
}

/// What has come since the last time.
#[napi(object, object_from_js = false)]
pub struct News {
    /// The calls that have ended.
    pub ended: Vec<Outcome>,
    /// Not there if there are none, as nearly always.
    pub warnings: Option<Vec<Warning>>,
}

/// The bridge of one environment. All its methods run on that environment's thread.
#[napi]
pub struct Bridge {
    queue: Arc<Queue>,
    next: Cell<Number>,
    /// Calls under way that somebody waits for; the event loop lives as long as there are any.
    awaited: Cell<usize>,
}

#[napi]
impl Bridge {
    /// `ring` is called in the event loop when `drain` has something.
    #[napi(constructor)]
    pub fn new(env: Env, ring: Function<'_, (), Unknown<'static>>) -> Result<Self, Thrown> {
        let bell = ring.build_threadsafe_function().weak::<true>().build();
        let bell = bell.map_err(|e| internal(&e))?;
        let queue = Arc::new(Queue { bell, state: Mutex::default() });
        warnings::listen(Arc::downgrade(&queue));
        let hook = env.add_env_cleanup_hook(queue.clone(), |queue| queue.close());
        hook.map_err(|e| internal(&e))?;
        Ok(Bridge { queue, next: Cell::new(1.0), awaited: Cell::new(0) })
    }

    /// What has come since the last time. All of it at once: nothing rings for what is added to
    /// something that is still there.
    #[napi(catch_unwind)]
    pub fn drain(&self, env: Env) -> News {
        let (ended, warnings) = {
            let mut state = self.queue.state();
            (std::mem::take(&mut state.ended), std::mem::take(&mut state.warnings))
        };
        let awaited = ended.iter().filter(|(_, awaited, _)| *awaited).count();
        self.awaited.set(self.awaited.get() - awaited);
        if awaited > 0 && self.awaited.get() == 0 {
            self.keep_alive(&env, false);
        }
        let outcome = |(number, _, outcome): (Number, bool, Result<Value>)| match outcome {
            Ok(value) => Outcome { number, value: self.reply(value), failure: None },
            Err(error) => Outcome { number, value: None, failure: Some((&error).into()) },
        };
        News {
            ended: ended.into_iter().map(outcome).collect(),
            warnings: Some(warnings).filter(|warnings| !warnings.is_empty()),
        }
    }
}

impl Bridge {
    /// Makes a call on this thread, or begins it; then the reply is its number.
    pub(crate) fn make(&self, env: Env, wait: bool, call: Call) -> Result<Reply, Thrown> {
        let outcome = if wait { self.wait(call) } else { self.begin(&env, call).map(Err) };
        match outcome {
            Ok(Ok(value)) => Ok(self.reply(value)),
            Ok(Err(number)) => Ok(Some(Either6::A(number))),
            Err(error) => Err(thrown(&error)),
        }
    }

    fn wait(&self, call: Call) -> Result<std::result::Result<Value, Number>> {
        let work = call.work;
        match Runtime::current() {
            Ok(runtime) => {
                let _call = runtime.enter();
                runtime.block_on(work).map(Ok)
            }
            // The process is ending: only what needs no waiting still has an answer, such as the
            // release of a lease that has been released.
            Err(closed) => {
                let now = async { work.now_or_never() };
                let outcome = Runtime::existing().and_then(|runtime| runtime.block_on(now));
                outcome.unwrap_or(Err(closed)).map(Ok)
            }
        }
    }

    fn begin(&self, env: &Env, call: Call) -> Result<Number> {
        let runtime = Runtime::current()?;
        let Call { work, awaited } = call;
        let number = self.next.get();
        self.next.set(number + 1.0);
        let queue = self.queue.clone();
        drop(runtime.spawn(async move { queue.push(number, awaited, work.await) }));
        if awaited {
            if self.awaited.get() == 0 {
                self.keep_alive(env, true);
            }
            self.awaited.set(self.awaited.get() + 1);
        }
        Ok(number)
    }

    fn reply(&self, value: Value) -> Reply {
        if let Value::Client(client) = &value {
            let clients = &mut self.queue.state().clients;
            clients.retain(|client| client.strong_count() > 0);
            clients.push(Arc::downgrade(client));
        }
        value.into()
    }

    fn keep_alive(&self, env: &Env, keep: bool) {
        let bell = self.queue.bell.raw();
        // SAFETY: `env` is that of the caller, whose thread this is, and the bell is alive: its
        // environment is, and we own a reference to it. Both are refused at worst.
        let _ = unsafe {
            if keep {
                sys::napi_ref_threadsafe_function(env.raw(), bell)
            } else {
                sys::napi_unref_threadsafe_function(env.raw(), bell)
            }
        };
    }
}

/// Cancels an acquire.
#[napi]
pub struct Cancel(Arc<Notify>);

#[napi]
impl Cancel {
    /// Not cancelled yet.
    #[napi(constructor)]
    #[allow(clippy::new_without_default)] // for JavaScript
    pub fn new() -> Self {
        Cancel(Arc::new(Notify::new()))
    }

    /// Ends the acquire, soon; it withdraws first.
    #[napi]
    pub fn cancel(&self) {
        self.0.notify_one();
    }
}

impl Cancel {
    pub(crate) fn cancelled(this: Option<&Self>) -> impl Future<Output = ()> + Send + 'static {
        let notify = this.map(|cancel| cancel.0.clone());
        async move {
            match notify {
                Some(notify) => notify.notified().await,
                None => std::future::pending().await,
            }
        }
    }
}
