//! A real mongod of one test, ended when it is dropped: alone, or a member of a `MongoSet`.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::error::Result;
use mongodb::options::ClientOptions;
use tempfile::TempDir;

use crate::background::blocking;
use crate::ports::Port;
use crate::server_process::{ServerProcess, data_dir};

/// A user with every right, where a server asks for passwords.
pub(crate) const USER: &str = "root";
pub(crate) const PASSWORD: &str = "sesame";

pub(crate) struct MongoServer {
    pub(crate) process: ServerProcess,
    port: Port,
    /// `USER:PASSWORD@` of those who may give admin commands, or nothing.
    admin: String,
    _dir: TempDir,
}

impl MongoServer {
    /// A server that is no replica set.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts it with more arguments, as on the command line.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let mut server = Self::launch(Port::reserve(), arguments);
        server.wait();
        server
    }

    /// A server that asks for passwords.
    pub(crate) fn start_locked() -> Self {
        let mut server = Self::start_with(&["--auth"]);
        server.lock();
        server
    }

    /// Returns before it answers.
    pub(crate) fn launch(port: Port, arguments: &[&str]) -> Self {
        let dir = data_dir();
        let program = std::env::var("FENCELOCK_TEST_MONGOD").unwrap_or_else(|_| "mongod".into());
        let mut command = Command::new(program);
        command
            .args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"])
            // A journal begins with 300 MB otherwise.
            .args(["--wiredTigerEngineConfigString", "log=(prealloc=false,file_max=8MB)"])
            // Fail points, and members that say who they are (`MongoSet` cuts links by that).
            .args(["--setParameter", "enableTestCommands=1"])
            .args(["--setParameter", "diagnosticDataCollectionEnabled=false"])
            .args(["--port", &port.number().to_string(), "--dbpath"])
            .arg(dir.path())
            .args(arguments);
        let process = ServerProcess::start(command, &dir.path().join("log"));
        MongoServer { process, port, admin: String::new(), _dir: dir }
    }

    /// Waits until it answers.
    pub(crate) fn wait(&mut self) {
        let port = self.port.number();
        let answers = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        self.process.until("a mongod that answers", answers);
    }

    /// Makes the user, which the server allows from its own host while there is none.
    pub(crate) fn lock(&mut self) {
        self.create_user(USER, PASSWORD, doc! { "role": "root", "db": "admin" });
        self.unlock_with(USER, PASSWORD);
    }

    /// Gives admin commands as this user.
    pub(crate) fn unlock_with(&mut self, user: &str, password: &str) {
        self.admin = format!("{user}:{password}@");
    }

    pub(crate) fn create_user(&self, name: &str, password: &str, role: Document) {
        self.admin(doc! { "createUser": name, "pwd": password, "roles": [role] });
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    /// The address of this server alone, with the rights of admin commands.
    pub(crate) fn url(&self) -> String {
        self.url_with(&self.admin)
    }

    /// The same as a user of [`MongoServer::create_user`].
    pub(crate) fn url_as(&self, user: &str, password: &str) -> String {
        self.url_with(&format!("{user}:{password}@"))
    }

    fn url_with(&self, user: &str) -> String {
        format!("mongodb://{user}{}/", self.port.host())
    }

    /// SIGSTOP: it keeps its connections and answers nothing.
    pub(crate) fn freeze(&mut self) {
        self.process.freeze();
    }

    pub(crate) fn thaw(&mut self) {
        self.process.thaw();
    }

    /// SIGKILL; what its journal has stays.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same port with the same data.
    pub(crate) fn restart(&mut self) {
        self.process.restart();
        self.wait();
    }

    /// A command to the `admin` database of this very server.
    pub(crate) fn admin(&self, command: Document) -> Document {
        let answer = self.try_admin(command.clone());
        answer.unwrap_or_else(|e| panic!("{command}: {e}"))
    }

    pub(crate) fn try_admin(&self, command: Document) -> Result<Document> {
        command_to(&self.url(), command)
    }

    /// Makes the next `times` answers to these commands fail so: see `failCommand` in MongoDB's
    /// sources. Zero times ends it.
    pub(crate) fn fail_commands(&self, times: i32, data: Document) {
        let mode = if times == 0 { "off".into() } else { mongodb::bson::bson!({ "times": times }) };
        self.admin(doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data });
    }
}

/// A command to the `admin` database of one server, with a connection of its own: one that is kept
/// would carry the faults of one step of a test into the next.
fn command_to(url: &str, command: Document) -> Result<Document> {
    let url = format!("{url}?directConnection=true");
    blocking(async move {
        let mut options = ClientOptions::parse(url).await?;
        options.server_selection_timeout = Some(Duration::from_secs(10));
        options.connect_timeout = Some(Duration::from_secs(10));
        let client = Client::with_options(options)?;
        let answer = client.database("admin").run_command(command).await;
        client.shutdown().immediate(true).await;
        answer
    })
}

/// A file with the secret that the members of a locked set share.
pub(crate) fn key_file(dir: &Path) -> PathBuf {
    let file = dir.join("key");
    std::fs::write(&file, "c2VzYW1lLXNlc2FtZQ==").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    file
}
