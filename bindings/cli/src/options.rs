//! The options, as clap reads them.

use std::ffi::OsString;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use fencelock::LockOptions;

use crate::exit::{CODES, CONFLICT, End, Failure, RUN_CODES, SUCCESS, USAGE};
use crate::output;
use crate::time;

/// Run a command while holding a distributed lock, and look after locks.
///
/// The lock is kept in Redis, MongoDB or ZooKeeper, for processes of any host, or in files, for the
/// processes of one machine.
#[derive(Parser)]
#[command(name = "fencelock", version, after_help = codes(&[CODES]), after_long_help = codes(&[CODES]))]
pub(crate) struct Options {
    /// Where the lock is kept: redis://host/, mongodb://host/, zookeeper://host/, file:///dir
    ///
    /// Without it the environment variable FENCELOCK_URL says so, and without that files of this
    /// machine and user: /var/tmp/fencelock-UID. What stands on a command line is seen by all users
    /// of the machine: a URL with a password belongs into FENCELOCK_URL.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a command while holding the lock
    ///
    /// The command gets the lock's name in FENCELOCK_NAME, and the fencing token in FENCELOCK_TOKEN: a
    /// resource that refuses tokens lower than the highest it has seen is safe even from a command that
    /// was stopped and goes on after its lock was lost. The lock is renewed while the command runs, and
    /// released when it ends, whatever it left in the background.
    ///
    /// If the lock is lost, the command and what it started get TERM, and KILL after --grace.
    Run(Run),
    /// List the locks that are held or waited for
    Ls(Ls),
    /// Show who holds a lock and who waits for it
    Inspect(Inspect),
    /// End the lease of whoever holds a lock
    ///
    /// The holder learns of it at its next renewal, a third of its ttl later at most. Until then
    /// two may believe that they hold the lock: for emergencies only.
    Break(Break),
    /// Wait until a lock is free
    ///
    /// It takes a place in the queue like everybody else, and gives the lock back as soon as it
    /// gets it: all who came before are done then. Somebody who came later may hold it already.
    Wait(Wait),
    /// Print a completion script for a shell
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Print a page of the manual, in roff
    Man {
        /// Of which command; without one, of fencelock itself
        command: Option<String>,
    },
}

/// How long to wait, with the letters of flock(1).
#[derive(Args)]
pub(crate) struct Patience {
    /// Fail rather than wait
    #[arg(short, long, visible_alias = "nb")]
    nonblock: bool,

    /// Fail if the lock is not obtained within SECS; 0.5 is half a second, 0 the same as -n
    #[arg(short, long, visible_alias = "timeout", value_name = "SECS", value_parser = time::parse, allow_hyphen_values = true)]
    wait: Option<Duration>,

    /// Exit code when -n or -w fails
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = CONFLICT)]
    pub(crate) conflict_exit_code: u8,
}

impl Patience {
    /// None = for ever, zero = one attempt.
    pub(crate) fn limit(&self) -> Option<Duration> {
        if self.nonblock { Some(Duration::ZERO) } else { self.wait }
    }
}

#[derive(Args)]
#[command(args_override_self = true, after_help = codes(&[RUN_CODES, CODES]), after_long_help = codes(&[RUN_CODES, CODES]))]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) patience: Patience,

    /// For how long the lock stays held when nobody renews it: after a crash, others wait this
    /// long. TIME is a number with ms, s, m, h, d or no unit (seconds)
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time::parse, allow_hyphen_values = true)]
    ttl: Duration,

    /// Give the lock up, and stop the command, when it has been held for this long
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true)]
    max_hold: Option<Duration>,

    /// How long the command has between TERM and KILL when the lock is lost; meanwhile somebody
    /// else may hold it already, and only the token protects
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time::parse, allow_hyphen_values = true)]
    pub(crate) grace: Duration,

    /// Of the lock: 1 to 1024 bytes
    pub(crate) name: String,

    /// The command, with its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    pub(crate) command: Vec<OsString>,
}

impl Run {
    /// What is to be executed.
    pub(crate) fn words(&self) -> Result<&[OsString], Failure> {
        let words = match self.command.split_first() {
            // Of `fencelock run -- -name -- CMD`: the first one was for the name.
            Some((first, words)) if first == "--" && !words.is_empty() => words,
            _ => &self.command,
        };
        match words.first() {
            Some(first) if first.as_encoded_bytes().starts_with(b"-") => {
                let first = first.to_string_lossy();
                let text = format!("{first:?} is where the command begins; options go before NAME");
                Err(Failure::new(USAGE, text))
            }
            _ => Ok(words),
        }
    }

    pub(crate) fn lock_options(&self) -> LockOptions {
        LockOptions::new().ttl(self.ttl).max_hold(self.max_hold)
    }
}

#[derive(Args)]
#[command(args_override_self = true, after_help = codes(&[CODES]), after_long_help = codes(&[CODES]))]
pub(crate) struct Ls {
    /// Which names: * is any text, ? one character, [a-z] one of these
    pub(crate) pattern: Option<String>,

    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Args)]
#[command(args_override_self = true, after_help = codes(&[CODES]), after_long_help = codes(&[CODES]))]
pub(crate) struct Inspect {
    /// Of the lock
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Args)]
#[command(args_override_self = true, after_help = codes(&[CODES]), after_long_help = codes(&[CODES]))]
pub(crate) struct Break {
    /// Of the lock
    pub(crate) name: String,

    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Args)]
#[command(args_override_self = true, after_help = codes(&[CODES]), after_long_help = codes(&[CODES]))]
pub(crate) struct Wait {
    /// Of the lock
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) patience: Patience,

    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Args)]
pub(crate) struct Form {
    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Exit codes as the end of a help text.
fn codes(tables: &[&[(&str, &str)]]) -> String {
    let rows = tables.iter().flat_map(|table| table.iter());
    let lines = rows.map(|(code, meaning)| format!("  {code:<9} {meaning}"));
    format!("Exit codes:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// What clap has to say: help and version on standard output, anything else as one line.
pub(crate) fn refused(error: &clap::Error) -> Result<End, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(&error.render().to_string())?;
            Ok(End::Code(SUCCESS))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Err(Failure::new(USAGE, "no command given; `fencelock --help` lists them"))
        }
        _ => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let message = text.split("\n\n").next().unwrap_or(text);
            let message: Vec<&str> = message.split_whitespace().map(without_url).collect();
            Err(Failure::new(USAGE, format!("{}; see --help", message.join(" "))))
        }
    }
}

/// A URL may have a password in it, wherever it stands.
fn without_url(word: &str) -> &str {
    if word.contains("://") { "(a URL)" } else { word }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_options_fit_together() {
        Options::command().debug_assert();
    }
}
