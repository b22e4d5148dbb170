//! The handshake that shows at once whether locks will work.

use futures_util::future::join_all;
use redis::{Value, from_redis_value};

use super::fault::{Fault, is_missing_right};
use super::keys::slot;
use super::link::Link;
use super::{Route, Shared, scripts};
use crate::error::{Error, ErrorKind, Result};

/// Older servers lack the commands that take a contender out of its queue, and replicate scripts
/// in a way that does not allow them to ask for the time.
const OLDEST_MAJOR: u32 = 5;

impl Shared {
    /// Connects, and asks for the version and for the rights of this user: one request, of a
    /// cluster one to each node that has slots.
    pub(super) async fn handshake(&self) -> Result<()> {
        let cluster = match &self.route {
            Route::One(link) => return self.greet(link, &self.prefix.nowhere()).await,
            Route::Cluster(cluster) => cluster,
        };
        let masters = cluster.masters().await.map_err(|fault| self.server.explain(&fault))?;
        let Some(slots) = masters.iter().map(|(_, s)| self.prefix.nowhere_in(*s)).collect() else {
            // All keys are in one slot, so only its node matters.
            let nowhere = self.prefix.nowhere();
            let link = cluster.link_of(slot(nowhere.as_bytes())).await;
            return self.greet(&link.map_err(|fault| self.server.explain(&fault))?, &nowhere).await;
        };
        let slots: Vec<String> = slots;
        let greetings = masters.iter().zip(&slots).map(|((link, _), key)| self.greet(link, key));
        // One that is down may be replaced soon; what another one refuses stays refused.
        let (mut up, mut trouble) = (false, None);
        for greeted in join_all(greetings).await {
            match greeted {
                Ok(()) => up = true,
                Err(error) if error.kind() == ErrorKind::Unavailable => trouble = Some(error),
                Err(error) => return Err(error),
            }
        }
        trouble.filter(|_| !up).map_or(Ok(()), Err)
    }

    async fn greet(&self, link: &Link, nowhere: &str) -> Result<()> {
        let mut rights = scripts::RIGHTS.call(1);
        rights.arg(nowhere).arg(self.prefix.channel(self.client));
        let mut commands = redis::pipe();
        commands.cmd("INFO").arg("server");
        commands.add_command(scripts::RIGHTS.with_source(&rights));
        if self.replicas > 0 {
            commands.cmd("WAIT").arg(0).arg(1);
        }
        let replies =
            link.send_all(&commands).await.map_err(|fault| self.server.explain(&fault))?;
        let mut replies = replies.into_iter();
        let (Some(info), Some(rights)) = (replies.next(), replies.next()) else {
            return Err(self.server.unexpected("the handshake"));
        };
        match info {
            Ok(info) => self.check_version(info)?,
            // The version is for a better error; a user need not have the right to ask for it.
            Err(fault) if fault.is_refusal() => {}
            Err(fault) => return Err(self.server.explain(&fault)),
        }
        self.check_rights(rights)?;
        match replies.next() {
            Some(Err(fault)) => Err(self.server.explain(&fault)),
            _ => Ok(()),
        }
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
