//! Where a URL says that the servers are, and the collection that the locks are in.

use std::time::Duration;

use mongodb::options::ClientOptions;

use super::fault::Server;
use crate::error::{Error, Result};
use crate::options::Settings;
use crate::url::Target;

/// The driver's own default of 10 lets a few dozen acquires that come together wait for each other.
const CONNECTIONS: u32 = 100;
/// How many of them are opened at once; each costs the server a password check.
const CONNECTING: u32 = 4;

/// The collection of the locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Namespace {
    pub(super) database: String,
    pub(super) collection: String,
}

impl Namespace {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let refused = |fault: &str| {
            Error::invalid(format!(
                "collection is {text:?} and {fault}; it takes `database.collection`, without `$` and NUL, the database without any of `/\\. \"`, the collection not beginning with `system.`, 200 bytes at most"
            ))
        };
        let (database, collection) =
            text.split_once('.').ok_or_else(|| refused("has no dot between its two parts"))?;
        if database.is_empty() || collection.is_empty() {
            return Err(refused("has an empty part"));
        }
        if text.contains(['\0', '$']) || database.contains(['/', '\\', ' ', '"']) {
            return Err(refused("contains a character that is not allowed"));
        }
        if collection.starts_with("system.") || collection.starts_with('.') {
            return Err(refused("is a name that the server keeps for itself"));
        }
        // The server's own limits: 63 bytes for a database, and 235 for both in a sharded setup.
        if database.len() > 63 || text.len() > 200 {
            return Err(refused("is too long"));
        }
        Ok(Namespace { database: database.to_owned(), collection: collection.to_owned() })
    }
}

/// What the driver is to do. Options of the URL hold, except those that would make a lock unsafe:
/// concerns and read preference stand in each command, and nothing is sent twice behind our back.
pub(super) async fn driver_options(target: &Target, settings: &Settings) -> Result<ClientOptions> {
    let mut options = ClientOptions::parse(&target.url)
        .await
        .map_err(|error| Server::of_url().explain_url(&error, &target.url))?;
    if options.load_balanced == Some(true) {
        return Err(super::fault::routers());
    }
    options.retry_writes = Some(false);
    options.retry_reads = Some(false);
    options.write_concern = None;
    options.read_concern = None;
    options.selection_criteria = None;
    options.app_name.get_or_insert_with(|| "fencelock".to_owned());
    options.max_pool_size.get_or_insert(CONNECTIONS);
    options.max_connecting.get_or_insert(CONNECTING);
    options.connect_timeout.get_or_insert(settings.connect_timeout);
    // Sooner than we give up ourselves, because the driver can say why.
    let selection = settings.connect_timeout * 9 / 10;
    let selection = selection.max(Duration::from_millis(1));
    options.server_selection_timeout =
        Some(options.server_selection_timeout.map_or(selection, |given| given.min(selection)));
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{ClientOptions, Family};

    #[test]
    fn g10_the_collection_is_checked_and_the_error_says_what_is_allowed() {
        let parsed = Namespace::parse("a.b.c").unwrap();
        assert_eq!((parsed.database.as_str(), parsed.collection.as_str()), ("a", "b.c"));
        let longest = format!("d.{}", "x".repeat(198));
        assert!(Namespace::parse(&longest).is_ok());
        for text in [
            "",
            "locks",
            ".locks",
            "db.",
            "db..x",
            "db.a$b",
            "d$.a",
            "db.a\0b",
            "db.system.users",
            "a b.c",
            "a/b.c",
            &format!("{longest}x"),
            &format!("{}.c", "d".repeat(64)),
        ] {
            let error = Namespace::parse(text).unwrap_err();
            assert_eq!(error.kind().code(), "INVALID_ARGUMENT", "{text:?}");
            assert!(error.to_string().contains("`database.collection`"), "{error}");
        }
    }

    #[tokio::test]
    async fn g10_urls_are_checked_without_io_and_show_no_password() {
        let settings = crate::options::ClientOptions::new().settled(Family::MongoDb).unwrap();
        for (url, code) in [
            ("mongodb://user:hunter2@h:notaport/", "INVALID_ARGUMENT"),
            ("mongodb://user:hunter2@/", "INVALID_ARGUMENT"),
            ("mongodb://us:er:hunter2@h/", "INVALID_ARGUMENT"),
            ("mongodb://h/?tls=maybe", "INVALID_ARGUMENT"),
            ("mongodb://user:hunter2@h/?loadBalanced=true", "UNSUPPORTED"),
        ] {
            let (target, _) = Target::parse(url).unwrap();
            let error = driver_options(&target, &settings).await.unwrap_err();
            assert_eq!(error.kind().code(), code, "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[tokio::test]
    async fn g1_the_url_cannot_weaken_a_write_or_have_it_repeated() {
        let url = "mongodb://h/?w=0&journal=false&readPreference=secondary&retryWrites=true&retryReads=true&readConcernLevel=local&appName=mine&maxPoolSize=7";
        let settings = ClientOptions::new().settled(Family::MongoDb).unwrap();
        let (target, _) = Target::parse(url).unwrap();
        let options = driver_options(&target, &settings).await.unwrap();
        assert_eq!((options.retry_writes, options.retry_reads), (Some(false), Some(false)));
        assert!(options.write_concern.is_none() && options.read_concern.is_none());
        assert!(options.selection_criteria.is_none());
        assert_eq!((options.app_name.as_deref(), options.max_pool_size), (Some("mine"), Some(7)));
    }
}
