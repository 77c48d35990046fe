//! Buckets that rest are forgotten by every tier, and what comes after is counted as if they had not been.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent, Identity};
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::children::ChildId;
use headworks_core::fleet::Fleet;
use headworks_core::limits::parse;
use headworks_core::message::{BucketNumber, Incarnation};
use headworks_core::node::Node;
use headworks_core::units::Moment;
use headworks_core::zone::Zone;

const HOLD: Duration = Duration::from_secs(60);

fn identity(node: &str, life: u64) -> Identity {
    let (zone, region, version) = ("a".to_owned(), String::new(), String::new());
    Identity { node: node.to_owned(), incarnation: Incarnation(life), zone, region, version }
}

fn key(value: &str) -> BucketKey {
    BucketKey { limit: "each".into(), scope: Vec::new(), values: Values::Of(vec![value.to_owned()]) }
}

/// One controller, one aggregator, one agent.
struct Tree {
    fleet: Fleet,
    zone: Zone,
    agent: Agent,
    zone_at_fleet: ChildId,
    agent_at_zone: ChildId,
    second: u64,
    untracked: Vec<BucketNumber>,
    placed: Vec<BucketNumber>,
}

impl Tree {
    fn of(limits: &str) -> Self {
        let now = Moment::default();
        let limits = Arc::new(parse(limits).unwrap());
        let mut fleet = Fleet::new(&identity("controller", 1), limits, HOLD, now);
        let mut zone = Zone::new(identity("aggregator", 2), 1, HOLD, now);
        let mut agent = Agent::new(identity("agent", 3), HOLD, now);
        let zone_at_fleet = fleet.attach(zone.hello(0), now).child;
        zone.parent_attached(0);
        let agent_at_zone = zone.attach(agent.hello(), now).child;
        agent.attached("aggregator".to_owned());
        let mut tree = Self {
            fleet,
            zone,
            agent,
            zone_at_fleet,
            agent_at_zone,
            second: 0,
            untracked: Vec::new(),
            placed: Vec::new(),
        };
        tree.pass(3);
        tree
    }

    fn now(&self) -> Moment {
        Moment::after(Duration::from_secs(self.second))
    }

    /// Seconds pass; the agent forgets what may be forgotten.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second += 1;
            let now = self.now();
            for number in self.agent.idle(now).collect::<Vec<_>>() {
                assert!(self.agent.forget(number, now));
            }
            if let Some(report) = self.agent.report(now) {
                self.zone.report(self.agent_at_zone, &report, now);
            }
            self.zone.tick(now);
            if let Some(report) = self.zone.report_for(0, now) {
                self.fleet.report(self.zone_at_fleet, &report, now);
            }
            self.fleet.tick(now);
            self.zone.plan(0, self.fleet.plan_for(self.zone_at_fleet, now).unwrap(), now);
            if let Some(plan) = self.zone.plan_for(self.agent_at_zone, now) {
                let effects = self.agent.plan(plan, now);
                assert_eq!(effects.unknown, 0);
                self.untracked.extend(effects.untracked.iter().map(|untracked| untracked.bucket));
                self.placed.extend(effects.placed);
            }
            self.agent.changes(now);
        }
    }

    fn open(&mut self, value: &str) -> BucketNumber {
        self.agent.open(&key(value), self.now()).unwrap()
    }

    fn count(&mut self, number: BucketNumber, offered: u64) {
        self.agent.count(number, Counts { offered, ..Counts::default() }, self.now());
    }

    fn counted(&self) -> u64 {
        let children = self.fleet.children();
        let here: u64 = children.buckets().iter().map(|(.., bucket)| bucket.counts.offered).sum();
        here + children.counted_in_forgotten("each").offered
    }

    fn buckets(&self) -> [usize; 2] {
        [self.zone.children().buckets().len(), self.fleet.children().buckets().len()]
    }
}

const PER_SECOND: &str = "limits: [{name: each, per: [who], rate: 10/second}]";

#[test]
fn what_rests_is_forgotten_by_every_tier() {
    let mut tree = Tree::of(PER_SECOND);
    for value in 0..100 {
        let number = tree.open(&value.to_string());
        tree.count(number, 5);
    }
    tree.pass(5);
    assert_eq!(tree.buckets(), [100, 100]);
    tree.pass(70);
    assert_eq!(tree.agent.idle(tree.now()).count(), 0);
    tree.pass(300);
    assert_eq!(tree.buckets(), [0, 0]);
    assert_eq!(tree.counted(), 500);
    assert_eq!(tree.zone.children().kept().held, 0);
}

#[test]
fn what_comes_back_counts_from_zero_and_is_counted_whole() {
    // Before its aggregator has forgotten it, and before its controller has.
    for rest in [62, 65, 80, 150, 250, 500] {
        let mut tree = Tree::of(PER_SECOND);
        let number = tree.open("a");
        tree.count(number, 1000);
        tree.pass(rest);
        let again = tree.open("a");
        assert_ne!(again, number, "after {rest} s");
        tree.count(again, 300);
        tree.pass(1);
        tree.count(again, 700);
        tree.pass(3);
        assert_eq!(tree.counted(), 1700, "after {rest} s");
        let buckets = tree.fleet.children().buckets();
        let (.., bucket) = buckets.iter().find(|(_, known, _)| **known == key("a")).unwrap();
        assert!(bucket.demand < 1000.0, "{} after {rest} s", bucket.demand);
    }
}

#[test]
fn a_bucket_in_use_is_not_forgotten_and_keeps_its_number() {
    let mut tree = Tree::of(PER_SECOND);
    let number = tree.open("a");
    for offered in 1..10 {
        tree.count(number, offered);
        tree.pass(50);
    }
    assert_eq!(tree.open("a"), number);
    assert_eq!(tree.counted(), 9);
}

#[test]
fn a_ban_and_what_all_others_share_stay() {
    let mut tree = Tree::of("limits: [{name: each, per: [who], rate: 0/second}]");
    let rest = BucketKey { values: Values::Rest, ..key("") };
    for number in [tree.open("a"), tree.agent.open(&rest, tree.now()).unwrap()] {
        tree.count(number, 1);
    }
    tree.pass(500);
    assert_eq!(tree.buckets(), [2, 2]);
}

#[test]
fn a_spent_budget_is_remembered_until_it_is_full_again() {
    let mut tree = Tree::of("limits: [{name: each, per: [who], rate: 600/hour, burst: 600}]");
    let number = tree.open("a");
    tree.count(number, 600);
    tree.pass(3500);
    assert_eq!(tree.buckets(), [1, 1]);
    tree.pass(1000);
    assert_eq!(tree.buckets(), [0, 0]);
}

#[test]
fn whoever_lost_its_aggregator_is_counted_once_when_it_returns() {
    let mut tree = Tree::of(PER_SECOND);
    let number = tree.open("a");
    tree.count(number, 1000);
    tree.pass(3);
    // The stream breaks; while it is away the agent forgets the bucket, and has it again.
    tree.zone.detach(tree.agent_at_zone, tree.now());
    tree.agent.detached();
    tree.second += 70;
    for number in tree.agent.idle(tree.now()).collect::<Vec<_>>() {
        assert!(tree.agent.forget(number, tree.now()));
    }
    let again = tree.open("a");
    tree.count(again, 200);
    tree.agent_at_zone = tree.zone.attach(tree.agent.hello(), tree.now()).child;
    tree.agent.attached("aggregator".to_owned());
    tree.pass(5);
    assert_eq!(tree.counted(), 1200);
}

/// Of this many values, each of which counts once a second for so long.
fn busy(tree: &mut Tree, numbers: &[BucketNumber], seconds: u64) {
    for second in 1..=seconds {
        numbers.iter().for_each(|number| tree.count(*number, 10 * second));
        tree.pass(1);
    }
}

#[test]
fn no_more_than_max_buckets_are_tracked_and_the_others_are_told() {
    let mut tree = Tree::of("limits: [{name: each, per: [who], rate: 10/second, max_buckets: 3}]");
    let first: Vec<BucketNumber> = ["a", "b", "c"].map(|value| tree.open(value)).into();
    busy(&mut tree, &first, 3);
    let late: Vec<BucketNumber> = (0..50).map(|value| tree.open(&value.to_string())).collect();
    late.iter().for_each(|number| tree.count(*number, 1_000_000));
    busy(&mut tree, &first, 10);
    assert_eq!(tree.buckets(), [3, 3]);
    tree.untracked.sort();
    assert_eq!(tree.untracked, late, "whatever they are offered");
    // Those that were there first rest, and are forgotten; then there are places again.
    tree.pass(400);
    assert_eq!(tree.buckets(), [0, 0]);
    let next = tree.open("0");
    tree.count(next, 10);
    tree.pass(3);
    assert_eq!(tree.placed.last(), Some(&next));
}

#[test]
fn what_an_override_names_needs_no_place() {
    let text = "limits: [{name: each, per: [who], rate: 10/second, max_buckets: 1, \
                overrides: [{match: {who: tenant}, rate: 50/second}]}]";
    let mut tree = Tree::of(text);
    let first = tree.open("a");
    busy(&mut tree, &[first], 3);
    let [named, late] = ["tenant", "b"].map(|value| tree.open(value));
    busy(&mut tree, &[first, named, late], 10);
    assert_eq!(tree.buckets(), [2, 2]);
    assert_eq!(tree.untracked, [late]);
}

#[test]
fn a_place_is_asked_for_without_counting_anything() {
    let mut tree = Tree::of("limits: [{name: each, per: [who], rate: 10/second, max_buckets: 3}]");
    let asks = tree.open("a");
    tree.pass(4);
    assert_eq!(tree.placed, [asks]);
}

#[test]
fn whoever_spent_what_all_share_does_not_find_a_fresh_budget_in_a_place_of_its_own() {
    let mut tree = Tree::of("limits: [{name: each, per: [who], rate: 60/minute, max_buckets: 3}]");
    let rest = BucketKey { values: Values::Rest, ..key("") };
    let rest = tree.agent.open(&rest, tree.now()).unwrap();
    tree.count(rest, 100);
    tree.pass(2);
    let new = tree.open("new");
    tree.count(new, 1);
    tree.pass(2);
    let buckets = tree.fleet.children().buckets();
    let tokens = buckets.get(buckets.number(&key("new")).unwrap()).unwrap().tokens.unwrap();
    assert!(tokens < 0.0, "{tokens} left");
}
