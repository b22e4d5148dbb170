//! What a server does, command by command and with its own time stamps (MONITOR).

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// One command that the server ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Microseconds since 1970, by the server's clock.
    pub at: u64,
    /// Run by a script.
    pub in_script: bool,
    /// The command and its arguments.
    pub words: Vec<String>,
}

/// A connection in MONITOR mode, read by a thread so that the server never has to wait for us.
pub struct Monitor {
    socket: TcpStream,
    commands: Receiver<Command>,
}

impl Monitor {
    /// Sees every command from now on.
    pub fn start(port: u16) -> Result<Self> {
        let mut socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.write_all(b"MONITOR\r\n")?;
        let mut lines = BufReader::new(socket.try_clone()?);
        let mut answer = String::new();
        lines.read_line(&mut answer)?;
        ensure!(answer.starts_with("+OK"), "MONITOR was refused: {answer}");
        let (sender, commands) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let command = parse(&String::from_utf8_lossy(&line));
                line.clear();
                if command.is_some_and(|command| sender.send(command).is_err()) {
                    return;
                }
            }
        });
        Ok(Monitor { socket, commands })
    }

    /// Everything seen and not taken yet.
    pub fn take(&self) -> Vec<Command> {
        self.commands.try_iter().collect()
    }

    /// Takes commands until one has `word` among its words: a mark that the caller sent.
    pub fn take_until(&self, word: &str) -> Result<Vec<Command>> {
        let mut taken = Vec::new();
        loop {
            let command = self.commands.recv_timeout(Duration::from_secs(20));
            let command = command.context("MONITOR has ended")?;
            if command.words.iter().any(|w| w == word) {
                return Ok(taken);
            }
            taken.push(command);
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

/// `+1700000000.123456 [0 127.0.0.1:50000] "GET" "a"`; scripts have `lua` for an address.
fn parse(line: &str) -> Option<Command> {
    let (stamp, rest) = line.strip_prefix('+')?.split_once(" [")?;
    let (seconds, micros) = stamp.split_once('.')?;
    let at = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
    let (source, rest) = rest.split_once("] ")?;
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match (&mut word, c) {
            (None, '"') => word = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') => words.extend(word.take()),
            (Some(text), '\\') => text.push(chars.next()?),
            (Some(text), c) => text.push(c),
        }
    }
    Some(Command { at, in_script: source.ends_with(" lua"), words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_monitor_is_understood() {
        let words = |words: &[&str]| words.iter().map(|w| w.to_string()).collect();
        assert_eq!(
            parse("+12.000034 [0 127.0.0.1:1] \"SET\" \"a \\\"b\\\\\" \"\"\r\n"),
            Some(Command {
                at: 12_000_034,
                in_script: false,
                words: words(&["SET", "a \"b\\", ""])
            })
        );
        let script = parse("+1.5 [0 lua] \"DEL\" \"x\"\r\n");
        assert!(script.is_some_and(|c| c.in_script && c.words == ["DEL", "x"]));
        assert_eq!(parse("+OK\r\n"), None);
    }
}
