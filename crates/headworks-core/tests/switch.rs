//! The switch on its way through the tree: from one controller to all others, down to agents, and never up from them.
#![allow(clippy::unwrap_used, missing_docs, reason = "in a test a panic is the report")]

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent, Identity};
use headworks_core::children::ChildId;
use headworks_core::fleet::Fleet;
use headworks_core::limits::{LimitSet, parse};
use headworks_core::message::{Hello, Incarnation, Plan, Report, Tier};
use headworks_core::node::Node;
use headworks_core::switch::Switch;
use headworks_core::units::Moment;
use headworks_core::zone::Zone;

const HOLD: Duration = Duration::from_secs(60);
const ON: Switch = Switch { version: 1, shadow_all: true };
const OFF: Switch = Switch { version: 2, shadow_all: false };

fn identity(node: &str, life: u64) -> Identity {
    Identity {
        node: node.to_owned(),
        incarnation: Incarnation(life),
        zone: "z".to_owned(),
        region: String::new(),
        version: String::new(),
    }
}

fn limits() -> Arc<LimitSet> {
    Arc::new(parse("limits: [{name: a, rate: 5/second}]").unwrap())
}

/// An aggregator below two controllers, with an agent.
struct Tree {
    now: Moment,
    lives: u64,
    controllers: [(Fleet, ChildId); 2],
    zone: Zone,
    agent: (Agent, ChildId),
}

impl Tree {
    fn new() -> Self {
        let now = Moment::default();
        let mut zone = Zone::new(identity("zone", 1), 2, HOLD, now);
        let mut agent = Agent::new(identity("agent", 2), HOLD, now);
        let child = zone.attach(agent.hello(), now).child;
        agent.attached("zone".to_owned());
        let controllers = [3, 4].map(|life| attach(&mut zone, life, now));
        [0, 1].into_iter().for_each(|index| zone.parent_attached(index));
        Self { now, lives: 5, controllers, zone, agent: (agent, child) }
    }

    /// A controller starts again, knowing nothing but what its children tell.
    fn restart(&mut self, index: usize) {
        self.zone.parent_detached(index);
        self.lives += 1;
        let (mut fleet, _) =
            attach(&mut Zone::new(identity("none", 1), 1, HOLD, self.now), self.lives, self.now);
        let child = fleet.attach(self.zone.hello(index), self.now).child;
        self.controllers[index] = (fleet, child);
        self.zone.parent_attached(index);
    }

    /// Lets 20 ms pass: each node says what it has to say at once, and nothing besides.
    fn flush(&mut self) {
        self.now = self.now + Duration::from_millis(60);
        for index in [0, 1] {
            let (fleet, child) = &mut self.controllers[index];
            if let Some(report) = self.zone.report_for(index, self.now) {
                fleet.report(*child, &report, self.now);
            }
            if let Some(plan) = news(fleet, *child, self.now) {
                self.zone.plan(index, plan, self.now);
            }
        }
        let (agent, child) = &mut self.agent;
        if let Some(plan) = news(&mut self.zone, *child, self.now) {
            agent.plan(plan, self.now);
        }
    }

    fn settle(&mut self) {
        (0..4).for_each(|_| self.flush());
    }

    fn states(&self) -> (Switch, Switch, Switch, bool) {
        let [(one, _), (other, _)] = &self.controllers;
        (one.switch(), other.switch(), self.zone.switch(), self.agent.0.shadow_all())
    }
}

fn attach(zone: &mut Zone, life: u64, now: Moment) -> (Fleet, ChildId) {
    let mut fleet = Fleet::new(&identity("controller", life), limits(), HOLD, now);
    let child = fleet.attach(zone.hello(0), now).child;
    (fleet, child)
}

fn news<N: Node>(node: &mut N, child: ChildId, now: Moment) -> Option<Plan> {
    node.has_news_for(child).then(|| node.plan_for(child, now)).flatten()
}

#[test]
fn it_reaches_every_node_and_the_other_controller_at_once() {
    let mut tree = Tree::new();
    tree.settle();
    tree.controllers[0].0.throw_switch(true, 0);
    tree.settle();
    assert_eq!(tree.states(), (ON, ON, ON, true));
    tree.controllers[1].0.throw_switch(false, 0);
    tree.settle();
    assert_eq!(tree.states(), (OFF, OFF, OFF, false));
}

#[test]
fn a_controller_that_starts_again_learns_it_from_its_childrens_hellos() {
    let mut tree = Tree::new();
    tree.controllers[0].0.throw_switch(true, 0);
    tree.settle();
    tree.restart(0);
    assert_eq!(tree.controllers[0].0.switch(), ON);
    tree.restart(1);
    tree.settle();
    assert_eq!(tree.states(), (ON, ON, ON, true));
}

#[test]
fn nothing_is_said_of_it_once_all_agree() {
    let mut tree = Tree::new();
    tree.controllers[0].0.throw_switch(true, 0);
    tree.settle();
    tree.now = tree.now + Duration::from_millis(60);
    let reports = [0, 1].map(|index| tree.zone.full_report(index, tree.now).switch);
    assert_eq!(reports, [None, None]);
    let (fleet, child) = &tree.controllers[0];
    assert!(!fleet.has_news_for(*child));
}

#[test]
fn an_agent_obeys_and_is_never_believed() {
    let mut tree = Tree::new();
    tree.settle();
    let honest = identity("agent", 9).hello(Tier::Agent, None, None, None);
    let child = tree.zone.attach(Hello { switch: ON, ..honest }, tree.now).child;
    let report = tree.agent.0.full_report(tree.now);
    tree.zone.report(child, &Report { switch: Some(ON), ..report }, tree.now);
    tree.settle();
    assert_eq!(tree.states().2, Switch::default());
}
