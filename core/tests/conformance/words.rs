//! The words of steps that this runner knows, each with the keys that it takes.

/// What any step may have.
pub(crate) const COMMON: &[&str] = &["do", "error", "says", "hides"];

pub(crate) const WORDS: &[(&str, &[&str])] = &[
    ("connect", &["as", "url", "query", "credentials", "options"]),
    ("close", &["client"]),
    ("lock", &["client", "name", "as", "ttl_ms", "renew", "max_hold_ms", "metadata"]),
    ("acquire", &["lock", "as", "timeout_ms"]),
    ("try_acquire", &["lock", "as", "expect"]),
    ("start_acquire", &["lock", "as", "timeout_ms"]),
    ("await_acquire", &["lease"]),
    ("cancel_acquire", &["lease"]),
    ("release", &["lease"]),
    ("drop", &["lease"]),
    ("renew", &["lease"]),
    ("check", &["lease"]),
    ("held", &["lease", "expect"]),
    ("is_lost", &["lease", "expect"]),
    ("wait_lost", &["lease", "within_ms", "expect"]),
    ("remaining", &["lease", "at_least_ms", "at_most_ms"]),
    ("token", &["lease", "greater_than"]),
    ("inspect", &["client", "name", "shows"]),
    ("wait_until", &["client", "name", "shows"]),
    ("list", &["client", "names"]),
    ("force_release", &["client", "name", "expect"]),
    ("sleep", &["ms"]),
    ("stopwatch", &["as"]),
    ("elapsed", &["since", "at_least_ms", "at_most_ms"]),
    ("redis", &["command", "name", "arguments"]),
];
