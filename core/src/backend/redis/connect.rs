//! URLs, and the handshake that shows at once whether locks will work.

use redis::{ConnectionInfo, IntoConnectionInfo, Value, from_redis_value};

use super::fault::{Fault, is_missing_right};
use super::{Shared, scripts};
use crate::error::{Error, ErrorKind, Result};
use crate::url::Target;

/// Older servers lack the commands that take a contender out of its queue, and replicate scripts
/// in a way that does not allow them to ask for the time.
const OLDEST_MAJOR: u32 = 5;

/// What the URL says. Nothing of it is shown in an error: it may hold a password.
pub(super) fn parse(target: &Target) -> Result<ConnectionInfo> {
    let refused = |why: &str| {
        Error::invalid(format!(
            "the Redis URL is not valid: {why}; allowed are redis://[user:password@]host[:port][/database] and redis+unix:///path[?db=&user=&pass=]"
        ))
    };
    let info = target.url.as_str().into_connection_info().map_err(|error| {
        // "what is wrong - kind"
        let text = error.to_string();
        refused(text.split(" - ").next().unwrap_or("it does not parse"))
    })?;
    let redis = info.redis_settings();
    if redis.username().is_some() && redis.password().is_none() {
        // The driver would leave out the name and come in as another user.
        return Err(refused("it has a user name without a password"));
    }
    if redis.db() < 0 {
        return Err(refused("the database number is negative"));
    }
    let redis = redis.clone().set_lib_name("fencelock", env!("CARGO_PKG_VERSION"));
    Ok(info.set_redis_settings(redis))
}

impl Shared {
    /// Connects, and asks for the version and for the rights of this user: one request.
    pub(super) async fn handshake(&self) -> Result<()> {
        let mut rights = scripts::RIGHTS.call(1);
        rights.arg(self.prefix.nowhere()).arg(self.prefix.channel(self.client));
        let mut commands = redis::pipe();
        commands.cmd("INFO").arg("server");
        commands.add_command(scripts::RIGHTS.with_source(&rights));
        let replies: Result<[_; 2], _> = self.send_all(&commands).await.try_into();
        let [info, rights] = replies.map_err(|_| self.server.unexpected("the handshake"))?;
        match info {
            Ok(info) => self.check_version(info)?,
            // The version is for a better error; a user need not have the right to ask for it.
            Err(fault) if fault.is_refusal() => {}
            Err(fault) => return Err(self.server.explain(&fault)),
        }
        self.check_rights(rights)
    }

    fn check_version(&self, info: Value) -> Result<()> {
        let info: String = from_redis_value(info).unwrap_or_default();
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        let unsupported = |what: String| {
            Err(Error::new(ErrorKind::Unsupported, format!("{} {what}", self.server)))
        };
        if field("redis_mode:").is_some_and(|mode| mode.trim() == "sentinel") {
            return unsupported("is a Sentinel, not a server that keeps data".to_owned());
        }
        let version = field("redis_version:").unwrap_or_default().trim();
        match version.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
            Some(major) if major < OLDEST_MAJOR => {
                unsupported(format!("is version {version}; locks need 5.0 or later"))
            }
            _ => Ok(()),
        }
    }

    fn check_rights(&self, reply: Result<Value, Fault>) -> Result<()> {
        let refused = reply.map_err(|fault| self.server.explain(&fault))?;
        let refused: Vec<String> =
            from_redis_value(refused).map_err(|_| self.server.unexpected("the handshake"))?;
        // What else the server refuses now, as a full or read-only one does, may pass until the
        // first lock is taken, and shows there.
        let missing: Vec<&str> =
            refused.iter().map(String::as_str).filter(|text| is_missing_right(text)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::AuthFailed,
            format!(
                "{} refuses this user rights that locks need on keys and channels that begin with the prefix: {}",
                self.server,
                missing.join("; ")
            ),
        ))
    }
}
