//! Where the locks are kept: the URL, and the client of it.

use std::env::{self, VarError};

use fencelock::{Client, ClientOptions};

use crate::exit::{Failure, USAGE};

const VARIABLE: &str = "FENCELOCK_URL";

/// That of the option, else of the environment, else files of this machine.
pub(crate) fn url(option: Option<String>) -> Result<String, Failure> {
    let url = match option {
        // What a script passes for a variable that it forgot to set. To lock on this machine alone
        // then would be the worst that could happen.
        Some(url) if url.is_empty() => {
            return Err(Failure::new(
                USAGE,
                "--url is empty; leave it out to use files of this machine",
            ));
        }
        Some(url) => url,
        None => match env::var(VARIABLE) {
            Ok(url) if !url.is_empty() => url,
            Ok(_) | Err(VarError::NotPresent) => of_this_machine(),
            Err(VarError::NotUnicode(_)) => {
                return Err(Failure::new(USAGE, format!("{VARIABLE} is not UTF-8")));
            }
        },
    };
    if url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("memory:")) {
        return Err(Failure::new(
            USAGE,
            "memory: locks nothing here, as each command is a process of its own; use file:///dir",
        ));
    }
    Ok(url)
}

/// The same from a shell, from cron and from a service, and not below /tmp, which many services
/// have to themselves.
fn of_this_machine() -> String {
    format!("file:///var/tmp/fencelock-{}", rustix::process::geteuid().as_raw())
}

/// Makes one handshake.
pub(crate) async fn connect(url: &str) -> Result<Client, Failure> {
    Ok(Client::connect_with(url, ClientOptions::new().language("shell")).await?)
}
