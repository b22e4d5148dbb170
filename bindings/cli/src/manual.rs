//! The manual and completions, made from the options.

use std::io::Write;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::exit::{CODES, End, Failure, RUN_CODES, SUCCESS, USAGE};
use crate::output;

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "FENCELOCK_URL",
        "Where the lock is kept, if --url does not say so. The place for a URL with a password: \
         a command line is seen by all users of the machine.",
    ),
    ("FENCELOCK_NAME", "Set for the command of run: the name of the lock."),
    (
        "FENCELOCK_TOKEN",
        "Set for the command of run: the fencing token, greater than that of every earlier holder.",
    ),
];

const PROCESSES: &[(&str, &str)] = &[
    (
        "Standard input, output and error",
        "are passed on as they are, and no descriptor of fencelock is.",
    ),
    (
        "Signals",
        "TERM, INT and QUIT that are sent to fencelock go to the command and to what it started, \
         HUP, USR1, USR2, ALRM, WINCH, TSTP and CONT to the command alone. What is ignored when \
         fencelock starts (nohup) stays ignored. Who signals a whole cgroup, as systemd does, \
         reaches the command twice.",
    ),
    (
        "With a controlling terminal",
        "the command stays in the process group of fencelock, so that Ctrl-C, Ctrl-Z and reading \
         from the terminal work as without fencelock: the terminal's signals reach both once. A \
         job that is stopped for longer than the ttl loses the lock, and the command gets TERM \
         when it is continued.",
    ),
    (
        "Without one (cron, services, containers)",
        "the command leads a process group of its own, and what goes to \"what it started\" goes \
         to that group.",
    ),
    ("When the lock is lost", "they get TERM and CONT, and KILL after --grace."),
    ("When the command ends", "the lock is released, whatever it left in the background."),
    (
        "When fencelock itself is killed (KILL)",
        "the system kills the command too (Linux; not one that gains privileges, and not what the \
         command started). The lock is free at once if it is kept in files, else after the ttl.",
    ),
];

const EXAMPLES: &[(&str, &str)] = &[
    ("fencelock run nightly -- ./backup", "one backup of this user at a time, on this machine"),
    ("fencelock run -n nightly -- ./backup", "skip this one if the last is still running"),
    (
        "FENCELOCK_URL=redis://db/ fencelock run -w 10 -E 99 nightly -- ./backup",
        "one backup of all hosts at a time; exit code 99 if it is not ours within ten seconds",
    ),
    ("fencelock ls 'nightly*'", "who holds what"),
];

pub(crate) fn completions(shell: Shell, mut command: Command) -> Result<End, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "fencelock", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(End::Code(SUCCESS))
}

/// The page of one command, or the one above all.
pub(crate) fn page(of: Option<&str>, mut command: Command) -> Result<End, Failure> {
    command.build();
    let page = match of {
        None => command.clone(),
        Some(name) => {
            let found = command.find_subcommand(name);
            let found = found.ok_or_else(|| {
                Failure::new(USAGE, format!("there is no command {name:?}; see --help"))
            })?;
            found.clone()
        }
    };
    let page = Man::new(page).source(format!("fencelock {}", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    write(&page, of, &mut text).map_err(|error| Failure::system("manual", error))?;
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(End::Code(SUCCESS))
}

fn write(page: &Man, of: Option<&str>, text: &mut Vec<u8>) -> std::io::Result<()> {
    let is_run = of == Some("run");
    page.render_title(text)?;
    page.render_name_section(text)?;
    page.render_synopsis_section(text)?;
    page.render_description_section(text)?;
    page.render_options_section(text)?;
    if of.is_none() {
        page.render_subcommands_section(text)?;
    }
    if is_run {
        section(text, "PROCESSES AND SIGNALS", PROCESSES)?;
    }
    let codes = if is_run { [RUN_CODES, CODES].concat() } else { CODES.to_vec() };
    section(text, "EXIT STATUS", &codes)?;
    section(text, "ENVIRONMENT", ENVIRONMENT)?;
    if of.is_none() || is_run {
        section(text, "EXAMPLES", EXAMPLES)?;
    }
    Ok(())
}

fn section(to: &mut impl Write, title: &str, rows: &[(&str, &str)]) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (term, meaning) in rows {
        roff.control("TP", []);
        roff.text([bold(*term)]);
        roff.text([roman(*meaning)]);
    }
    roff.to_writer(to)
}
