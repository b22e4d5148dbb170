//! What is printed: texts for people, JSON for programs, and complaints.

use std::io::{self, IsTerminal, Write};
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

/// One line on standard error.
pub(crate) fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "fencelock: {}", plain(message));
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
        if c.is_control() {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
        plain
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_and_not_done() {
        assert_eq!(plain("a\n\u{1b}[2Jé"), "a\\n\\u{1b}[2Jé");
    }
}
