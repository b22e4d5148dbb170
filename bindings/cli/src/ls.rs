//! `fencelock ls [PATTERN]`.

use comfy_table::{Table, presets};
use fencelock::LockInfo;
use glob::{Pattern, PatternError};

use crate::exit::{End, Failure, SUCCESS, USAGE};
use crate::options::Ls;
use crate::output::{self, Shown, plain};
use crate::{place, time};

pub(crate) async fn ls(url: &str, options: &Ls) -> Result<End, Failure> {
    let pattern = options.pattern.as_deref().map(read).transpose();
    let pattern = pattern.map_err(|error| {
        Failure::new(USAGE, format!("the pattern is not allowed: {}", error.msg))
    })?;
    let client = place::connect(url).await?;
    let listed = client.list().await;
    client.close().await;
    let mut locks = listed?;
    // A name is no path: * stands for any text, with / too.
    locks.retain(|lock| pattern.as_ref().is_none_or(|pattern| pattern.matches(&lock.name)));
    if options.form.json {
        output::json(&locks.iter().map(Shown::new).collect::<Vec<_>>())?;
    } else if !locks.is_empty() {
        output::print(&format!("{}\n", table(&locks)))?;
    }
    Ok(End::Code(SUCCESS))
}

/// A name is no path, in which `**` would have a meaning of its own.
fn read(pattern: &str) -> Result<Pattern, PatternError> {
    let mut one = pattern.to_owned();
    while one.contains("**") {
        one = one.replace("**", "*");
    }
    Pattern::new(&one)
}

fn table(locks: &[LockInfo]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["NAME", "STATE", "TOKEN", "HELD", "TTL LEFT", "WAITING", "HOLDER"]);
    for lock in locks {
        let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        table.add_row([
            plain(&lock.name),
            lock.state.as_str().to_owned(),
            shown(lock.token.map(|token| token.to_string())),
            shown(lock.held.map(time::show)),
            shown(lock.ttl_left.map(time::show)),
            lock.queue.len().to_string(),
            shown(lock.metadata.as_deref().or(lock.owner.as_deref()).map(plain)),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}
