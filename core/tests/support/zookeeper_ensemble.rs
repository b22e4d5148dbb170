//! A real ZooKeeper ensemble of one test, its members ended when it is dropped.

use std::collections::BTreeMap;

use crate::links::{Caller, Links, Way};
use crate::ports::Port;
use crate::server_process::until;
use crate::zookeeper_server::ZooKeeperServer;

const MEMBERS: usize = 3;

pub(crate) struct ZooKeeperEnsemble {
    pub(crate) members: Vec<ZooKeeperServer>,
    links: Links,
    _ports: Vec<Ports>,
}

/// On which a member hears the others.
struct Ports {
    quorum: Port,
    election: Port,
}

/// How one member comes to another.
struct Ways {
    quorum: Way,
    election: Way,
}

impl ZooKeeperEnsemble {
    pub(crate) fn start() -> Self {
        let ports: Vec<_> = (0..MEMBERS)
            .map(|_| Ports { quorum: Port::reserve(), election: Port::reserve() })
            .collect();
        let ways: BTreeMap<_, _> = (0..MEMBERS)
            .flat_map(|from| (0..MEMBERS).map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
            .map(|pair| (pair, Ways { quorum: Way::new(), election: Way::new() }))
            .collect();
        // Each member has a configuration of its own, in which the others are at the end of links.
        let line = |from: usize, to: usize| {
            let (quorum, election) = match ways.get(&(from, to)) {
                Some(Ways { quorum, election }) => (quorum.port(), election.port()),
                None => (ports[to].quorum.number(), ports[to].election.number()),
            };
            format!("server.{}=127.0.0.1:{quorum}:{election}", to + 1)
        };
        let lines = |n| (0..MEMBERS).map(|to| line(n, to)).collect::<Vec<_>>();
        let members = (0..MEMBERS).map(|n| ZooKeeperServer::launch(n + 1, &lines(n))).collect();
        let links = Links::new();
        let back: BTreeMap<_, _> =
            ways.iter().map(|((from, to), ways)| ((*to, *from), ways.election.host())).collect();
        for ((from, to), Ways { quorum, election }) in ways {
            links.lead(quorum, Caller::Member(from), to, ports[to].quorum.number());
            // Of two members the later one connects: when the other calls, it hangs up and calls
            // back, at the address that the caller told.
            let own = ports[from].election.host();
            let caller = Caller::MemberAt { member: from, own, there: back[&(from, to)].clone() };
            links.lead(election, caller, to, ports[to].election.number());
        }
        let ensemble = ZooKeeperEnsemble { members, links, _ports: ports };
        ensemble.settle();
        ensemble
    }

    /// All members as seeds.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> = self.members.iter().map(ZooKeeperServer::host).collect();
        format!("zookeeper://{}/", hosts.join(","))
    }

    /// Waits until all members that live serve.
    pub(crate) fn settle(&self) {
        until("a leader and its followers", || {
            let live = self.members.iter().filter(|member| member.process.is_live());
            let modes: Option<Vec<_>> = live.map(ZooKeeperServer::mode).collect();
            let leaders = modes?.iter().filter(|mode| *mode == "leader").count();
            (leaders == 1).then_some(())
        });
    }

    /// The number of the leader; waits until there is one among the members that live.
    pub(crate) fn leader(&self) -> usize {
        self.leader_other_than(None)
    }

    /// The leader after an election that the test has brought about.
    pub(crate) fn leader_after(&self, before: usize) -> usize {
        self.leader_other_than(Some(before))
    }

    fn leader_other_than(&self, other: Option<usize>) -> usize {
        let leads = |n: &usize| self.members[*n].mode().as_deref() == Some("leader");
        until("a leader", || (0..MEMBERS).filter(|n| Some(*n) != other).find(leads))
    }

    /// The numbers of those that follow the leader.
    pub(crate) fn followers(&self) -> Vec<usize> {
        let leader = self.leader();
        (0..MEMBERS).filter(|n| *n != leader).collect()
    }

    /// The links between the members. A follower without its leader serves until the sync limit
    /// has passed; clients still reach it.
    pub(crate) fn links(&self) -> &Links {
        &self.links
    }

    /// Cuts a member off from all others.
    pub(crate) fn isolate(&self, member: usize) {
        self.links.isolate(member, MEMBERS);
    }
}
