//! The command `fencelock`: runs a command while it holds a lock, and looks after locks.
//!
//! What decides about locks is in core. Here are options, processes, signals, exit codes and what
//! is printed.

mod acquire;
mod r#break;
mod exit;
mod inspect;
mod ls;
mod manual;
mod options;
mod output;
mod place;
mod run;
mod signals;
mod time;
mod wait;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use fencelock_shared::{Runtime, log, runtime};

use crate::exit::{End, Failure};
use crate::options::{Command, Options};

fn main() -> ExitCode {
    let end = match Options::try_parse() {
        Ok(options) => carry_out(options),
        Err(error) => options::refused(&error),
    };
    let end = end.unwrap_or_else(|failure| {
        output::complain(&failure.message);
        End::Code(failure.code)
    });
    // Connections are closed and warnings written before the process ends, whichever way it does.
    runtime::close_all();
    exit::leave(end)
}

fn carry_out(options: Options) -> Result<End, Failure> {
    match options.command {
        Command::Completions { shell } => return manual::completions(shell, Options::command()),
        Command::Man { command } => return manual::page(command.as_deref(), Options::command()),
        _ => {}
    }
    log::install(|_, warning| {
        // What is done about a lost lease is said where it is done.
        if !warning.starts_with("lease lost") {
            output::complain(warning);
        }
    });
    let url = place::url(options.url)?;
    // On this thread: a child that this process starts must not die with another one.
    Runtime::current()?.block_on(async {
        match options.command {
            Command::Run(options) => run::run(&url, options).await,
            Command::Ls(options) => ls::ls(&url, &options).await,
            Command::Inspect(options) => inspect::inspect(&url, &options).await,
            Command::Break(options) => r#break::r#break(&url, &options).await,
            Command::Wait(options) => wait::wait(&url, &options).await,
            Command::Completions { .. } | Command::Man { .. } => Ok(End::Code(exit::SUCCESS)),
        }
    })
}
