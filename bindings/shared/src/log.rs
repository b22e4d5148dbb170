//! Warnings of core, on their way into the log of the host.
//!
//! They are raised on threads that must never wait for the host, in core's own locks even. So they
//! are queued, and a thread of its own hands them over, started with the first one.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span;
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Event, Level, Metadata};

use crate::runtime::Runtime;
use crate::{panic, signals};

/// More than this many unread warnings are dropped.
const QUEUE: usize = 256;

/// Hands one warning to the host's log. Runs on a thread of its own and may block.
pub type Handler = fn(Severity, &str);

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something that an operator may want to know.
    Warning,
    /// A fault of this library.
    Error,
}

static HANDLER: OnceLock<Handler> = OnceLock::new();

/// Sends all warnings of this process, and of processes forked from it, to `handler`.
pub fn install(handler: Handler) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = HANDLER.set(handler);
        // It fails only where a Rust host has set its own, which then shows our warnings.
        let _ = tracing::subscriber::set_global_default(Warnings);
    });
}

enum Item {
    Record(Severity, String),
    End(SyncSender<()>),
}

/// The queue of one process.
#[derive(Default)]
pub(crate) struct Log(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    sender: Option<SyncSender<Item>>,
    closed: bool,
}

impl Log {
    fn push(&self, severity: Severity, message: String) {
        let Some(&handler) = HANDLER.get() else { return };
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.closed {
            return;
        }
        if queue.sender.is_none() {
            let (sender, receiver) = sync_channel(QUEUE);
            let thread = std::thread::Builder::new().name("fencelock-log".to_owned());
            let work = move || {
                signals::block();
                hand_over(&receiver, handler);
            };
            if thread.spawn(work).is_ok() {
                queue.sender = Some(sender);
            }
        }
        if let Some(sender) = &queue.sender {
            let _ = sender.try_send(Item::Record(severity, message));
        }
    }

    /// Waits until what is queued has been handed over, at most `limit`, and ends the thread: it
    /// must not call into a host that is going away.
    pub(crate) fn close(&self, limit: Duration) {
        let sender = {
            let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            queue.closed = true;
            queue.sender.take()
        };
        if let Some(sender) = sender {
            let (done, ended) = sync_channel(1);
            if sender.try_send(Item::End(done)).is_ok() {
                let _ = ended.recv_timeout(limit);
            }
        }
    }

    pub(crate) fn reopen(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).closed = false;
    }
}

thread_local! {
    static HANDS_OVER: Cell<bool> = const { Cell::new(false) };
}

fn hand_over(queue: &Receiver<Item>, handler: Handler) {
    HANDS_OVER.set(true);
    for item in queue {
        match item {
            Item::Record(severity, message) => {
                // One that fails must not keep those after it from being heard.
                let _ = panic::catch(|| {
                    handler(severity, &message);
                    Ok(())
                });
            }
            Item::End(done) => {
                let _ = done.send(());
                return;
            }
        }
    }
}

/// The smallest subscriber: events of ours from warning upwards, as one line each; no spans.
struct Warnings;

impl Subscriber for Warnings {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::WARN
            && metadata.target().starts_with("fencelock")
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        // No runtime of this process, no host that listens (and in a forked child, no locks that
        // a thread of the parent may have held).
        let Some(runtime) = Runtime::existing() else { return };
        let severity = match *event.metadata().level() {
            Level::ERROR => Severity::Error,
            _ => Severity::Warning,
        };
        if severity == Severity::Error && HANDS_OVER.get() {
            // A fault of the handler, which would be asked to log it, for ever.
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        runtime.log.push(severity, line.finish());
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// `message (field=value, field=value)`.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn finish(self) -> String {
        match self.fields.is_empty() {
            true => self.message,
            false => format!("{} ({})", self.message, self.fields),
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String cannot fail.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            let comma = if self.fields.is_empty() { "" } else { ", " };
            write!(self.fields, "{comma}{}={value:?}", field.name())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    static SEEN: Mutex<Option<mpsc::Sender<(Severity, String)>>> = Mutex::new(None);

    #[test]
    fn warnings_reach_the_handler_in_one_line_each() {
        let (sender, seen) = mpsc::channel();
        *SEEN.lock().unwrap() = Some(sender);
        install(|severity, message| {
            let _ = SEEN.lock().unwrap().as_ref().unwrap().send((severity, message.to_owned()));
            assert_ne!(message, "broken");
        });
        Runtime::current().unwrap();
        tracing::warn!(lock = %"a/b", token = 7_u64, "lease lost");
        tracing::info!("not shown");
        tracing::error!("broken");
        let limit = Duration::from_secs(10);
        let (severity, message) = seen.recv_timeout(limit).unwrap();
        assert_eq!(severity, Severity::Warning);
        assert_eq!(message, "lease lost (lock=a/b, token=7)");
        // At this one the handler panics, and is asked again.
        assert_eq!(seen.recv_timeout(limit).unwrap(), (Severity::Error, "broken".to_owned()));
        tracing::warn!("after it");
        assert_eq!(seen.recv_timeout(limit).unwrap(), (Severity::Warning, "after it".to_owned()));
    }
}
