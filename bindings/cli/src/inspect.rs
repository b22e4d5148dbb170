//! `fencelock inspect NAME`.

use std::fmt::Write as _;

use fencelock::LockInfo;

use crate::exit::{End, Failure, SUCCESS};
use crate::options::Inspect;
use crate::output::{self, Shown, plain};
use crate::{place, time};

pub(crate) async fn inspect(url: &str, options: &Inspect) -> Result<End, Failure> {
    let client = place::connect(url).await?;
    let inspected = client.inspect(&options.name).await;
    client.close().await;
    let lock = inspected?;
    if options.form.json {
        output::json(&Shown::new(&lock))?;
    } else {
        output::print(&text(&lock))?;
    }
    Ok(End::Code(SUCCESS))
}

fn text(lock: &LockInfo) -> String {
    let mut text = String::new();
    let mut row = |what: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{what:<9} {}", plain(&value));
        }
    };
    row("name", Some(lock.name.clone()));
    row("state", Some(lock.state.as_str().to_owned()));
    row("holder", lock.metadata.clone());
    row("owner", lock.owner.clone());
    row("token", lock.token.map(|token| token.to_string()));
    row("held", lock.held.map(time::show));
    row("ttl left", lock.ttl_left.map(time::show));
    row("queue", Some(lock.queue.len().to_string()));
    for (place, waiter) in lock.queue.iter().enumerate() {
        let who = waiter.metadata.as_deref().unwrap_or(&waiter.owner);
        let waiting = time::show(waiter.waiting);
        row(&format!("{:>5}.", place + 1), Some(format!("{who}, waiting for {waiting}")));
    }
    text
}
