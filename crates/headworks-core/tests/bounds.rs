//! What a child says that cannot be: it is refused or clipped, counted, and moves nobody else's ratio far.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::Identity;
use headworks_core::bucket::{BucketKey, Counts};
use headworks_core::children::{ChildId, Received};
use headworks_core::fleet::Fleet;
use headworks_core::limits::parse;
use headworks_core::message::{BucketNumber, BucketRef, Incarnation, News, Report, ReportEntry, Tier};
use headworks_core::node::Node;
use headworks_core::units::Moment;

/// A controller with children that say what a test wants.
struct Parent {
    fleet: Fleet,
    now: Moment,
    sequence: u64,
}

impl Parent {
    fn of(limits: &str) -> Self {
        let now = Moment::after(Duration::from_secs(100));
        let limits = Arc::new(parse(limits).unwrap());
        Self {
            fleet: Fleet::new(&identity("controller", 1), limits, Duration::from_secs(60), now),
            now,
            sequence: 0,
        }
    }

    fn child(&mut self, name: &str, tier: Tier) -> ChildId {
        let hello = identity(name, 7).hello(tier, None, None, None);
        self.fleet.attach(hello, self.now).child
    }

    /// The child reports in full, `seconds` after its birth.
    fn hears(&mut self, child: ChildId, seconds: u64, agents: u32, entries: Vec<ReportEntry>) -> Received {
        self.sequence += 1;
        let elapsed = Duration::from_secs(seconds);
        let report = Report {
            sequence: self.sequence,
            elapsed,
            full: true,
            agents,
            entries,
            forgotten: Vec::new(),
            switch: None,
        };
        self.fleet.report(child, &report, self.now + elapsed)
    }

    fn demand(&self) -> f64 {
        self.fleet.children().buckets().iter().map(|(.., bucket)| bucket.demand).sum()
    }

    fn headroom(&self) -> f64 {
        let mut buckets = self.fleet.children().buckets().iter();
        buckets.next().unwrap().2.headroom.unwrap().value()
    }
}

fn identity(node: &str, life: u64) -> Identity {
    let (zone, region, version) = ("a".to_owned(), String::new(), String::new());
    Identity { node: node.to_owned(), incarnation: Incarnation(life), zone, region, version }
}

fn entry(offered: u64) -> ReportEntry {
    ReportEntry {
        bucket: BucketRef::Named(BucketKey::whole("all".into())),
        counts: Counts { offered, ..Counts::default() },
        demand: None,
        news: None,
        in_force: None,
        tokens: None,
        life: 0,
    }
}

#[test]
fn one_bad_agent_moves_the_ratio_by_no_more_than_its_plausible_part() {
    let mut parent = Parent::of("limits: [{name: all, rate: 1000/second, max_rate_per_agent: 200/second}]");
    let children: Vec<ChildId> =
        (0..10).map(|index| parent.child(&format!("agent-{index}"), Tier::Agent)).collect();
    // Past the time in which a new controller learns.
    for second in 1..=30 {
        for child in &children {
            parent.hears(*child, second, 1, vec![entry(100 * second)]);
        }
    }
    assert!((parent.demand() - 1000.0).abs() < 1.0, "{}", parent.demand());
    let bad = children[0];
    let received = parent.hears(bad, 31, 1, vec![entry(3000 + 50_000_000)]);
    assert_eq!((received.refused, received.clipped), (0, 1));
    assert!((parent.demand() - 1100.0).abs() < 1.0, "{}", parent.demand());
    let news = News { units: 900_000, window: Duration::from_millis(100), solid: true };
    let claims = ReportEntry { news: Some(news), demand: Some(1e9), ..entry(100_000_000) };
    assert_eq!(parent.hears(bad, 32, 1, vec![claims]).clipped, 1);
    assert!((parent.demand() - 1100.0).abs() < 1.0, "{}", parent.demand());
    assert!((0.9..=1.0).contains(&parent.headroom()), "{}", parent.headroom());
}

#[test]
fn an_agent_is_one_agent_whatever_it_says() {
    let mut parent = Parent::of("limits: [{name: all, rate: 1000/second}]");
    let (agent, zone) = (parent.child("agent", Tier::Agent), parent.child("zone", Tier::Aggregator));
    parent.hears(agent, 1, u32::MAX, vec![]);
    parent.hears(zone, 1, 30, vec![]);
    assert_eq!(parent.fleet.view().agents, 31);
}

#[test]
fn counts_that_cannot_be_are_refused_and_the_rest_of_the_report_is_not() {
    let mut parent = Parent::of("limits: [{name: all, rate: 1000/second}, {name: other, rate: 5/second}]");
    let child = parent.child("agent", Tier::Agent);
    let other = ReportEntry { bucket: BucketRef::Named(BucketKey::whole("other".into())), ..entry(5) };
    let received = parent.hears(child, 1, 1, vec![entry(1 << 61), other]);
    assert_eq!((received.refused, received.touched.len()), (1, 1));
    parent.hears(child, 2, 1, vec![entry(100)]);
    let buckets = parent.fleet.children().buckets().iter().count();
    let unheard = BucketRef::Named(BucketKey::whole("unheard".into()));
    let absurd = ReportEntry { bucket: unheard, ..entry(1 << 61) };
    assert_eq!(parent.hears(child, 2, 1, vec![absurd]).refused, 1);
    assert_eq!(
        parent.fleet.children().buckets().iter().count(),
        buckets,
        "a refused name leaves nothing behind"
    );
    assert!(parent.demand() < 200.0, "{}", parent.demand());
    let unknown = ReportEntry { bucket: BucketRef::Number(BucketNumber(4_000_000_000)), ..entry(5) };
    assert_eq!(parent.hears(child, 3, 1, vec![unknown]).refused, 1);
}

#[test]
fn a_child_holds_no_more_buckets_than_it_may_and_others_still_find_room() {
    let mut parent = Parent::of("limits: [{name: per, per: [key], rate: 5/second, max_buckets: 1000000}]");
    let (greedy, modest) = (parent.child("greedy", Tier::Agent), parent.child("modest", Tier::Agent));
    let key = |value: usize| BucketKey {
        limit: "per".into(),
        scope: Vec::new(),
        values: headworks_core::bucket::Values::Of(vec![format!("v{value}")]),
    };
    let mut refused = 0;
    for (second, part) in (1..).zip((0..150_000).collect::<Vec<_>>().chunks(50_000)) {
        let named = |value: &usize| ReportEntry { bucket: BucketRef::Named(key(*value)), ..entry(1) };
        refused += parent.hears(greedy, second, 1, part.iter().map(named).collect()).refused;
    }
    assert_eq!(refused, 50_000);
    let one = ReportEntry { bucket: BucketRef::Named(key(7_000_000)), ..entry(1) };
    assert_eq!(parent.hears(modest, 9, 1, vec![one]).refused, 0);
}

#[test]
fn children_that_share_an_id_are_counted_as_twins() {
    let mut parent = Parent::of("limits: [{name: all, rate: 1000/second}]");
    parent.child("agent", Tier::Agent);
    assert_eq!(parent.fleet.children().twins(), 0);
    let hello = identity("agent", 8).hello(Tier::Agent, None, None, None);
    assert!(parent.fleet.attach(hello, parent.now).twin);
    assert_eq!(parent.fleet.children().twins(), 2);
}

#[test]
fn ten_thousand_names_that_came_once_leave_nothing_behind() {
    let mut parent = Parent::of("limits: [{name: all, rate: 1000/second}]");
    for index in 0..10_000 {
        let child = parent.child(&format!("one-shot-{index}"), Tier::Agent);
        parent.hears(child, 1, 1, vec![entry(3)]);
        parent.fleet.detach(child, parent.now);
    }
    let later = parent.now + Duration::from_secs(300);
    parent.fleet.tick(later);
    let left = parent.child("stays", Tier::Agent);
    assert_eq!(parent.fleet.children().iter().map(|(id, _)| id).collect::<Vec<_>>(), [left]);
    assert_eq!((parent.fleet.children().departed(), parent.demand()), (0, 0.0));
    assert_eq!(parent.fleet.children().buckets().iter().count(), 1);
}
