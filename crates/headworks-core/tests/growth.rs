//! What a report costs grows with what it tells, and with nothing else: neither with the children nor with the buckets that
//! are at rest.
//!
//! Each takes a few milliseconds: of many tries the fastest was not interrupted. They are compared as ratios, with much room.
#![allow(clippy::unwrap_used, missing_docs, reason = "in a test a panic is the report")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "what is measured is time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use headworks_core::agent::Identity;
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::children::ChildId;
use headworks_core::fleet::Fleet;
use headworks_core::limits;
use headworks_core::message::{BucketNumber, BucketRef, Hello, Incarnation, Plan, Report, ReportEntry, Tier};
use headworks_core::node::Node;
use headworks_core::switch::Switch;
use headworks_core::units::Moment;
use headworks_core::zone::Zone;

const HOLD: Duration = Duration::from_secs(60);
const LIMITS: &str =
    "limits:\n  - name: api\n    per: [key]\n    rate: 1000/second\n    max_buckets: 1000000\n";

/// An aggregator with a controller, and agents of which each holds the same buckets.
struct Tree {
    fleet: Fleet,
    zone: Zone,
    in_fleet: ChildId,
    agents: Vec<Agent>,
    second: u64,
}

struct Agent {
    id: ChildId,
    numbers: Vec<BucketNumber>,
    said: u64,
}

fn identity(node: &str, incarnation: u64) -> Identity {
    let (node, zone) = (node.to_owned(), "a".to_owned());
    let (region, version) = (String::new(), "0".to_owned());
    Identity { node, incarnation: Incarnation(incarnation), zone, region, version }
}

fn at(second: u64) -> Moment {
    Moment::default() + Duration::from_secs(second)
}

fn key(index: usize) -> BucketKey {
    BucketKey { limit: "api".into(), scope: Vec::new(), values: Values::Of(vec![format!("k{index}")]) }
}

impl Tree {
    /// Every agent has named all `buckets`, and has their numbers.
    fn new(agents: usize, buckets: usize) -> Self {
        let limits = Arc::new(limits::parse(LIMITS).unwrap());
        let mut fleet = Fleet::new(&identity("controller", 1), limits, HOLD, at(0));
        let mut zone = Zone::new(identity("aggregator", 2), 1, HOLD, at(0));
        let in_fleet = fleet.attach(zone.hello(0), at(0)).child;
        zone.parent_attached(0);
        let attach = |number: usize| {
            let hello = Hello {
                node: format!("agent-{number}"),
                incarnation: Incarnation(3 + number as u64),
                tier: Tier::Agent,
                zone: "a".to_owned(),
                region: String::new(),
                version: "0".to_owned(),
                previous_parent: None,
                previous_incarnation: None,
                limits: None,
                switch: Switch::default(),
            };
            Agent { id: zone.attach(hello, at(0)).child, numbers: Vec::new(), said: 0 }
        };
        let agents = (0..agents).map(attach).collect();
        let mut tree = Self { fleet, zone, in_fleet, agents, second: 0 };
        for _ in 0..3 {
            tree.turn(buckets, true);
        }
        // Names have room for some thousands in a message, and the controller learns for a while.
        while tree.second < 20 || tree.agents.iter().any(|agent| agent.numbers.len() < buckets) {
            tree.turn(buckets, true);
        }
        tree
    }

    /// One second: each agent tells of the first `busy` buckets, of all others nothing.
    fn turn(&mut self, busy: usize, names: bool) {
        self.second += 1;
        let now = at(self.second);
        for place in 0..self.agents.len() {
            let report = self.report(place, busy, names);
            self.zone.report(self.agents[place].id, &report, now);
        }
        self.zone.tick(now);
        if let Some(report) = self.zone.report_for(0, now) {
            self.fleet.report(self.in_fleet, &report, now);
        }
        self.fleet.tick(now);
        if let Some(plan) = self.fleet.plan_for(self.in_fleet, now) {
            self.zone.plan(0, plan, now);
        }
        for agent in &mut self.agents {
            if let Some(plan) = self.zone.plan_for(agent.id, now) {
                agent.learn(&plan);
            }
        }
    }

    fn report(&mut self, place: usize, busy: usize, names: bool) -> Report {
        let units = self.second * 10;
        let agent = &mut self.agents[place];
        agent.said += 1;
        let reference = |index: usize| match agent.numbers.get(index) {
            Some(number) => Some(BucketRef::Number(*number)),
            None => names.then(|| BucketRef::Named(key(index))),
        };
        let entry = |bucket| ReportEntry {
            bucket,
            counts: Counts { offered: units, ..Counts::default() },
            demand: None,
            news: None,
            in_force: None,
            tokens: None,
            life: 0,
        };
        Report {
            sequence: agent.said,
            elapsed: Duration::from_secs(self.second),
            full: true,
            agents: 1,
            entries: (0..busy).filter_map(reference).map(entry).collect(),
            forgotten: Vec::new(),
            switch: None,
        }
    }

    /// Time to compute a second in which the first `busy` buckets of all agents change.
    fn cost(&mut self, busy: usize) -> f64 {
        // What was busy before comes to rest first.
        (0..3).for_each(|_| self.turn(busy, false));
        let spent = |_| {
            let before = Instant::now();
            self.turn(busy, false);
            before.elapsed()
        };
        (0..15).map(spent).min().unwrap().as_secs_f64()
    }
}

impl Agent {
    fn learn(&mut self, plan: &Plan) {
        // Numbers are given in the order of names.
        self.numbers.extend(plan.names.iter().map(|(number, _)| *number));
        self.numbers.sort_unstable();
    }
}

/// Costs at sizes of which each is four times the one before.
fn is_linear(costs: [f64; 3]) {
    for pair in costs.windows(2) {
        assert!((1.5..7.0).contains(&(pair[1] / pair[0])), "{costs:?} at 1, 4, 16");
    }
}

#[test]
fn cost_grows_in_proportion_to_reports() {
    is_linear([25, 100, 400].map(|agents| Tree::new(agents, 100).cost(100)));
}

#[test]
fn cost_grows_in_proportion_to_changed_buckets() {
    // Small enough for the caches of a processor, which are not what is measured.
    let mut tree = Tree::new(40, 400);
    is_linear([25, 100, 400].map(|busy| tree.cost(busy)));
}

#[test]
fn buckets_at_rest_cost_nothing() {
    let costs = [500, 4000, 32_000].map(|held| Tree::new(4, held).cost(500));
    // Their caches are colder, and that is all.
    assert!(
        costs[1] < 1.6 * costs[0] && costs[2] < 2.5 * costs[0],
        "{costs:?} with 0, 3500 and 31 500 at rest"
    );
}
