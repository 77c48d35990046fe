//! A fleet of separate processes on loopback: a controller, an aggregator in each zone, agents below it.

use std::time::Duration;

use tempfile::TempDir;

use super::certs::Pki;
use super::limits::LimitsFile;
use super::link::Link;
use super::load::{Load, Loads};
use super::node::Node;
use super::wait::eventually;

/// How long a fleet may take to stand.
const SETTLE: Duration = Duration::from_secs(15);

/// What a fleet is made of.
pub(crate) struct FleetPlan {
    limits: String,
    zones: Vec<(&'static str, usize)>,
    hold: &'static str,
    grace: &'static str,
    controllers: usize,
    aggregators: usize,
    single: Option<&'static str>,
    linked: bool,
    tls: bool,
    extra: Vec<String>,
    controllers_extra: Vec<String>,
}

/// A running fleet; all of it is killed when dropped.
pub(crate) struct Fleet {
    pub(crate) agents: Vec<Node>,
    pub(crate) aggregators: Vec<Node>,
    pub(crate) controller: Node,
    /// Further controllers.
    pub(crate) others: Vec<Node>,
    /// By aggregator and controller, where the fleet was planned with links.
    pub(crate) to_controllers: Vec<Vec<Link>>,
    /// By agent and aggregator of its zone.
    pub(crate) to_aggregators: Vec<Vec<Link>>,
    /// The credentials of a fleet that has some.
    pub(crate) pki: Option<Pki>,
    pub(crate) limits: LimitsFile,
    /// Holds the agents' Unix sockets.
    sockets: TempDir,
}

impl FleetPlan {
    /// Zones a and b with two agents each, held to these limits.
    pub(crate) fn new(limits: &str) -> Self {
        Self {
            limits: limits.to_owned(),
            zones: vec![("a", 2), ("b", 2)],
            hold: "60s",
            grace: "10s",
            controllers: 1,
            aggregators: 1,
            single: None,
            linked: false,
            tls: false,
            extra: Vec::new(),
            controllers_extra: Vec::new(),
        }
    }

    /// So many controllers, to which all aggregators attach.
    pub(crate) fn controllers(mut self, controllers: usize) -> Self {
        self.controllers = controllers;
        self
    }

    /// So many aggregators in each zone.
    pub(crate) fn aggregators(mut self, aggregators: usize) -> Self {
        self.aggregators = aggregators;
        self
    }

    /// This zone has a single aggregator, however many others have.
    pub(crate) fn single(mut self, zone: &'static str) -> Self {
        self.single = Some(zone);
        self
    }

    /// Mutual TLS between the tiers.
    pub(crate) fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// All streams go over links that the test can break.
    pub(crate) fn linked(mut self) -> Self {
        self.linked = true;
        self
    }

    /// Further flags for every agent.
    pub(crate) fn agents_with(mut self, args: &[&str]) -> Self {
        self.extra = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    /// Further flags for every controller.
    pub(crate) fn controllers_with(mut self, args: &[&str]) -> Self {
        self.controllers_extra = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    /// How long every node goes on alone.
    pub(crate) fn hold(mut self, hold: &'static str) -> Self {
        self.hold = hold;
        self
    }

    /// How long every node may take to end.
    pub(crate) fn grace(mut self, grace: &'static str) -> Self {
        self.grace = grace;
        self
    }

    /// Other zones, each with its number of agents.
    pub(crate) fn zones(mut self, zones: &[(&'static str, usize)]) -> Self {
        self.zones = zones.to_vec();
        self
    }

    /// Starts it, and waits until every agent has a plan.
    #[track_caller]
    pub(crate) fn start(&self) -> Fleet {
        let (limits, sockets) = (LimitsFile::new(&self.limits), tempfile::tempdir().unwrap());
        let path = limits.path().display().to_string();
        let pki = self.tls.then(Pki::new);
        let mut controllers = (1..=self.controllers).map(|number| {
            let id = if number == 1 { "controller".to_owned() } else { format!("controller-{number}") };
            let args = self.args(pki.as_ref(), "controller", &["--limits", &path]);
            Node::start("controller", &id, &[args, self.controllers_extra.clone()].concat())
        });
        let mut fleet = Fleet {
            agents: Vec::new(),
            aggregators: Vec::new(),
            controller: controllers.next().unwrap(),
            others: controllers.collect(),
            to_controllers: Vec::new(),
            to_aggregators: Vec::new(),
            pki,
            limits,
            sockets,
        };
        self.zones.iter().for_each(|(zone, agents)| self.start_zone(&mut fleet, zone, *agents));
        fleet.stands();
        fleet
    }

    fn start_zone(&self, fleet: &mut Fleet, zone: &str, agents: usize) {
        let first = fleet.aggregators.len();
        let aggregators = if self.single == Some(zone) { 1 } else { self.aggregators };
        for number in 1..=aggregators {
            let (controllers, links) = self.ways_to(fleet.controllers());
            let id =
                if number == 1 { format!("aggregator-{zone}") } else { format!("aggregator-{zone}{number}") };
            let own = ["--zone", zone, "--controllers", &controllers];
            let args = self.args(fleet.pki.as_ref(), "aggregator", &own);
            fleet.aggregators.push(Node::start("aggregator", &id, &args));
            fleet.to_controllers.push(links);
        }
        for number in 1..=agents {
            let (parents, links) = self.ways_to(fleet.aggregators[first..].iter());
            let id = format!("agent-{zone}{number}");
            let socket = fleet.sockets.path().join(format!("{id}.sock")).display().to_string();
            let own = ["--zone", zone, "--aggregators", &parents, "--http-unix", &socket];
            let args = self.args(fleet.pki.as_ref(), "agent", &own);
            fleet.agents.push(Node::start("agent", &id, &[args, self.extra.clone()].concat()));
            fleet.to_aggregators.push(links);
        }
    }

    /// Where to reach these parents, and the links to them, if there shall be such.
    fn ways_to<'a>(&self, parents: impl Iterator<Item = &'a Node>) -> (String, Vec<Link>) {
        if !self.linked {
            return (parents.map(|parent| parent.url("tree")).collect::<Vec<_>>().join(","), Vec::new());
        }
        let links: Vec<Link> = parents.map(|parent| Link::to(parent.address("tree"))).collect();
        (links.iter().map(Link::url).collect::<Vec<_>>().join(","), links)
    }

    fn args(&self, pki: Option<&Pki>, role: &str, own: &[&str]) -> Vec<String> {
        let common = ["--hold", self.hold, "--grace", self.grace];
        let plain = own.iter().chain(&common).map(|arg| (*arg).to_owned());
        plain.chain(pki.into_iter().flat_map(|pki| pki.of(role).args())).collect()
    }
}

impl Fleet {
    /// Waits until the controller hears every agent, and every agent has a fresh plan.
    #[track_caller]
    pub(crate) fn stands(&self) {
        let agents = self.agents.len() as u64;
        eventually("the controller hears all agents", SETTLE, || {
            let heard = self.controller.try_status().map_or(0, |status| status.agents());
            (heard != agents).then(|| format!("{heard} of {agents}"))
        });
        eventually("all agents have a fresh plan", SETTLE, || {
            let states: Vec<String> = self.agents.iter().map(state_of).collect();
            states.iter().any(|state| state != "fresh").then(|| format!("{states:?}"))
        });
    }

    /// Loads each agent at its rate, on the one bucket that the simple tests use.
    pub(crate) fn load(&self, rates: &[f64], duration: Duration) -> Loads {
        assert_eq!(rates.len(), self.agents.len());
        let loads = self.agents.iter().zip(rates).map(|(agent, rps)| Load::new(&agent.url("http"), *rps));
        Loads::start(&loads.collect::<Vec<_>>(), duration)
    }

    /// The controllers, in the order in which aggregators know them.
    pub(crate) fn controllers(&self) -> impl Iterator<Item = &Node> {
        std::iter::once(&self.controller).chain(&self.others)
    }

    /// Every node, from the top.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.controllers().chain(&self.aggregators).chain(&self.agents)
    }
}

fn state_of(agent: &Node) -> String {
    agent.try_status().map_or_else(|| "away".to_owned(), |status| status.state().to_owned())
}
