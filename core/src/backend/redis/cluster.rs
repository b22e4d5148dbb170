//! Redis Cluster: which node has a name, and how requests find their way when that changes.
//!
//! A router of our own over one [`Link`] per node, in place of the driver's cluster client,
//! because the contract needs to know what was sent where: renewals go as one pipeline per node,
//! a WAIT has to follow on the same connection, and a request whose answer is late must never be
//! sent again behind our back, since its caller may have withdrawn meanwhile. A call goes to a
//! second node only when the first has refused it, which it does before it runs anything.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::{Cmd, ConnectionAddr, Pipeline, Value};
use tokio::sync::watch;
use tokio::time::timeout;

use super::dial::{Dialer, Whereabouts};
use super::exchange::{Answer, Exchange};
use super::fault::{Fault, Redirection};
use super::link::Link;
use super::slots::{Address, Layout};
use crate::owner::OwnerId;

/// For how long one node may keep us waiting for the layout.
const ANSWER: Duration = Duration::from_millis(500);
/// Between two questions for the layout; doubled while nobody answers.
const PAUSE: Duration = Duration::from_millis(100);
/// Any span that is long in nanoseconds: a random number comes of it.
const SPREAD: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Cluster {
    seeds: Vec<Address>,
    dialer: Dialer,
    map: Mutex<Map>,
    /// Counts questions and subscriptions, so that they go round the nodes.
    turn: AtomicUsize,
    /// A request was given up unanswered: its node may be dead.
    doubtful: AtomicBool,
}

struct Map {
    layout: Layout,
    /// By the layout's number of the node, made when first used.
    links: Vec<Option<Link>>,
    question: Option<Outcome>,
    /// When the next question may be asked, and the pause after that.
    not_before: Instant,
    pause: Duration,
    ended: bool,
}

/// What came of asking for the layout; `None` while it goes on.
type Outcome = watch::Receiver<Option<Result<(), Fault>>>;

impl Cluster {
    pub(super) fn new(seeds: &[ConnectionAddr], dialer: Dialer) -> Self {
        let address = |seed: &ConnectionAddr| match seed {
            ConnectionAddr::Tcp(host, port) => Some((host.clone(), *port)),
            _ => None,
        };
        let map = Map {
            layout: Layout::default(),
            links: Vec::new(),
            question: None,
            not_before: Instant::now(),
            pause: PAUSE,
            ended: false,
        };
        Cluster {
            seeds: seeds.iter().filter_map(address).collect(),
            dialer,
            map: Mutex::new(map),
            // Clients begin at different nodes.
            turn: AtomicUsize::new(OwnerId::random().share_of(SPREAD).as_nanos() as usize),
            doubtful: AtomicBool::new(false),
        }
    }

    /// Runs one call at the node that has the slot.
    pub(super) async fn run(
        self: &Arc<Self>,
        slot: u16,
        exchange: Exchange<'_>,
        call: &Cmd,
    ) -> Result<Answer, Fault> {
        let (node, link) = self.at(slot).await?;
        let doubt = Doubt(&self.doubtful);
        let answer = exchange.run(&link, call, false).await;
        doubt.dispel();
        let Err(fault) = answer else {
            return answer;
        };
        match fault.redirection() {
            Some(Redirection::Moved(host, port)) => {
                let link = self.moved(slot, self.named_by(&node, host, port));
                exchange.run(&link, call, false).await
            }
            Some(Redirection::Ask(host, port)) => {
                let link = self.link(&self.named_by(&node, host, port));
                exchange.run(&link, call, true).await
            }
            None => {
                if fault.is_silence() {
                    self.look_around();
                }
                Err(fault)
            }
        }
    }

    /// Runs many calls, one pipeline to each node, each with a result of its own.
    pub(super) async fn run_all(
        self: &Arc<Self>,
        slots: &[u16],
        exchange: Exchange<'_>,
        calls: &Pipeline,
    ) -> Vec<Result<Value, Fault>> {
        let calls: Vec<&Cmd> = calls.cmd_iter().collect();
        let mut results = vec![Err(Fault::NoNode); calls.len()];
        let all: Vec<usize> = (0..calls.len()).collect();
        let mut moved = Vec::new();
        let mut asked = Vec::new();
        for (i, node, result) in self.pass(&all, slots, exchange, &calls).await {
            match result.as_ref().err().and_then(Fault::redirection) {
                Some(Redirection::Moved(host, port)) => {
                    self.moved(slots[i], self.named_by(&node, host, port));
                    moved.push(i);
                }
                Some(Redirection::Ask(host, port)) => {
                    asked.push((i, self.link(&self.named_by(&node, host, port))));
                }
                None => {}
            }
            results[i] = result;
        }
        if !moved.is_empty() {
            for (i, _, result) in self.pass(&moved, slots, exchange, &calls).await {
                results[i] = result;
            }
        }
        let asking = asked.iter().map(|(i, link)| exchange.run(link, calls[*i], true));
        let answers = join_all(asking).await;
        for ((i, _), answer) in asked.into_iter().zip(answers) {
            results[i] = answer.and_then(|(value, acknowledged)| acknowledged.map(|()| value));
        }
        if results.iter().any(|result| matches!(result, Err(fault) if fault.is_silence())) {
            self.look_around();
        }
        results
    }

    /// The calls of these numbers, grouped by node.
    async fn pass(
        self: &Arc<Self>,
        numbers: &[usize],
        slots: &[u16],
        exchange: Exchange<'_>,
        calls: &[&Cmd],
    ) -> Vec<(usize, Address, Result<Value, Fault>)> {
        let mut groups: Vec<(Address, Link, Vec<usize>)> = Vec::new();
        let mut results = Vec::with_capacity(numbers.len());
        for &i in numbers {
            match self.at(slots[i]).await {
                Ok((node, link)) => match groups.iter_mut().find(|group| group.1.is(&link)) {
                    Some(group) => group.2.push(i),
                    None => groups.push((node, link, vec![i])),
                },
                Err(fault) => results.push((i, Address::default(), Err(fault))),
            }
        }
        let doubt = Doubt(&self.doubtful);
        let pipelines = groups.iter().map(|(_, link, numbers)| async move {
            let mut pipeline = Pipeline::with_capacity(numbers.len() + 1);
            for &i in numbers {
                pipeline.add_command(calls[i].clone());
            }
            exchange.run_all(link, &pipeline).await
        });
        let answers = join_all(pipelines).await;
        doubt.dispel();
        for ((node, _, numbers), answers) in groups.iter().zip(answers) {
            let answers = numbers.iter().zip(answers);
            results.extend(answers.map(|(&i, answer)| (i, node.clone(), answer)));
        }
        results
    }

    /// The number of the node that has the slot, as far as is known.
    pub(super) fn shard(&self, slot: u16) -> usize {
        self.map().layout.owner(slot).unwrap_or_default()
    }

    /// A link to each node that has slots, and one of its slots.
    pub(super) async fn masters(self: &Arc<Self>) -> Result<Vec<(Link, u16)>, Fault> {
        self.known().await?;
        let mut map = self.map();
        let masters = map.layout.masters();
        Ok(masters.into_iter().map(|(node, slot)| (map.link(node, &self.dialer), slot)).collect())
    }

    /// The link to the node that has the slot.
    pub(super) async fn link_of(self: &Arc<Self>, slot: u16) -> Result<Link, Fault> {
        Ok(self.at(slot).await?.1)
    }

    /// An address of a node for a subscription, another one each time.
    pub(super) fn next_node(&self) -> ConnectionAddr {
        let map = self.map();
        let nodes = map.layout.nodes();
        let nodes = if nodes.is_empty() { &self.seeds } else { nodes };
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let (host, port) = nodes[turn % nodes.len()].clone();
        ConnectionAddr::Tcp(host, port)
    }

    /// Closes all connections for good.
    pub(super) fn end(&self) {
        let mut map = self.map();
        map.ended = true;
        for link in map.links.iter().flatten() {
            link.end();
        }
    }

    /// The node that has the slot.
    async fn at(self: &Arc<Self>, slot: u16) -> Result<(Address, Link), Fault> {
        if self.doubtful.swap(false, Ordering::AcqRel) {
            self.look_around();
        }
        for _ in 0..2 {
            {
                let mut map = self.map();
                if map.ended {
                    return Err(Fault::Closed);
                }
                if let Some(node) = map.layout.owner(slot) {
                    return Ok((map.layout.nodes()[node].clone(), map.link(node, &self.dialer)));
                }
            }
            self.ask_around().await?;
        }
        Err(Fault::NoNode)
    }

    /// Waits until a layout is known.
    async fn known(self: &Arc<Self>) -> Result<(), Fault> {
        if self.map().layout.nodes().is_empty() { self.ask_around().await } else { Ok(()) }
    }

    /// A node names another; without a host it means its own.
    fn named_by(&self, node: &Address, host: String, port: u16) -> Address {
        (if host.is_empty() { node.0.clone() } else { host }, port)
    }

    /// The slot has moved to this node; where one has moved, more may have.
    fn moved(self: &Arc<Self>, slot: u16, address: Address) -> Link {
        let link = {
            let mut map = self.map();
            let node = map.layout.add(address);
            map.layout.set_owner(slot, node);
            map.link(node, &self.dialer)
        };
        self.look_around();
        link
    }

    fn link(&self, address: &Address) -> Link {
        let mut map = self.map();
        let node = map.layout.add(address.clone());
        map.link(node, &self.dialer)
    }

    /// Asks for the layout, in the background.
    fn look_around(self: &Arc<Self>) {
        drop(self.question());
    }

    /// Asks for the layout, and waits for what comes of it.
    async fn ask_around(self: &Arc<Self>) -> Result<(), Fault> {
        let mut outcome = self.question();
        match outcome.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(result)) => result.clone(),
            _ => Err(Fault::Interrupted),
        }
    }

    fn question(self: &Arc<Self>) -> Outcome {
        let mut map = self.map();
        match &map.question {
            // Without its sender a question has ended with its runtime: then ask here.
            Some(outcome) if outcome.has_changed().is_ok() => outcome.clone(),
            _ => {
                let (result, outcome) = watch::channel(None);
                map.question = Some(outcome.clone());
                // A task of its own, so that the short time limit of one request does not end a
                // question that others wait for as well.
                tokio::spawn(self.clone().ask_in_turn(map.not_before, result));
                outcome
            }
        }
    }

    async fn ask_in_turn(
        self: Arc<Self>,
        not_before: Instant,
        result: watch::Sender<Option<Result<(), Fault>>>,
    ) {
        tokio::time::sleep_until(not_before.into()).await;
        let found = self.find_layout().await;
        let mut map = self.map();
        map.question = None;
        map.pause = if found.is_ok() { PAUSE } else { (map.pause * 2).min(LONGEST_PAUSE) };
        map.not_before = Instant::now() + map.pause;
        let outcome = found.map(|layout| map.replace(layout));
        drop(map);
        result.send_replace(Some(outcome));
    }

    /// Asks one node after the other, each time beginning with another one: a node that was cut
    /// off from the rest still answers, but with what it knew then.
    async fn find_layout(&self) -> Result<Layout, Fault> {
        let mut nodes = self.map().layout.nodes().to_vec();
        nodes.extend(
            self.seeds.iter().filter(|seed| !nodes.contains(seed)).cloned().collect::<Vec<_>>(),
        );
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % nodes.len();
        nodes.rotate_left(turn);
        let limit = ANSWER.min(self.dialer.limit() / 2);
        let mut trouble = Fault::NoNode;
        for node in nodes {
            match timeout(limit, self.layout_by(&node)).await {
                Ok(Ok(layout)) => return Ok(layout),
                Ok(Err(fault)) => trouble = fault,
                Err(_) => {}
            }
        }
        Err(trouble)
    }

    async fn layout_by(&self, node: &Address) -> Result<Layout, Fault> {
        // A link of its own for a node that has none: a seed's address may be one that no node
        // announces, and then it is not kept.
        let link = {
            let mut map = self.map();
            match map.layout.number(node) {
                Some(number) => map.link(number, &self.dialer),
                None => new_link(node, &self.dialer),
            }
        };
        let mut question = redis::cmd("CLUSTER");
        question.arg("SLOTS");
        let reply = link.send(&question).await?;
        let layout = Layout::of(&reply, node).ok_or(Fault::NoNode)?;
        // A node that has just begun knows of no slots; another one may.
        if layout.nodes().is_empty() { Err(Fault::NoNode) } else { Ok(layout) }
    }

    fn map(&self) -> MutexGuard<'_, Map> {
        // Nothing that can panic runs under this lock.
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Map {
    fn link(&mut self, node: usize, dialer: &Dialer) -> Link {
        if self.links.len() <= node {
            self.links.resize(node + 1, None);
        }
        let link = self.links[node]
            .get_or_insert_with(|| new_link(&self.layout.nodes()[node], dialer))
            .clone();
        if self.ended {
            link.end();
        }
        link
    }

    /// Keeps the links to nodes that are still there.
    fn replace(&mut self, layout: Layout) {
        let links = layout.nodes().iter().map(|node| {
            self.layout.number(node).and_then(|old| self.links.get(old).cloned().flatten())
        });
        self.links = links.collect();
        self.layout = layout;
    }
}

fn new_link((host, port): &Address, dialer: &Dialer) -> Link {
    Link::new(Whereabouts::Fixed(ConnectionAddr::Tcp(host.clone(), *port)), dialer.clone())
}

/// A request under way; dropped without an answer, it makes the next request ask around.
struct Doubt<'a>(&'a AtomicBool);

impl Doubt<'_> {
    fn dispel(self) {
        std::mem::forget(self);
    }
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
