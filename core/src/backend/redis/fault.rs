//! What the errors of Redis and of its driver mean for who takes locks.

use std::fmt;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind as RedisKind, RedisError};

use super::address::{Deployment, Kind};
use crate::error::{Error, ErrorKind};

/// Why a request has no reply, or which error was the reply.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// An error of the server or the driver.
    Redis(RedisError),
    /// A connection without TLS was closed before anything was said.
    HungUp(RedisError),
    /// One side does not accept the other's certificate.
    Certificate(Arc<str>),
    /// No TLS came about, for another reason.
    NoTls(Arc<str>),
    /// No sentinel says where the primary is.
    Sentinel { refused: bool, text: Arc<str> },
    /// No node of the cluster has the lock's slot.
    NoNode,
    /// It was carried out, but fewer replicas than asked for say that they have it.
    Unacknowledged { replicas: u32, within_ms: u64 },
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

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Redis(error.into())
    }
}

/// Where a node of a cluster sends us instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirection {
    /// For good.
    Moved(String, u16),
    /// For this once.
    Ask(String, u16),
}

impl Fault {
    /// One line that says what happened, of which no part comes from a URL.
    pub(super) fn text(&self) -> String {
        match self {
            Fault::Redis(error) | Fault::HungUp(error) => text(error),
            Fault::Certificate(text) | Fault::NoTls(text) | Fault::Sentinel { text, .. } => {
                text.to_string()
            }
            Fault::NoNode => "no node of the cluster serves this name now".to_owned(),
            Fault::Unacknowledged { replicas, within_ms } => format!(
                "{replicas} {} did not acknowledge within {within_ms} ms",
                if *replicas == 1 { "replica" } else { "replicas" }
            ),
            Fault::Closed => "the client is closed".to_owned(),
            Fault::Interrupted => "connecting ended with the runtime that it began in".to_owned(),
        }
    }

    /// The same fault, of a sentinel and not of a server that keeps data.
    pub(super) fn of_sentinel(self) -> Self {
        let refused = matches!(&self, Fault::Redis(error)
            if matches!(code(error), "AUTH" | "NOAUTH" | "WRONGPASS" | "NOPERM"));
        if refused {
            let text = format!(
                "a sentinel refused us ({}); credentials for the sentinels are fl.sentinel_user and fl.sentinel_password",
                self.text()
            );
            return Fault::Sentinel { refused, text: text.into() };
        }
        self
    }

    /// The server answered as one that follows another, or has lost it.
    pub(super) fn is_of_a_replica(&self) -> bool {
        matches!(self, Fault::Redis(error) if matches!(code(error), "READONLY" | "MASTERDOWN"))
    }

    /// There was no answer, so the server may be dead.
    pub(super) fn is_silence(&self) -> bool {
        match self {
            Fault::Redis(error) => {
                matches!(code(error), "IO" | "PARSE" | "CLUSTERDOWN" | "READONLY")
            }
            Fault::HungUp(_) | Fault::NoTls(_) | Fault::Certificate(_) | Fault::NoNode => true,
            _ => false,
        }
    }

    /// Where to ask instead. An empty host is that of the node which said so.
    pub(super) fn redirection(&self) -> Option<Redirection> {
        let Fault::Redis(error) = self else {
            return None;
        };
        let moved = match error.code() {
            Some("MOVED") => true,
            Some("ASK") => false,
            _ => return None,
        };
        // "<slot> <host>:<port>", where the host may be an IPv6 address without brackets.
        let (host, port) = error.detail()?.split_ascii_whitespace().nth(1)?.rsplit_once(':')?;
        let (host, port) = (host.to_owned(), port.parse().ok()?);
        Some(if moved { Redirection::Moved(host, port) } else { Redirection::Ask(host, port) })
    }

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

/// Explains faults of one server or deployment. Shows where it is, never a password.
#[derive(Clone)]
pub(super) struct Server {
    name: Arc<str>,
    kind: Kind,
}

impl Server {
    pub(super) fn new(deployment: &Deployment) -> Self {
        let at: Vec<_> = deployment.addresses.iter().map(ToString::to_string).collect();
        let at = at.join(", ");
        let name = match &deployment.kind {
            Kind::Single => format!("Redis at {at}"),
            Kind::Cluster => format!("Redis Cluster at {at}"),
            Kind::Sentinel(service) => format!("Redis {service:?} of the sentinels at {at}"),
        };
        Server { name: name.into(), kind: deployment.kind.clone() }
    }

    /// The error for a request that got no reply or an error reply.
    pub(super) fn explain(&self, fault: &Fault) -> Error {
        let text = || fault.text();
        match fault {
            Fault::Redis(error) => self.explain_redis(error).with_source(error.clone()),
            Fault::HungUp(error) => self
                .unavailable(&format!(
                    "closed the connection at once ({}); if it expects TLS, the URL begins with rediss",
                    text()
                ))
                .with_source(error.clone()),
            Fault::Certificate(text) => {
                Error::new(ErrorKind::AuthFailed, format!("{self} cannot be trusted or does not trust us: {text}"))
            }
            Fault::NoTls(text) => self.unavailable(&format!(
                "does not speak TLS with us: {text}; if it expects none, the URL begins with redis"
            )),
            Fault::Sentinel { refused: true, text } => {
                Error::new(ErrorKind::AuthFailed, format!("{self}: {text}"))
            }
            Fault::Sentinel { text, .. } => self.unavailable(&format!("cannot be found: {text}")),
            Fault::NoNode => self.unavailable("has no node that serves this name now"),
            Fault::Unacknowledged { .. } => Error::unavailable(format!("{}: {self}", text())),
            Fault::Closed => Error::closed(),
            Fault::Interrupted => self.unavailable(&text()),
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
            "READONLY" if self.kind == Kind::Single => {
                self.unavailable("is a read-only replica; locks need the primary").lasting()
            }
            "READONLY" => self.unavailable("has another primary by now, which is being looked for"),
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
            "MOVED" | "ASK" if self.kind == Kind::Cluster => {
                self.unavailable("is moving this name to another node")
            }
            "MOVED" | "ASK" | "CROSSSLOT" => Error::new(
                ErrorKind::Unsupported,
                format!(
                    "{self} is a node of a Redis Cluster; the URL for that begins with redis-cluster:// and may name several nodes"
                ),
            ),
            _ if text.contains("cluster support disabled") => Error::new(
                ErrorKind::Unsupported,
                format!("{self} is not a cluster; the URL of a single server begins with redis://"),
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
            "PARSE" => self.unavailable(
                "does not speak the Redis protocol; if it expects TLS, the URL begins with rediss",
            ),
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
        f.write_str(&self.name)
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
