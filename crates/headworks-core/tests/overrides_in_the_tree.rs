//! Limits with overrides, at a controller: each bucket by its own rate, through reloads too.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::Identity;
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::children::ChildId;
use headworks_core::fleet::Fleet;
use headworks_core::limits::{LimitSet, parse};
use headworks_core::message::{BucketRef, Incarnation, Report, ReportEntry, Tier};
use headworks_core::node::Node;
use headworks_core::units::Moment;

const OVERRIDES: &str = "{match: {caller: gold}, rate: 1000/second}, {match: {caller: \"batch-*\"}, rate: 600/minute, burst: 60}, \
    {match: {caller: banned}, rate: 0/second}, {match: {caller: free}, rate: unlimited}";

fn limits(overrides: &str) -> Arc<LimitSet> {
    let text = format!("limits: [{{name: each, per: [caller], rate: 100/second, overrides: [{overrides}]}}]");
    Arc::new(parse(&text).unwrap_or_else(|faults| panic!("{faults}")))
}

fn identity(node: &str) -> Identity {
    let (zone, region, version) = ("a".to_owned(), String::new(), String::new());
    Identity { node: node.to_owned(), incarnation: Incarnation(7), zone, region, version }
}

fn second(n: u64) -> Moment {
    Moment::after(Duration::from_secs(n))
}

fn entry(caller: &str, offered: u64) -> ReportEntry {
    let key =
        BucketKey { limit: "each".into(), scope: Vec::new(), values: Values::Of(vec![caller.to_owned()]) };
    let counts = Counts { offered, ..Counts::default() };
    ReportEntry {
        bucket: BucketRef::Named(key),
        counts,
        demand: Some(200.0),
        news: None,
        in_force: None,
        tokens: None,
        life: 0,
    }
}

/// A fleet of one agent, which is asked 200 times a second by each caller.
struct World {
    fleet: Fleet,
    child: ChildId,
    now: u64,
}

impl World {
    fn new(overrides: &str) -> Self {
        let hold = Duration::from_secs(60);
        let mut fleet = Fleet::new(&identity("controller"), limits(overrides), hold, second(0));
        let child = fleet.attach(identity("agent").hello(Tier::Agent, None, None, None), second(0)).child;
        Self { fleet, child, now: 0 }
    }

    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            let callers = ["web", "gold", "batch-1", "banned", "free"];
            let entries = callers.iter().map(|caller| entry(caller, self.now * 200)).collect();
            let elapsed = Duration::from_secs(self.now);
            let report = Report {
                sequence: self.now,
                elapsed,
                full: true,
                agents: 1,
                entries,
                forgotten: Vec::new(),
                switch: None,
            };
            self.fleet.report(self.child, &report, second(self.now));
            self.fleet.tick(second(self.now));
        }
    }

    /// Headroom and tokens of each caller.
    fn told(&self) -> BTreeMap<String, (f64, Option<f64>)> {
        let of = |key: &BucketKey| match &key.values {
            Values::Of(values) => values[0].clone(),
            Values::Rest => "the rest".to_owned(),
        };
        let buckets = self.fleet.children().buckets().iter();
        buckets
            .filter_map(|(_, key, bucket)| Some((of(key), (bucket.headroom?.value(), bucket.tokens))))
            .collect()
    }

    fn headroom(&self, caller: &str) -> f64 {
        self.told()[caller].0
    }
}

#[test]
fn each_bucket_has_the_headroom_of_its_own_rate() {
    let mut world = World::new(OVERRIDES);
    world.run(20);
    assert!((world.headroom("web") - 0.5).abs() < 0.01, "{:?}", world.told());
    assert!((world.headroom("gold") - 5.0).abs() < 0.1, "{:?}", world.told());
    assert_eq!(world.headroom("banned"), 0.0);
    assert_eq!(world.headroom("free"), f64::INFINITY);
    // All that was offered is charged, and 600 is the most that is owed.
    let (headroom, tokens) = world.told()["batch-1"];
    assert!(headroom < 0.05 && tokens.is_some_and(|tokens| tokens < -500.0), "{:?}", world.told());
    assert!(
        world
            .told()
            .iter()
            .filter(|(caller, _)| *caller != "batch-1")
            .all(|(_, (_, tokens))| tokens.is_none())
    );
}

#[test]
fn a_reload_gives_each_bucket_what_holds_for_it_then() {
    let mut world = World::new(OVERRIDES);
    world.run(20);
    // What was a budget is a rate, what was a rate is a budget, what was banned is off, and one has the limit's own again.
    let other = "{match: {caller: gold}, rate: 600/minute}, {match: {caller: \"batch-*\"}, rate: 50/second}, \
                 {match: {caller: banned}, rate: 1/second, mode: off}";
    world.fleet.install(limits(other), second(world.now));
    let told = world.told();
    assert!(!told.contains_key("banned"), "{told:?}");
    assert!(told["gold"].1.is_some() && told["batch-1"].1.is_none(), "{told:?}");
    world.run(20);
    assert!((world.headroom("batch-1") - 0.25).abs() < 0.01, "{:?}", world.told());
    assert!((world.headroom("free") - 0.5).abs() < 0.01, "{:?}", world.told());
    assert!(world.headroom("gold") < 0.1, "{:?}", world.told());
}
