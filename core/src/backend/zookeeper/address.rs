//! What a ZooKeeper URL and its options say, checked before any I/O.

use super::escape::{decode, escape, is_accepted};
use crate::error::{Error, Result};
use crate::name::Name;
use crate::url::Target;

const ALLOWED: &str = "allowed is zookeeper://[user:password@]host[:port],host[:port][/chroot]";

/// Which ensemble, and how to come in. Its `Debug` shows no password.
#[derive(Clone)]
pub(super) struct Address {
    /// `host[:port]`, at least one.
    pub(super) hosts: Vec<String>,
    /// Without a slash at its end; empty if there is none.
    pub(super) chroot: String,
    /// `user:password`
    pub(super) digest: Option<String>,
}

impl Address {
    /// Nothing of the URL is shown in an error: it may hold a password.
    pub(super) fn parse(target: &Target) -> Result<Self> {
        let rest = target.after_scheme();
        let rest = rest.strip_prefix("//").ok_or_else(|| refused("// is missing"))?;
        if rest.contains(['?', '#']) {
            return Err(refused("it has options that ZooKeeper does not know, after ? or #"));
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        if !hosts.iter().all(|host| is_host(host)) {
            return Err(refused("a host or port does not parse"));
        }
        let chroot = decode(path).ok_or_else(|| refused("the chroot has a stray %"))?;
        let chroot = chroot.trim_end_matches('/').to_owned();
        if !chroot.is_empty() {
            check_path(&chroot).map_err(|fault| refused(&format!("the chroot {fault}")))?;
        }
        Ok(Address { hosts, chroot, digest: user.map(digest).transpose()? })
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

fn digest(user: &str) -> Result<String> {
    let (name, password) =
        user.split_once(':').ok_or_else(|| refused("it has a user name without a password"))?;
    match (decode(name), decode(password)) {
        (Some(name), Some(password)) if !name.is_empty() && !name.contains(':') => {
            Ok(format!("{name}:{password}"))
        }
        _ => Err(refused("the user name is empty or has a colon, or a % is stray")),
    }
}

fn refused(why: &str) -> Error {
    Error::invalid(format!("the ZooKeeper URL is not valid: {why}; {ALLOWED}"))
}

fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, "")) => (name, None),
            Some((name, port)) => match port.strip_prefix(':') {
                Some(port) => (name, Some(port)),
                None => return false,
            },
            None => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let has_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    let is_sign = |sign: char| sign.is_alphanumeric() || "-._:%".contains(sign);
    has_port && !name.is_empty() && name.chars().all(is_sign)
}

/// What is wrong with an absolute path, if anything is.
fn check_path(path: &str) -> std::result::Result<(), &'static str> {
    let Some(rest) = path.strip_prefix('/') else {
        return Err("does not begin with /");
    };
    for element in rest.split('/') {
        match element {
            "" => return Err("has an empty element"),
            "." | ".." => return Err("has an element . or .."),
            _ if !element.chars().all(is_accepted) => {
                return Err("has a character that ZooKeeper refuses");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where the locks are, below the chroot.
#[derive(Clone, Debug)]
pub(super) struct Root {
    /// Without a slash at its end; empty for `/` itself.
    path: String,
    /// Whether it is the root of the whole ensemble, where `zookeeper` is taken.
    is_top: bool,
}

impl Root {
    pub(super) fn new(root: &str, chroot: &str) -> Result<Self> {
        let path = if root == "/" { "" } else { root };
        if root != "/" {
            check_path(path).map_err(|fault| {
                Error::invalid(format!(
                    "root is {root:?}, which {fault}; allowed is an absolute path such as /fencelock, or /"
                ))
            })?;
        }
        let is_system = |path: &str| path == "/zookeeper" || path.starts_with("/zookeeper/");
        if is_system(&format!("{chroot}{path}")) {
            return Err(Error::invalid(
                "root is below /zookeeper, which is the servers' own; allowed is an absolute path such as /fencelock, or /",
            ));
        }
        Ok(Root { path: path.to_owned(), is_top: path.is_empty() && chroot.is_empty() })
    }

    /// As an argument of a request.
    pub(super) fn path(&self) -> &str {
        if self.path.is_empty() { "/" } else { &self.path }
    }

    /// The node of a lock, below which its contenders are.
    pub(super) fn directory(&self, name: &Name) -> Result<String> {
        if self.is_top && name.as_str() == "zookeeper" {
            return Err(Error::invalid(
                "no lock can have this name when root is /: the node /zookeeper is the servers' own",
            ));
        }
        Ok(self.child(&escape(name.as_str())))
    }

    pub(super) fn child(&self, element: &str) -> String {
        format!("{}/{element}", self.path)
    }

    /// The root and the nodes above it, topmost first; none if that is `/`.
    pub(super) fn ancestors(&self) -> Vec<String> {
        let ends = self.path.match_indices('/').map(|(at, _)| at).skip(1);
        let all = ends.chain((!self.path.is_empty()).then_some(self.path.len()));
        all.map(|end| self.path[..end].to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address> {
        Address::parse(&Target::parse(url).unwrap().0)
    }

    #[test]
    fn g10_a_url_names_hosts_credentials_and_chroot() {
        let address = parse("zookeeper://a,b:2182,[::1]:2183/x/y/").unwrap();
        assert_eq!(address.hosts, ["a", "b:2182", "[::1]:2183"]);
        assert_eq!((address.chroot.as_str(), address.digest), ("/x/y", None));
        let address = parse("zookeeper://us%40er:p%3Aa%2Fss@h").unwrap();
        assert_eq!(address.digest.as_deref(), Some("us@er:p:a/ss"));
        assert_eq!(address.chroot, "");
        assert!(!format!("{address:?}").contains("p:a"), "{address:?}");
    }

    #[test]
    fn g10_urls_that_do_not_parse_are_refused_and_show_no_password() {
        for url in [
            "zookeeper:h",
            "zookeeper://",
            "zookeeper://a,,b",
            "zookeeper://a:0",
            "zookeeper://a:99999",
            "zookeeper://a:x",
            "zookeeper://hunter2@a",
            "zookeeper://:hunter2@a",
            "zookeeper://u%3Av:hunter2@a",
            "zookeeper://u:hunter2%@a",
            "zookeeper://u:hunter2@a//x",
            "zookeeper://u:hunter2@a/x/../y",
            "zookeeper://u:hunter2@a/x%01",
            "zookeeper://u:hunter2@a?x=1",
            "zookeeper://a b",
            "zookeeper://[::1",
        ] {
            let error = parse(url).unwrap_err();
            assert_eq!(error.kind().code(), "INVALID_ARGUMENT", "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn g10_a_root_is_an_absolute_path_outside_the_servers_own() {
        for root in ["", "x", "/x/", "//", "/a//b", "/.", "/a/..", "/🔒", "/zookeeper/x"] {
            assert_eq!(
                Root::new(root, "").unwrap_err().kind().code(),
                "INVALID_ARGUMENT",
                "{root}"
            );
        }
        let top = Root::new("/", "").unwrap();
        let zookeeper = Name::new("zookeeper").unwrap();
        assert!(top.directory(&zookeeper).is_err());
        assert_eq!(top.directory(&Name::new("a/b").unwrap()).unwrap(), "/a%2Fb");
        assert!(top.ancestors().is_empty());
        let below = Root::new("/", "/app").unwrap();
        assert_eq!(below.directory(&zookeeper).unwrap(), "/zookeeper");
        let deep = Root::new("/a/b/c", "").unwrap();
        assert_eq!(deep.ancestors(), ["/a", "/a/b", "/a/b/c"]);
        assert_eq!(deep.directory(&zookeeper).unwrap(), "/a/b/c/zookeeper");
        assert_eq!((deep.path(), top.path()), ("/a/b/c", "/"));
    }
}
