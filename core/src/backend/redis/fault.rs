//! What the errors of Redis and of its driver mean for who takes locks.

use std::fmt;
use std::sync::Arc;

use redis::{ConnectionInfo, ErrorKind as RedisKind, RedisError};

use crate::error::{Error, ErrorKind};

/// Why a request has no reply, or which error was the reply.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// An error of the server or the driver.
    Redis(RedisError),
    /// The client is closed.
    Closed,
    /// The runtime that was connecting has ended.
    Interrupted,
}

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        Fault::Redis(error)
    }
}

impl Fault {
    /// The server does not know the script.
    pub(super) fn is_unknown_script(&self) -> bool {
        matches!(self, Fault::Redis(error) if error.code() == Some("NOSCRIPT"))
    }

    /// The key is of another type.
    pub(super) fn is_wrong_type(&self) -> bool {
        matches!(self, Fault::Redis(error) if code(error) == "WRONGTYPE")
    }

    /// The server refused the one command or key that was asked for, not all of them.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Fault::Redis(error) if code(error) == "NOPERM")
    }
}

/// Explains faults of one server. Shows where it is, never a password.
#[derive(Clone)]
pub(super) struct Server {
    address: Arc<str>,
}

impl Server {
    pub(super) fn new(info: &ConnectionInfo) -> Self {
        Server { address: info.addr().to_string().into() }
    }

    /// The error for a request that got no reply or an error reply.
    pub(super) fn explain(&self, fault: &Fault) -> Error {
        match fault {
            Fault::Redis(error) => self.explain_redis(error).with_source(error.clone()),
            Fault::Closed => Error::closed(),
            Fault::Interrupted => {
                self.unavailable("connecting ended with the runtime that it began in")
            }
        }
    }

    fn explain_redis(&self, error: &RedisError) -> Error {
        let text = text(error);
        let refused =
            |what: &str| Error::new(ErrorKind::AuthFailed, format!("{self} {what} ({text})"));
        match code(error) {
            "WRONGTYPE" => Error::new(
                ErrorKind::Conflict,
                "a key of another type stands where the lock should be; it was left untouched",
            ),
            "NOAUTH" => refused("asks for a password; give it in the URL"),
            "WRONGPASS" => refused("refused the user name or password"),
            "DENIED" => refused("is in protected mode and refuses other hosts"),
            "NOPERM" => refused("refuses this user a right that locks need"),
            "READONLY" => {
                self.unavailable("is a read-only replica; locks need the primary").lasting()
            }
            "OOM" => self
                .unavailable("is out of memory and refuses writes (maxmemory, noeviction)")
                .lasting(),
            "MISCONF" => {
                self.unavailable("refuses writes because it cannot save its data to disk").lasting()
            }
            "NOREPLICAS" => self.unavailable("refuses writes because too few replicas follow it"),
            "LOADING" => self.unavailable("is still loading its data"),
            "BUSY" => self.unavailable("is busy with a script"),
            "MASTERDOWN" => self.unavailable("has lost its primary"),
            "CLUSTERDOWN" | "TRYAGAIN" => self.unavailable("belongs to a cluster that is not up"),
            "MOVED" | "ASK" | "CROSSSLOT" => Error::new(
                ErrorKind::Unsupported,
                format!("{self} is one node of a Redis Cluster, which redis:// cannot use"),
            ),
            "UNKNOWN" => Error::new(
                ErrorKind::Unsupported,
                format!("{self} lacks a command that locks need ({text})"),
            ),
            "AUTH" => Error::new(
                ErrorKind::AuthFailed,
                format!("{self} refused the user name or password"),
            ),
            "IO" => self.unavailable(&format!("cannot be reached: {text}")),
            "PARSE" => self.unavailable("does not speak the Redis protocol"),
            _ if error.to_string().contains("switch database") => {
                Error::invalid(format!("{self} refused the database number of the URL ({text})"))
            }
            _ if text.contains("max number of clients") => {
                self.unavailable("has no room for another connection (maxclients)")
            }
            _ => self.unavailable(&format!("answered with an error: {text}")).lasting(),
        }
    }

    pub(super) fn unavailable(&self, what: &str) -> Error {
        Error::unavailable(format!("{self} {what}"))
    }

    /// An answer of a shape that no version of our scripts gives.
    pub(super) fn unexpected(&self, what: &str) -> Error {
        Error::new(ErrorKind::Internal, format!("{self} gave an unexpected answer to {what}"))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis at {}", self.address)
    }
}

/// What ACLs say inside a script, where Redis 6 gives no code of its own.
pub(super) fn is_missing_right(text: &str) -> bool {
    ["NOPERM", "ACL failure", "has no permissions", "user executing the script can't"]
        .iter()
        .any(|known| text.contains(known))
}

/// The code of an error, also of one raised inside a script, which Redis before version 7 wraps in
/// `ERR Error running script …`.
fn code(error: &RedisError) -> &str {
    match error.kind() {
        RedisKind::Io => return "IO",
        RedisKind::Parse => return "PARSE",
        RedisKind::AuthenticationFailed => return "AUTH",
        _ => {}
    }
    let code = error.code().unwrap_or("");
    if code != "ERR" {
        return code;
    }
    let text = error.detail().unwrap_or("");
    if is_missing_right(text) {
        return "NOPERM";
    }
    if text.contains("nknown command") || text.contains("nknown Redis command") {
        return "UNKNOWN";
    }
    if !text.contains("script") {
        return code;
    }
    ["WRONGTYPE", "READONLY", "OOM", "MISCONF", "NOREPLICAS", "LOADING", "MASTERDOWN"]
        .into_iter()
        .find(|known| text.contains(known))
        .unwrap_or(code)
}

/// One line that says what happened.
fn text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        _ => error.to_string(),
    }
}
