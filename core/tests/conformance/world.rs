//! Executes the steps of one case.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fencelock::{
    Client, ClientOptions, Ended, Error, Lease, Lock, LockInfo, LockOptions, Result as Answer,
    Token,
};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::backends::{Space, with_query};
use crate::cases::{Object, array, object, only, text};
use crate::shows;
use crate::values::{flag_of, maybe_text_of, maybe_time_of, text_of, texts_of, time_of};
use crate::words::{COMMON, WORDS};

/// Longer than anything but a hang takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a step did not give what it should: the library's own error, which may be expected, or a
/// difference from what the case says.
enum Fault {
    Library(Error),
    Case(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Library(error)
    }
}

impl From<String> for Fault {
    fn from(difference: String) -> Self {
        Fault::Case(difference)
    }
}

/// Executes all steps, and closes all clients whatever happened.
pub(crate) async fn run(space: Space, steps: &[Object]) -> Result<(), String> {
    let mut world = World { space, ..World::default() };
    let mut outcome = Ok(());
    for (number, step) in steps.iter().enumerate() {
        outcome = world.judged(step).await.map_err(|difference| {
            format!("step {}: {difference}\n  {}", number + 1, Value::Object(step.clone()))
        });
        if outcome.is_err() {
            break;
        }
    }
    for waiting in world.waiting.values() {
        waiting.abort();
    }
    world.leases.clear();
    for client in &world.all_clients {
        client.close().await;
    }
    outcome
}

/// What the steps have made so far, by name.
#[derive(Default)]
struct World {
    space: Space,
    clients: HashMap<String, Client>,
    /// Those too whose name was used again.
    all_clients: Vec<Client>,
    locks: HashMap<String, Lock>,
    leases: HashMap<String, Lease>,
    /// Of every lease, also of those that are gone.
    tokens: HashMap<String, Token>,
    waiting: HashMap<String, JoinHandle<Answer<Lease>>>,
    stopwatches: HashMap<String, Instant>,
}

impl World {
    /// Executes a step and judges how it ended.
    async fn judged(&mut self, step: &Object) -> Result<(), String> {
        let word = text(step, "do")?;
        let (_, keys) =
            WORDS.iter().find(|(w, _)| *w == word).ok_or_else(|| format!("unknown word {word}"))?;
        only(step, &[keys, COMMON].concat())?;
        let outcome = timeout(PATIENCE, self.execute(word, step))
            .await
            .map_err(|_| format!("no end after {PATIENCE:?}"))?;
        match (outcome, step.get("error")) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(code)) => Err(format!("succeeded, not {code}")),
            (Err(Fault::Case(difference)), _) => Err(difference),
            (Err(Fault::Library(error)), None) => {
                Err(format!("{}: {}", error.kind(), message(&error)))
            }
            (Err(Fault::Library(error)), Some(code)) => judge_error(step, code, &error),
        }
    }

    async fn execute(&mut self, word: &str, step: &Object) -> Result<(), Fault> {
        match word {
            "connect" => self.connect(step).await?,
            "close" => self.client(step)?.close().await,
            "lock" => {
                let options = lock_options(step)?;
                let lock = self.client(step)?.lock_with(&text_of(step, "name")?, options)?;
                self.locks.insert(text(step, "as")?.to_owned(), lock);
            }
            "acquire" => {
                let limit = maybe_time_of(step, "timeout_ms")?;
                let lease = self.lock(step)?.acquire_within(limit).await?;
                self.keep(text(step, "as")?, lease);
            }
            "try_acquire" => {
                let lease = self.lock(step)?.try_acquire().await?;
                if !step.contains_key("error") {
                    expect(step, lease.is_some())?;
                }
                if let Some(lease) = lease {
                    self.keep(text(step, "as")?, lease);
                }
            }
            "start_acquire" => {
                let lock = self.lock(step)?.clone();
                let limit = maybe_time_of(step, "timeout_ms")?;
                let task = tokio::spawn(async move { lock.acquire_within(limit).await });
                self.waiting.insert(text(step, "as")?.to_owned(), task);
            }
            "await_acquire" => {
                let lease = self.take_waiting(step)?.await.map_err(|e| e.to_string())??;
                self.keep(text(step, "lease")?, lease);
            }
            "cancel_acquire" => {
                let waiting = self.take_waiting(step)?;
                waiting.abort();
                let _ = waiting.await;
            }
            "release" => self.lease(step)?.release().await?,
            "drop" => {
                drop(self.leases.remove(text(step, "lease")?).ok_or("no such lease".to_owned())?)
            }
            "renew" => self.lease(step)?.renew().await?,
            "check" => self.lease(step)?.check()?,
            "held" => expect(step, self.lease(step)?.is_held())?,
            "is_lost" => expect(step, self.lease(step)?.is_lost())?,
            "wait_lost" => {
                let limit = maybe_time_of(step, "within_ms")?.unwrap_or(PATIENCE);
                let ended = timeout(limit, self.lease(step)?.ended()).await;
                expect(step, ended == Ok(Ended::Lost))?;
            }
            "remaining" => bounded(step, "remaining", self.lease(step)?.remaining())?,
            "token" => self.token(step)?,
            "inspect" => {
                let info = self.inspect(step).await?;
                if let Some(shows) = step.get("shows") {
                    shows::judge(self.space.unknown, object(shows)?, &info, &self.tokens)?;
                }
            }
            "wait_until" => self.wait_until(step).await?,
            "list" => {
                let infos = self.client(step)?.list().await?;
                let mut found: Vec<_> = infos.into_iter().map(|info| info.name).collect();
                found.sort();
                let wanted = texts_of(step, "names")?;
                if found != wanted {
                    return Err(format!("listed are {found:?}, not {wanted:?}").into());
                }
            }
            "force_release" => {
                let name = text_of(step, "name")?;
                let ended = self.client(step)?.force_release(&name).await?;
                if !step.contains_key("error") {
                    expect(step, ended)?;
                }
            }
            "sleep" => sleep(time_of(step, "ms")?).await,
            "stopwatch" => {
                self.stopwatches.insert(text(step, "as")?.to_owned(), Instant::now());
            }
            "elapsed" => {
                let since = find(&self.stopwatches, text(step, "since")?)?;
                bounded(step, "elapsed", since.elapsed())?;
            }
            "redis" => self.redis(step).await?,
            _ => return Err(format!("word {word} is known and not executed").into()),
        }
        Ok(())
    }

    async fn connect(&mut self, step: &Object) -> Result<(), Fault> {
        let mut url = match step.get("url") {
            None => Some(self.space.url.clone()),
            Some(Value::Null) => None,
            Some(_) => Some(text_of(step, "url")?),
        };
        if let (Some(url), Some(query)) = (&mut url, maybe_text_of(step, "query")?) {
            *url = with_query(url, &query);
        }
        if let (Some(url), Some(credentials)) = (&mut url, maybe_text_of(step, "credentials")?) {
            *url = url.replacen("://", &format!("://{credentials}@"), 1);
        }
        let options = client_options(step)?;
        let client = match url {
            Some(url) => Client::connect_with(&url, options).await?,
            None => Client::from_env_with(options).await?,
        };
        self.all_clients.push(client.clone());
        self.clients.insert(text(step, "as")?.to_owned(), client);
        Ok(())
    }

    fn token(&self, step: &Object) -> Result<(), Fault> {
        let ours = *find(&self.tokens, text(step, "lease")?)?;
        for other in array(step, "greater_than")? {
            let theirs = *find(&self.tokens, other.as_str().unwrap_or_default())?;
            if ours <= theirs {
                return Err(format!("token {ours} is not greater than {theirs} of {other}").into());
            }
        }
        Ok(())
    }

    async fn inspect(&self, step: &Object) -> Result<LockInfo, Fault> {
        let name = text_of(step, "name")?;
        let info = self.client(step)?.inspect(&name).await?;
        if info.name != name {
            return Err(format!("shown is the name {:?}, not {name:?}", info.name).into());
        }
        Ok(info)
    }

    async fn wait_until(&self, step: &Object) -> Result<(), Fault> {
        let shows = object(step.get("shows").ok_or("no shows".to_owned())?)?;
        let start = Instant::now();
        loop {
            let info = self.inspect(step).await?;
            match shows::judge(self.space.unknown, shows, &info, &self.tokens) {
                Err(difference) if start.elapsed() > PATIENCE * 2 / 3 => {
                    return Err(format!("never came: {difference}").into());
                }
                Err(_) => sleep(Duration::from_millis(5)).await,
                Ok(()) => return Ok(()),
            }
        }
    }

    async fn redis(&self, step: &Object) -> Result<(), Fault> {
        let (url, prefix) = self.space.server.as_ref().ok_or("no server with keys".to_owned())?;
        let mut command = redis::cmd(text(step, "command")?);
        command.arg(format!("{prefix}{}", text_of(step, "name")?));
        command.arg(texts_of(step, "arguments")?);
        let sent = async {
            let client = redis::Client::open(url.as_str())?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            command.query_async::<redis::Value>(&mut connection).await
        };
        sent.await.map(drop).map_err(|e| Fault::Case(e.to_string()))
    }

    fn keep(&mut self, name: &str, lease: Lease) {
        self.tokens.insert(name.to_owned(), lease.token());
        self.leases.insert(name.to_owned(), lease);
    }

    fn client(&self, step: &Object) -> Result<&Client, String> {
        find(&self.clients, text(step, "client")?)
    }

    fn lock(&self, step: &Object) -> Result<&Lock, String> {
        find(&self.locks, text(step, "lock")?)
    }

    fn lease(&self, step: &Object) -> Result<&Lease, String> {
        find(&self.leases, text(step, "lease")?)
    }

    fn take_waiting(&mut self, step: &Object) -> Result<JoinHandle<Answer<Lease>>, String> {
        let name = text(step, "lease")?;
        self.waiting.remove(name).ok_or_else(|| format!("no start_acquire of {name}"))
    }
}

fn find<'a, T>(things: &'a HashMap<String, T>, name: &str) -> Result<&'a T, String> {
    things.get(name).ok_or_else(|| format!("nothing has the name {name:?}"))
}

fn client_options(step: &Object) -> Result<ClientOptions, Fault> {
    let mut options = ClientOptions::new();
    let Some(given) = step.get("options") else { return Ok(options) };
    let given = object(given)?;
    only(
        given,
        &[
            "connect_timeout_ms",
            "request_timeout_ms",
            "prefix",
            "collection",
            "root",
            "node_layout",
        ],
    )?;
    if let Some(limit) = maybe_time_of(given, "connect_timeout_ms")? {
        options = options.connect_timeout(limit);
    }
    if let Some(limit) = maybe_time_of(given, "request_timeout_ms")? {
        options = options.request_timeout(limit);
    }
    if let Some(prefix) = maybe_text_of(given, "prefix")? {
        options = options.prefix(prefix);
    }
    if let Some(collection) = maybe_text_of(given, "collection")? {
        options = options.collection(collection);
    }
    if let Some(root) = maybe_text_of(given, "root")? {
        options = options.root(root);
    }
    if let Some(layout) = maybe_text_of(given, "node_layout")? {
        options = options.node_layout(layout.parse::<fencelock::NodeLayout>()?);
    }
    Ok(options)
}

fn lock_options(step: &Object) -> Result<LockOptions, String> {
    let mut options = LockOptions::new().max_hold(maybe_time_of(step, "max_hold_ms")?);
    if let Some(ttl) = maybe_time_of(step, "ttl_ms")? {
        options = options.ttl(ttl);
    }
    if step.contains_key("renew") {
        options = options.renew(flag_of(step, "renew")?);
    }
    if let Some(metadata) = maybe_text_of(step, "metadata")? {
        options = options.metadata(metadata);
    }
    Ok(options)
}

fn expect(step: &Object, found: bool) -> Result<(), String> {
    let wanted = flag_of(step, "expect")?;
    if found == wanted { Ok(()) } else { Err(format!("is {found}, not {wanted}")) }
}

fn bounded(step: &Object, what: &str, found: Duration) -> Result<(), String> {
    let (least, most) = (time_of(step, "at_least_ms")?, time_of(step, "at_most_ms")?);
    if found < least || found > most {
        return Err(format!("{what} is {found:?}, not {least:?} to {most:?}"));
    }
    Ok(())
}

fn judge_error(step: &Object, code: &Value, error: &Error) -> Result<(), String> {
    let message = message(error);
    if code != error.kind().code() {
        return Err(format!("the error is {} ({message}), not {code}", error.kind()));
    }
    for part in texts_of(step, "says")? {
        if !error.to_string().contains(&part) {
            return Err(format!("the message does not say {part:?}: {message}"));
        }
    }
    for part in texts_of(step, "hides")? {
        if message.contains(&part) || format!("{error:?}").contains(&part) {
            return Err(format!("the message shows {part:?}: {message}"));
        }
    }
    Ok(())
}

/// The message with those of all causes.
fn message(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
