//! What a Redis URL says: one server, a cluster, or the sentinels of a service.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};
use url::Url;
use url::form_urlencoded;

use crate::error::{Error, Result};
use crate::options::SentinelUser;
use crate::url::Target;

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
const ALLOWED: &str = "allowed are redis://[user:password@]host[:port][/database], redis+unix:///path[?db=&user=&pass=], redis-cluster://[user:password@]host:port,host:port and redis-sentinel://[user:password@]host:port,host:port/service[/database]; with rediss in place of redis they use TLS";

/// Which servers there are, and how to come in.
pub(super) struct Deployment {
    pub(super) kind: Kind,
    /// The server, the nodes to begin with, or the sentinels. At least one.
    pub(super) addresses: Vec<ConnectionAddr>,
    /// Credentials and database, for the servers that keep data.
    pub(super) settings: RedisConnectionInfo,
    pub(super) tls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Single,
    Cluster,
    /// The primary of this service.
    Sentinel(String),
}

impl Deployment {
    /// Nothing of the URL is shown in an error: it may hold a password.
    pub(super) fn parse(target: &Target) -> Result<Self> {
        let scheme = target.scheme.as_str();
        let tls = scheme.starts_with("rediss");
        if tls && target.url.contains('#') {
            return Err(refused("it ends in #…, but the server's certificate is always checked"));
        }
        let rest = target.after_scheme();
        let (kind, addresses, info) = match scheme {
            "redis" | "rediss" => single(&format!("redis:{rest}"))?,
            "redis-cluster" | "rediss-cluster" => {
                let list = List::of(rest)?;
                let (addresses, info) = list.servers(REDIS_PORT, list.tail)?;
                if info.redis_settings().db() != 0 {
                    return Err(refused("it names a database, and a cluster has only 0"));
                }
                (Kind::Cluster, addresses, info)
            }
            "redis-sentinel" | "rediss-sentinel" => {
                let list = List::of(rest)?;
                let (service, tail) = service(list.tail)?;
                let (addresses, info) = list.servers(SENTINEL_PORT, &tail)?;
                (Kind::Sentinel(service), addresses, info)
            }
            _ => single(&target.url)?,
        };
        let settings = info.redis_settings().clone();
        let settings = settings.set_lib_name("fencelock", env!("CARGO_PKG_VERSION"));
        Ok(Deployment { kind, addresses, settings, tls })
    }
}

/// How to come in at the sentinels.
pub(super) fn sentinel_settings(user: &SentinelUser) -> Result<RedisConnectionInfo> {
    let settings = RedisConnectionInfo::default();
    let settings = settings.set_lib_name("fencelock", env!("CARGO_PKG_VERSION"));
    Ok(match (&user.user, &user.password) {
        (None, None) => settings,
        (None, Some(password)) => settings.set_password(password),
        (Some(user), Some(password)) => settings.set_username(user).set_password(password),
        (Some(_), None) => {
            return Err(Error::invalid("sentinel_user is given without sentinel_password"));
        }
    })
}

fn refused(why: &str) -> Error {
    Error::invalid(format!("the Redis URL is not valid: {why}; {ALLOWED}"))
}

fn single(url: &str) -> Result<(Kind, Vec<ConnectionAddr>, ConnectionInfo)> {
    let info = checked(url)?;
    Ok((Kind::Single, vec![info.addr().clone()], info))
}

/// What the driver makes of a URL for one server.
fn checked(url: &str) -> Result<ConnectionInfo> {
    let info = url.into_connection_info().map_err(|error| {
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
    Ok(info)
}

/// `//[user:password@]host[:port],host[:port]/tail?query`
struct List<'a> {
    /// With the `@`, if there is one.
    user: &'a str,
    hosts: &'a str,
    /// Path and query.
    tail: &'a str,
}

impl<'a> List<'a> {
    fn of(rest: &'a str) -> Result<Self> {
        let rest = rest.strip_prefix("//").ok_or_else(|| refused("// is missing"))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let at = authority.rfind('@').map_or(0, |at| at + 1);
        let (user, hosts) = authority.split_at(at);
        Ok(List { user, hosts, tail })
    }

    /// The addresses, and what the driver reads out of user and tail.
    fn servers(
        &self,
        default_port: u16,
        tail: &str,
    ) -> Result<(Vec<ConnectionAddr>, ConnectionInfo)> {
        let mut addresses = Vec::new();
        let mut first = None;
        for host in self.hosts.split(',') {
            if host.is_empty() {
                return Err(refused("a host is empty"));
            }
            let has_port = Url::parse(&format!("redis://{host}"))
                .map_err(|_| refused("a host does not parse"))?
                .port()
                .is_some();
            let port = if has_port { String::new() } else { format!(":{default_port}") };
            let info = checked(&format!("redis://{}{host}{port}{tail}", self.user))?;
            addresses.push(info.addr().clone());
            first.get_or_insert(info);
        }
        let first = first.ok_or_else(|| refused("it names no host"))?;
        Ok((addresses, first))
    }
}

/// Takes the service out of `/service[/database][?query]`; the rest is as for one server.
fn service(tail: &str) -> Result<(String, String)> {
    let (path, query) = tail.split_at(tail.find(['?', '#']).unwrap_or(tail.len()));
    let path = path.strip_prefix('/').unwrap_or_default();
    let (service, database) = path.split_once('/').unwrap_or((path, ""));
    // A form's rules for percent signs, in which a plus would be a space.
    let service = format!("={}", service.replace('+', "%2B"));
    let service = form_urlencoded::parse(service.as_bytes())
        .next()
        .map_or(String::new(), |(_, value)| value.into_owned());
    if service.is_empty() {
        return Err(refused("the name of the service is missing"));
    }
    Ok((service, format!("/{database}{query}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Deployment> {
        Deployment::parse(&Target::parse(url)?.0)
    }

    fn shown(deployment: &Deployment) -> Vec<String> {
        deployment.addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn g10_every_form_of_url_is_taken_apart() {
        for (url, kind, addresses, db, tls) in [
            ("redis://h/3", Kind::Single, &["h:6379"][..], 3, false),
            ("rediss://u:p@h:1", Kind::Single, &["h:1"], 0, true),
            ("redis+unix:///a/b?db=2", Kind::Single, &["/a/b"], 2, false),
            ("redis-cluster://a,b:2,[::1]:3", Kind::Cluster, &["a:6379", "b:2", "::1:3"], 0, false),
            ("rediss-cluster://u:p@a:1/", Kind::Cluster, &["a:1"], 0, true),
            (
                "redis-sentinel://a,b:2/m%2Fx/4",
                Kind::Sentinel("m/x".into()),
                &["a:26379", "b:2"],
                4,
                false,
            ),
            ("rediss-sentinel://u:p%40@a/m+n", Kind::Sentinel("m+n".into()), &["a:26379"], 0, true),
        ] {
            let deployment = parse(url).unwrap_or_else(|e| panic!("{url}: {e}"));
            assert_eq!((&deployment.kind, deployment.tls), (&kind, tls), "{url}");
            assert_eq!(shown(&deployment), addresses, "{url}");
            assert_eq!(deployment.settings.db(), db, "{url}");
        }
        let sentinel = parse("rediss-sentinel://u:p%40@a/m").unwrap().settings;
        assert_eq!((sentinel.username(), sentinel.password()), (Some("u"), Some("p@")));
    }

    #[test]
    fn g10_what_names_no_server_is_refused_without_showing_the_password() {
        for url in [
            "redis-cluster:a",
            "redis-cluster://",
            "redis-cluster://u:hunter2@a,,b",
            "redis-cluster://u:hunter2@a/1",
            "redis-cluster://hunter2@a",
            "redis-cluster://u:hunter2@a:x",
            "redis-sentinel://u:hunter2@a",
            "redis-sentinel://u:hunter2@a/",
            "redis-sentinel://u:hunter2@a/m/x",
            "redis-sentinel://u:hunter2@a/m/-1",
            "rediss://u:hunter2@h/#insecure",
            "redis://u:hunter2@h:x",
        ] {
            let error = parse(url).err().unwrap_or_else(|| panic!("{url} is taken"));
            assert_eq!(error.kind().code(), "INVALID_ARGUMENT", "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
