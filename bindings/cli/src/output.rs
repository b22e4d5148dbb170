//! What is printed: texts for people, JSON for programs, and complaints.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use fencelock::LockInfo;
use fencelock_shared::duration::to_millis;
use serde::Serialize;

use crate::exit::Failure;

/// A lock in JSON: the names of the fields are the same in every language, and stay.
#[derive(Serialize)]
pub(crate) struct Shown<'a> {
    name: &'a str,
    state: &'static str,
    owner: Option<&'a str>,
    token: Option<u64>,
    held_ms: Option<i64>,
    ttl_left_ms: Option<i64>,
    metadata: Option<&'a str>,
    queue: Vec<Waiter<'a>>,
}

#[derive(Serialize)]
struct Waiter<'a> {
    owner: &'a str,
    waiting_ms: i64,
    metadata: Option<&'a str>,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(info: &'a LockInfo) -> Self {
        let millis = |time: Option<Duration>| time.map(to_millis);
        let queue = info.queue.iter().map(|waiter| Waiter {
            owner: &waiter.owner,
            waiting_ms: to_millis(waiter.waiting),
            metadata: waiter.metadata.as_deref(),
        });
        Shown {
            name: &info.name,
            state: info.state.as_str(),
            owner: info.owner.as_deref(),
            token: info.token.map(|token| token.get()),
            held_ms: millis(info.held),
            ttl_left_ms: millis(info.ttl_left),
            metadata: info.metadata.as_deref(),
            queue: queue.collect(),
        }
    }
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(value).map_err(|e| Failure::system("JSON", e))?;
    print(&format!("{line}\n"))
}

/// Prints a text as it is. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::system("standard output", error))
        }
        _ => Ok(()),
    }
}

/// For how long this process waits for somebody who does not read what it says.
const PATIENCE: Duration = Duration::from_millis(500);

/// One line on standard error.
pub(crate) fn complain(message: &str) {
    begin_to_complain(message).wait();
}

/// The same, beside what goes on: a pipe may be full, and a terminal be held by Ctrl-S.
pub(crate) fn begin_to_complain(message: &str) -> Complaint {
    let line = format!("fencelock: {}\n", plain(message));
    let (said, heard) = channel();
    let say = move || {
        // In one call, so that lines of several processes do not mix.
        let _ = io::stderr().write_all(line.as_bytes());
        let _ = said.send(());
    };
    // Where there can be no thread, it is dropped unsaid.
    let _ = thread::Builder::new().name("complaint".to_owned()).spawn(say);
    Complaint(heard)
}

/// A line that is being written.
pub(crate) struct Complaint(Receiver<()>);

impl Complaint {
    /// Until it is written, or nobody seems to read it.
    pub(crate) fn wait(self) {
        let _ = self.0.recv_timeout(PATIENCE);
    }
}

/// Asks on the terminal; none where there is nobody to ask.
pub(crate) fn ask(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let _ = write!(io::stderr(), "{} [y/N] ", plain(question));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Anybody may choose a name and say what he likes of himself: without line breaks, and without
/// what a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().fold(String::new(), |mut plain, c| {
        if c.is_control() || turns_text_around(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
        plain
    })
}

/// The marks of direction: they make a terminal show a name as another one.
fn turns_text_around(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_and_not_done() {
        assert_eq!(plain("a\n\u{1b}[2Jé"), "a\\n\\u{1b}[2Jé");
        assert_eq!(plain("a\u{202e}b\u{2066}"), "a\\u{202e}b\\u{2066}");
    }
}
