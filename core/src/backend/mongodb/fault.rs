//! What the errors of MongoDB and of its driver mean for who takes locks.

use std::fmt;
use std::sync::Arc;

use mongodb::error::{Error as DriverError, ErrorKind as DriverKind, WriteFailure};
use mongodb::options::ClientOptions;

use crate::error::{Error, ErrorKind};

/// How much of the driver's own words is shown; it describes every server at length.
const SHOWN_CHARS: usize = 400;

/// Why a command has no answer that counts.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// An error of the server or the driver.
    Driver(DriverError),
    /// The server did it, but no majority is known to have it: it may still be undone.
    Unacknowledged(String),
}

impl From<DriverError> for Fault {
    fn from(error: DriverError) -> Self {
        Fault::Driver(error)
    }
}

impl Fault {
    /// Two first steps on one name met; the second finds the document when it is sent again.
    pub(super) fn is_duplicate_key(&self) -> bool {
        self.code() == Some(11_000)
    }

    /// The server has no change streams at all: it is no replica set.
    pub(super) fn is_of_a_standalone(&self) -> bool {
        self.code() == Some(40_573)
    }

    /// The server refuses to watch, and will do so the next time too.
    pub(super) fn is_refusal_to_watch(&self) -> bool {
        // Unauthorized, CommandNotSupported, ReadConcernMajorityNotEnabled, and a view.
        self.is_of_a_standalone() || matches!(self.code(), Some(13 | 115 | 148 | 166))
    }

    /// The server does not know the command.
    pub(super) fn is_unknown_command(&self) -> bool {
        self.code() == Some(59)
    }

    fn code(&self) -> Option<i32> {
        match self {
            Fault::Driver(error) => match &*error.kind {
                DriverKind::Command(error) => Some(error.code),
                DriverKind::Write(WriteFailure::WriteError(error)) => Some(error.code),
                _ => None,
            },
            Fault::Unacknowledged(_) => None,
        }
    }
}

/// Explains faults of one deployment. Shows where it is, never a password.
#[derive(Clone)]
pub(super) struct Server {
    name: Arc<str>,
}

impl Server {
    pub(super) fn new(options: &ClientOptions) -> Self {
        let at: Vec<_> = options.hosts.iter().map(ToString::to_string).collect();
        Server { name: format!("MongoDB at {}", at.join(", ")).into() }
    }

    /// Before it is known where the URL leads.
    pub(super) fn of_url() -> Self {
        Server { name: "the MongoDB of the URL".into() }
    }

    /// The error for a command without an answer that counts.
    pub(super) fn explain(&self, fault: &Fault) -> Error {
        match fault {
            Fault::Driver(error) => self.explain_driver(error).with_source(error.clone()),
            Fault::Unacknowledged(text) => {
                self.unavailable(&format!("did it, but without a majority of its members ({text})"))
            }
        }
    }

    fn explain_driver(&self, error: &DriverError) -> Error {
        let text = shortened(&error.kind.to_string());
        match &*error.kind {
            DriverKind::Command(command) => self
                .explain_code(command.code, &format!("{}: {}", command.code_name, command.message)),
            DriverKind::Write(WriteFailure::WriteError(error)) => {
                self.explain_code(error.code, &error.message)
            }
            DriverKind::Write(_) => {
                self.unavailable(&format!("did it, but without a majority of its members ({text})"))
            }
            DriverKind::Authentication { .. } => {
                self.refused(&format!("refused the user name or password ({text})"))
            }
            DriverKind::ServerSelection { .. } if is_about_certificates(&text) => {
                self.refused(&format!("cannot be trusted or does not trust us ({text})"))
            }
            DriverKind::ServerSelection { .. } => {
                self.unavailable(&format!("has no primary that can be reached ({text})"))
            }
            DriverKind::Io(_) if is_about_certificates(&text) => {
                self.refused(&format!("cannot be trusted or does not trust us ({text})"))
            }
            DriverKind::Io(_) | DriverKind::ConnectionPoolCleared { .. } => {
                self.unavailable(&format!("cannot be reached: {text}"))
            }
            DriverKind::DnsResolve { .. } => {
                self.unavailable(&format!("has a name that cannot be resolved: {text}"))
            }
            DriverKind::Shutdown => Error::closed(),
            DriverKind::IncompatibleServer { .. } => unsupported(&format!("{self}: {text}")),
            DriverKind::SessionsNotSupported => {
                unsupported(&format!("{self} has no sessions, so it is older than 4.2"))
            }
            DriverKind::InvalidTlsConfig { .. } => Error::invalid(format!("TLS options: {text}")),
            _ => self.unavailable(&format!("gave no usable answer: {text}")).lasting(),
        }
    }

    fn explain_code(&self, code: i32, text: &str) -> Error {
        let text = shortened(text);
        match code {
            // Unauthorized; AuthenticationFailed, AtlasError, UserNotFound.
            13 => self.refused(&format!(
                "refuses this user a right that locks need: find, insert and update on the collection ({text})"
            )),
            11 | 18 | 8000 => self.refused(&format!("refused the user name or password ({text})")),
            // NotWritablePrimary and its kin, shutting down, stepping down, recovering.
            10_107 | 13_435 | 13_436 | 10_058 | 11_600 | 11_602 | 189 | 91 => {
                self.unavailable(&format!("has another primary by now, which is being looked for ({text})"))
            }
            // MaxTimeMSExpired, and write concerns that were not reached in time.
            50 | 64 | 202 | 262 => self.unavailable(&format!("did not answer in time ({text})")),
            // Network errors among the servers; too busy; interrupted.
            6 | 7 | 89 | 9001 | 134 | 46 | 112 | 11_601 | 24 | 290 | 462 => {
                self.unavailable(&format!("cannot serve this now ({text})"))
            }
            11_000 => self.unavailable("was asked for the first document of a name by many at once"),
            // CommandNotSupportedOnView; InvalidNamespace; a validator.
            166 => Error::new(
                ErrorKind::Conflict,
                format!("a view stands where the collection should be; it was left untouched ({text})"),
            ),
            121 => Error::new(
                ErrorKind::Conflict,
                format!("the collection has a validator that refuses locks; give locks a collection of their own ({text})"),
            ),
            73 => Error::invalid(format!("the server does not accept the collection's name ({text})")),
            // A pipeline as an update came with 4.2.
            9 | 59 | 40_324 => unsupported(&format!(
                "{self} lacks something that locks need; they need MongoDB 4.2 or later ({text})"
            )),
            100 | 79 => self
                .unavailable(&format!("has too few members for a majority ({text})")),
            _ => self.unavailable(&format!("answered with an error: {text}")).lasting(),
        }
    }

    /// The error for a URL that the driver refuses, which may quote it.
    pub(super) fn explain_url(&self, error: &DriverError, url: &str) -> Error {
        match &*error.kind {
            DriverKind::InvalidArgument { message, .. } => Error::invalid(format!(
                "this is not a MongoDB URL (mongodb://user:password@host:27017,…/?replicaSet=NAME): {}",
                without_secrets(message, url)
            )),
            // Its text names the host at most.
            _ => self.explain_driver(error),
        }
    }

    fn refused(&self, what: &str) -> Error {
        Error::new(ErrorKind::AuthFailed, format!("{self} {what}"))
    }

    pub(super) fn unavailable(&self, what: &str) -> Error {
        Error::unavailable(format!("{self} {what}"))
    }

    /// An answer of a shape that no version of our steps gives.
    pub(super) fn unexpected(&self, what: &str) -> Error {
        Error::new(ErrorKind::Internal, format!("{self} gave an unexpected answer to {what}"))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Their clocks, and not those of the servers behind them, would decide how long a lease lasts.
pub(super) fn routers() -> Error {
    unsupported(
        "the URL leads to routers of a sharded cluster (mongos) or to a load balancer, which locks do not support; give the URL of a replica set",
    )
}

pub(super) fn too_old() -> Error {
    unsupported("the server is older than MongoDB 4.2, whose updates locks need")
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, what)
}

fn is_about_certificates(text: &str) -> bool {
    text.contains("ertificate") || text.contains("UnknownIssuer") || text.contains("UnknownCA")
}

/// One line, not endless.
fn shortened(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The driver's words, unless they quote what stands before the hosts in the URL.
fn without_secrets(message: &str, url: &str) -> String {
    let credentials = url
        .split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once('@'))
        .map(|(credentials, _)| credentials);
    let quotes = |secrets: &str| {
        secrets.split([':', '@', '/']).any(|part| !part.is_empty() && message.contains(part))
    };
    match credentials {
        Some(secrets) if quotes(secrets) => {
            "its user name, password, hosts or options are malformed; special characters in a password are written as %XX".to_owned()
        }
        _ => shortened(message),
    }
}
