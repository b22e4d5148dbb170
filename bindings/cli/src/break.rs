//! `fencelock break NAME`.

use fencelock::{Client, LockInfo, LockState};
use serde::Serialize;

use crate::exit::{CONFLICT, End, Failure, SUCCESS, USAGE};
use crate::options::Break;
use crate::output::{self, Shown};
use crate::{place, time};

/// Who held the lock before, and whether that was ended.
#[derive(Serialize)]
struct Broken<'a> {
    #[serde(flatten)]
    lock: Shown<'a>,
    broken: bool,
}

pub(crate) async fn r#break(url: &str, options: &Break) -> Result<End, Failure> {
    let client = place::connect(url).await?;
    let broken = ask_and_break(&client, options).await;
    client.close().await;
    broken
}

async fn ask_and_break(client: &Client, options: &Break) -> Result<End, Failure> {
    let name = &options.name;
    let lock = client.inspect(name).await?;
    if lock.state != LockState::Free && !options.yes {
        match output::ask(&question(&lock)) {
            Some(true) => {}
            Some(false) => return Ok(End::Code(CONFLICT)),
            None => {
                let text = "there is no terminal to ask on; --yes breaks the lock without asking";
                return Err(Failure::new(USAGE, text));
            }
        }
        // The answer was about this holder, and may have taken a while.
        let owner = client.inspect(name).await?.owner;
        if owner != lock.owner {
            let what = if owner.is_none() { "was released" } else { "changed hands" };
            let text = format!("lock {name:?} {what} meanwhile; nothing was broken");
            return Err(Failure::new(CONFLICT, text));
        }
    }
    // Of one that is free nothing was asked, so nobody who comes at this moment may lose it.
    let broken =
        (lock.state != LockState::Free || options.yes) && client.force_release(name).await?;
    if options.form.json {
        output::json(&Broken { lock: Shown::new(&lock), broken })?;
    } else if !broken {
        output::complain(&format!("lock {name:?} is held by nobody"));
    }
    Ok(End::Code(if broken { SUCCESS } else { CONFLICT }))
}

fn question(lock: &LockInfo) -> String {
    let holder = lock.metadata.as_deref().or(lock.owner.as_deref()).unwrap_or("somebody");
    let held = lock.held.map(|held| format!(" for {}", time::show(held))).unwrap_or_default();
    format!(
        "{:?} is held by {holder}{held}, who may go on working for a while. Break it?",
        lock.name
    )
}
