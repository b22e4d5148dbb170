//! Splits a URL into the backend's own part and the client options that begin with `fl.`.

use std::time::Duration;

use url::form_urlencoded;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{ClientOptions, Family};

/// For messages.
pub(crate) const SCHEMES: &str = "memory:, memory:NAME, file:///dir, redis://, redis+unix://, redis-cluster:// and redis-sentinel:// (rediss with TLS), mongodb://, mongodb+srv:// and zookeeper://";

/// Where a client connects to. Its `Debug` shows no password.
#[derive(Clone)]
pub(crate) struct Target {
    /// Lower case, without the colon.
    pub(crate) scheme: String,
    /// The whole URL, less the options that begin with `fl.`.
    pub(crate) url: String,
}

impl Target {
    pub(crate) fn parse(url: &str) -> Result<(Target, ClientOptions)> {
        let Some((scheme, _)) = url.split_once(':') else {
            return Err(Error::invalid(format!("the URL has no scheme; allowed are {SCHEMES}")));
        };
        let mut options = ClientOptions::new();
        let url = match url.split_once('?') {
            None => url.to_owned(),
            Some((base, query)) => {
                let mut rest = Vec::new();
                for pair in query.split('&') {
                    match form_urlencoded::parse(pair.as_bytes()).next() {
                        Some((key, value)) if key.starts_with("fl.") => {
                            set(&mut options, &key, &value)?;
                        }
                        _ => rest.push(pair),
                    }
                }
                if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) }
            }
        };
        Ok((Target { scheme: scheme.to_ascii_lowercase(), url }, options))
    }

    /// Which backend the scheme names.
    pub(crate) fn family(&self) -> Result<Family> {
        match self.scheme.as_str() {
            "memory" => Ok(Family::Memory),
            "file" => Ok(Family::File),
            "redis" | "rediss" | "redis+unix" | "redis-cluster" | "rediss-cluster"
            | "redis-sentinel" | "rediss-sentinel" => Ok(Family::Redis),
            "mongodb" | "mongodb+srv" => Ok(Family::MongoDb),
            "zookeeper" => Ok(Family::ZooKeeper),
            scheme => Err(Error::new(
                ErrorKind::Unsupported,
                format!("URL scheme {scheme:?} is not known; supported are {SCHEMES}"),
            )),
        }
    }

    /// What follows the scheme and its colon.
    pub(crate) fn after_scheme(&self) -> &str {
        self.url.split_once(':').map_or("", |(_, rest)| rest)
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:…", self.scheme)
    }
}

fn set(options: &mut ClientOptions, key: &str, value: &str) -> Result<()> {
    let millis = || {
        value.parse().map(Duration::from_millis).map_err(|_| {
            Error::invalid(format!("URL option {key} is {value:?}; it takes whole milliseconds"))
        })
    };
    match key {
        "fl.prefix" => options.prefix = Some(value.to_owned()),
        "fl.collection" => options.collection = Some(value.to_owned()),
        "fl.root" => options.root = Some(value.to_owned()),
        "fl.node_layout" => options.node_layout = Some(value.parse()?),
        "fl.connect_timeout_ms" => options.connect_timeout = Some(millis()?),
        "fl.request_timeout_ms" => options.request_timeout = Some(millis()?),
        "fl.replicas" => {
            options.replicas = Some(value.parse().map_err(|_| {
                Error::invalid(format!("URL option {key} is {value:?}; it takes a whole number"))
            })?);
        }
        "fl.tls_ca" => options.tls.ca = Some(value.into()),
        "fl.tls_cert" => options.tls.cert = Some(value.into()),
        "fl.tls_key" => options.tls.key = Some(value.into()),
        "fl.sentinel_user" => options.sentinel.user = Some(value.to_owned()),
        "fl.sentinel_password" => options.sentinel.password = Some(value.to_owned()),
        _ => {
            return Err(Error::invalid(format!(
                "URL option {key} is unknown; allowed are fl.prefix, fl.collection, fl.root, fl.node_layout, fl.connect_timeout_ms, fl.request_timeout_ms, fl.replicas, fl.tls_ca, fl.tls_cert, fl.tls_key, fl.sentinel_user and fl.sentinel_password"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g10_own_options_are_taken_out_and_the_drivers_stay() {
        let (target, options) = Target::parse(
            "redis://u:p@h:1/2?fl.prefix=a%3A&protocol=resp3&fl.request_timeout_ms=50",
        )
        .unwrap();
        assert_eq!(target.url, "redis://u:p@h:1/2?protocol=resp3");
        assert_eq!(target.scheme, "redis");
        assert_eq!(options.prefix.as_deref(), Some("a:"));
        assert_eq!(options.request_timeout, Some(Duration::from_millis(50)));
        assert!(!format!("{target:?}").contains('p'));
        let (target, options) = Target::parse("memory:?fl.prefix=").unwrap();
        assert_eq!((target.url.as_str(), options.prefix.as_deref()), ("memory:", Some("")));
    }

    #[test]
    fn g10_unknown_and_malformed_options_are_refused() {
        for url in ["", "localhost", "memory:?fl.ttl=3", "memory:?fl.request_timeout_ms=1.5"] {
            assert_eq!(Target::parse(url).unwrap_err().kind().code(), "INVALID_ARGUMENT", "{url}");
        }
    }
}
