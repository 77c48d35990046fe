//! What a controller knows of demand: what other limits would do to it, and what it was in the last 24 hours.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent, Identity};
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::children::ChildId;
use headworks_core::fleet::Fleet;
use headworks_core::limits::{LimitSet, parse};
use headworks_core::message::{BucketNumber, Incarnation};
use headworks_core::node::Node;
use headworks_core::units::Moment;

const HOLD: Duration = Duration::from_secs(60);

fn identity(node: &str, life: u64) -> Identity {
    let (zone, region, version) = ("a".to_owned(), String::new(), String::new());
    Identity { node: node.to_owned(), incarnation: Incarnation(life), zone, region, version }
}

fn set(limits: &str) -> Arc<LimitSet> {
    Arc::new(parse(&format!("limits: [{limits}]")).unwrap())
}

/// A controller and an agent that is asked for x and y.
struct World {
    fleet: Fleet,
    agent: Agent,
    child: ChildId,
    buckets: [(BucketNumber, Counts); 2],
    now: Moment,
}

impl World {
    fn new(limits: &str) -> Self {
        let now = Moment::default();
        let mut fleet = Fleet::new(&identity("controller", 1), set(limits), HOLD, now);
        let mut agent = Agent::new(identity("agent", 2), HOLD, now);
        let child = fleet.attach(agent.hello(), now).child;
        agent.attached("controller".to_owned());
        agent.plan(fleet.plan_for(child, now).unwrap(), now);
        let buckets = ["x", "y"].map(|value| {
            let values = Values::Of(vec![value.to_owned()]);
            let key = BucketKey { limit: "a".into(), scope: Vec::new(), values };
            (agent.open(&key, now).unwrap(), Counts::default())
        });
        Self { fleet, agent, child, buckets, now }
    }

    /// So many seconds in each of which this much is offered of each, and this part of it would be dropped of x.
    fn live(&mut self, seconds: u64, offered: [u64; 2], would_drop: u64) {
        for _ in 0..seconds {
            self.now = self.now + Duration::from_secs(1);
            self.buckets[0].1.would_drop += would_drop;
            for ((number, counts), offered) in self.buckets.iter_mut().zip(offered) {
                counts.offered += offered;
                self.agent.count(*number, *counts, self.now);
            }
            let report = self.agent.full_report(self.now);
            self.fleet.report(self.child, &report, self.now);
            self.fleet.tick(self.now);
        }
    }
}

const SHADOW: &str = "{name: a, per: [k], rate: 100/second, mode: shadow}";

#[test]
fn the_present_demand_is_held_against_other_limits() {
    let mut world = World::new(SHADOW);
    world.live(10, [300, 50], 200);
    let enforced = world.fleet.what_if(&set("{name: a, per: [k], rate: 100/second}"));
    assert!((enforced[0].newly_part() - 200.0 / 350.0).abs() < 0.01, "{}", enforced[0]);
    let same = world.fleet.what_if(&set(SHADOW));
    assert!(same[0].newly == 0.0 && (same[0].offered - 350.0).abs() < 1.0, "{}", same[0]);
    world.live(5, [0, 50], 0);
    let enforced = world.fleet.what_if(&set("{name: a, per: [k], rate: 100/second}"));
    assert!(enforced[0].newly == 0.0, "what has ended is still counted: {}", enforced[0]);
}

#[test]
fn the_history_is_what_was_counted_and_survives_another_rate() {
    let mut world = World::new(SHADOW);
    world.live(150, [300, 50], 200);
    world.fleet.install(set("{name: a, per: [k], rate: 150/second, mode: shadow}"), world.now);
    world.live(30, [0, 0], 0);
    let past = world.fleet.history().of_limit("a", world.now).unwrap();
    let summary = past.summary();
    assert_eq!((summary.offered, summary.would_drop), (350.0 * 150.0, 200.0 * 150.0));
    assert!((summary.median - 350.0).abs() < 20.0 && (summary.peak - 350.0).abs() < 20.0, "{summary:?}");
    assert_eq!((past.hits.len(), past.hits[0].over), (1, 200.0 * 150.0));
    assert_eq!(past.changed, Some(2));
    world.fleet.install(set("{name: b, per: [k], rate: 150/second}"), world.now);
    assert!(world.fleet.history().of_limit("a", world.now).is_none());
}
