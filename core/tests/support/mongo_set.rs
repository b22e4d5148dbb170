//! A real MongoDB replica set of one test, its members ended when it is dropped.

use mongodb::bson::doc;
use mongodb::bson::oid::ObjectId;
use tempfile::TempDir;

use crate::links::{Caller, Links, Way};
use crate::mongo_server::{MongoServer, PASSWORD, USER, key_file};
use crate::ports::Port;
use crate::server_process::{data_dir, until};

const MEMBERS: usize = 3;
const NAME: &str = "rs0";

pub(crate) struct MongoSet {
    pub(crate) members: Vec<MongoServer>,
    /// HOST:PORT of each member, as the set itself and its clients know it.
    hosts: Vec<String>,
    links: Option<Links>,
    is_locked: bool,
    _dir: TempDir,
}

impl MongoSet {
    pub(crate) fn start() -> Self {
        Self::start_as(false, false)
    }

    /// Its members ask for passwords: those of [`USER`] are in the URL.
    pub(crate) fn start_locked() -> Self {
        Self::start_as(true, false)
    }

    /// The links between its members can be cut.
    pub(crate) fn start_with_links() -> Self {
        Self::start_as(false, true)
    }

    fn start_as(is_locked: bool, has_links: bool) -> Self {
        let dir = data_dir();
        let key = key_file(dir.path()).display().to_string();
        let mut arguments = vec!["--replSet", NAME, "--oplogSize", "50"];
        if is_locked {
            arguments.extend(["--keyFile", &key]);
        }
        let ports: Vec<_> = (0..MEMBERS).map(|_| Port::reserve()).collect();
        let mut hosts: Vec<_> = ports.iter().map(Port::host).collect();
        let links = has_links.then(|| {
            let links = Links::new();
            let members: Vec<_> = ports.iter().map(Port::number).collect();
            for (n, port) in members.iter().enumerate() {
                let way = Way::new();
                hosts[n] = way.host();
                let caller = Caller::Tells { port: port_in_greeting, members: members.clone() };
                links.lead(way, caller, n, *port);
            }
            links
        });
        let members = ports.into_iter().map(|port| MongoServer::launch(port, &arguments)).collect();
        let mut set = MongoSet { members, hosts, links, is_locked, _dir: dir };
        set.members.iter_mut().for_each(MongoServer::wait);
        let members: Vec<_> =
            (0..).zip(&set.hosts).map(|(n, host)| doc! { "_id": n, "host": host }).collect();
        // With the usual ten seconds each election takes as long.
        let settings = doc! { "electionTimeoutMillis": 1500, "heartbeatIntervalMillis": 200 };
        let config = doc! { "_id": NAME, "members": members, "settings": settings };
        set.members[0].admin(doc! { "replSetInitiate": config });
        set.settle();
        if is_locked {
            let primary = set.primary();
            set.members[primary].lock();
            set.members.iter_mut().for_each(|member| member.unlock_with(USER, PASSWORD));
        }
        set
    }

    /// All members as seeds.
    pub(crate) fn url(&self) -> String {
        let user = if self.is_locked { format!("{USER}:{PASSWORD}@") } else { String::new() };
        self.url_with(&user)
    }

    /// The same as a user of [`MongoServer::create_user`].
    pub(crate) fn url_as(&self, user: &str, password: &str) -> String {
        self.url_with(&format!("{user}:{password}@"))
    }

    fn url_with(&self, user: &str) -> String {
        format!("mongodb://{user}{}/?replicaSet={NAME}", self.hosts.join(","))
    }

    /// The number of the primary; waits until there is one among the members that live.
    pub(crate) fn primary(&self) -> usize {
        self.primary_other_than(None)
    }

    /// The numbers of those that are not the primary.
    pub(crate) fn secondaries(&self) -> Vec<usize> {
        let primary = self.primary();
        (0..MEMBERS).filter(|n| *n != primary).collect()
    }

    /// The primary after an election that the test has brought about.
    pub(crate) fn primary_after(&self, before: usize) -> usize {
        self.primary_other_than(Some(before))
    }

    fn primary_other_than(&self, other: Option<usize>) -> usize {
        until("a primary", || {
            let claims = (0..MEMBERS).filter_map(|n| Some((self.election(n)?, n)));
            // One that was cut off does not know yet that it is none any more.
            claims.max().map(|(_, n)| n).filter(|n| Some(*n) != other)
        })
    }

    /// Of which election a member says that it won it, if it is the primary.
    fn election(&self, member: usize) -> Option<ObjectId> {
        let member = &self.members[member];
        if !member.process.is_live() {
            return None;
        }
        let hello = member.try_admin(doc! { "hello": 1 }).ok()?;
        hello.get_bool("isWritablePrimary").ok()?.then(|| hello.get_object_id("electionId").ok())?
    }

    /// Waits until all members that live are the primary and secondaries.
    pub(crate) fn settle(&self) {
        until("a primary and healthy secondaries", || {
            let is = |member: &MongoServer, role| {
                let hello = member.try_admin(doc! { "hello": 1 });
                hello.is_ok_and(|hello| hello.get_bool(role).unwrap_or(false))
            };
            let live = || self.members.iter().filter(|member| member.process.is_live());
            let primaries = live().filter(|member| is(member, "isWritablePrimary")).count();
            let secondaries = live().filter(|member| is(member, "secondary")).count();
            (primaries == 1 && secondaries == live().count() - 1).then_some(())
        });
    }

    /// The primary hands over in good order; returns the number of the next one.
    pub(crate) fn step_down(&self) -> usize {
        let primary = self.primary();
        let command = doc! { "replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 4 };
        self.members[primary].admin(command);
        self.primary_after(primary)
    }

    /// Cuts the primary off from the other members, which elect another; clients reach all of
    /// them. Returns the numbers of the old and the new primary.
    pub(crate) fn isolate_primary(&self) -> (usize, usize) {
        let primary = self.primary();
        self.links().isolate(primary, MEMBERS);
        (primary, self.primary_after(primary))
    }

    /// For [`MongoSet::start_with_links`].
    pub(crate) fn links(&self) -> &Links {
        self.links.as_ref().expect("a set that was started with links")
    }
}

/// The port of the member that begins a connection so; a client does not say one. Members that
/// take test commands do, for MongoDB's own tests of partitions.
fn port_in_greeting(greeting: &[u8]) -> Option<u16> {
    const KEY: &[u8] = b"\x02hostInfo\0";
    let key = greeting.windows(KEY.len()).position(|part| part == KEY)?;
    // Four bytes of length, then a text that ends with NUL.
    let text = greeting.get(key + KEY.len() + 4..)?.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok()?.rsplit(':').next()?.parse().ok()
}
