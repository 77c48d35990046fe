//! Reports are points on a line: whichever are lost, repeated or late, in the end the line is the same.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent, Identity};
use headworks_core::bucket::{BucketKey, Counts};
use headworks_core::fleet::Fleet;
use headworks_core::limits::parse;
use headworks_core::message::{Incarnation, Report};
use headworks_core::node::Node;
use headworks_core::units::Moment;
use proptest::prelude::*;

const HOLD: Duration = Duration::from_secs(60);

fn identity(node: &str, life: u64) -> Identity {
    let (zone, region, version) = ("a".to_owned(), String::new(), String::new());
    Identity { node: node.to_owned(), incarnation: Incarnation(life), zone, region, version }
}

/// One agent's reports of this many units in each beat of 50 ms, then of three steady seconds.
struct Told {
    fleet: Fleet,
    child: headworks_core::children::ChildId,
    reports: Vec<(Moment, Report)>,
    offered: u64,
    end: Moment,
}

fn told(beats: &[u16]) -> Told {
    let now = Moment::default();
    let limits = Arc::new(parse("limits: [{name: all, rate: 100/second}]").unwrap());
    let mut fleet = Fleet::new(&identity("controller", 1), limits, HOLD, now);
    let mut agent = Agent::new(identity("agent", 2), HOLD, now);
    let child = fleet.attach(agent.hello(), now).child;
    agent.attached("controller".to_owned());
    agent.plan(fleet.plan_for(child, now).unwrap(), now);
    let number = agent.open(&BucketKey::whole("all".into()), now).unwrap();
    let (mut reports, mut offered, mut end) = (Vec::new(), 0, now);
    for (beat, units) in beats.iter().copied().chain([7; 60]).enumerate() {
        let now = now + Duration::from_millis(50) * u32::try_from(beat + 1).unwrap();
        offered += u64::from(units);
        agent.count(number, Counts { offered, ..Counts::default() }, now);
        reports.extend(agent.report(now).map(|report| (now, report)));
        end = now;
    }
    Told { fleet, child, reports, offered, end }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn lost_repeated_and_reordered_reports_change_nothing_in_the_end(
        beats in prop::collection::vec(0..200_u16, 20..80),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..100),
    ) {
        let Told { mut fleet, child, reports, offered, end } = told(&beats);
        // The last two seconds arrive as they were sent; of what came before, anything in any order.
        let steady = end.since(Moment::default()) - Duration::from_millis(2100);
        let (before, after): (Vec<_>, Vec<_>) =
            reports.iter().partition(|(sent, _)| sent.since(Moment::default()) < steady);
        for index in order {
            if !before.is_empty() {
                fleet.report(child, &index.get(&before).1, end);
            }
        }
        for (now, report) in after {
            fleet.report(child, report, *now);
        }
        let buckets = fleet.children().buckets();
        let (_, _, bucket) = buckets.iter().next().unwrap();
        // What was counted since the last report is not told yet.
        prop_assert!(bucket.counts.offered <= offered && offered - bucket.counts.offered <= 140);
        prop_assert!((bucket.demand - 140.0).abs() < 1.0, "{} of 140/s", bucket.demand);
    }
}

/// An agent that has counted, and what a parent counts of it.
struct Traveller {
    agent: Agent,
    number: headworks_core::message::BucketNumber,
    offered: u64,
    now: Moment,
}

impl Traveller {
    fn new() -> Self {
        let mut agent = Agent::new(identity("agent", 2), HOLD, Moment::default());
        let number = agent.open(&BucketKey::whole("all".into()), Moment::default()).unwrap();
        Self { agent, number, offered: 0, now: Moment::default() }
    }

    /// Attaches to a parent, and tells it of this many more units.
    fn visits(&mut self, parent: &mut Fleet, name: &str, units: u64) {
        let child = parent.attach(self.agent.hello(), self.now).child;
        self.agent.attached(name.to_owned());
        self.agent.plan(parent.plan_for(child, self.now).unwrap(), self.now);
        self.tells(parent, child, 0);
        self.tells(parent, child, units);
        parent.detach(child, self.now);
        self.agent.detached();
    }

    fn tells(&mut self, parent: &mut Fleet, child: headworks_core::children::ChildId, units: u64) {
        self.now = self.now + Duration::from_secs(1);
        self.offered += units;
        self.agent.count(self.number, Counts { offered: self.offered, ..Counts::default() }, self.now);
        let report = self.agent.full_report(self.now);
        parent.report(child, &report, self.now);
    }
}

fn controller(life: u64) -> Fleet {
    let limits = Arc::new(parse("limits: [{name: all, rate: 6000/hour}]").unwrap());
    Fleet::new(&identity("controller", life), limits, HOLD, Moment::default())
}

fn counted(fleet: &Fleet) -> u64 {
    fleet.children().buckets().iter().map(|(.., bucket)| bucket.counts.offered).sum()
}

#[test]
fn what_a_child_told_another_parent_is_not_counted_again() {
    let (mut one, mut other, mut agent) = (controller(11), controller(12), Traveller::new());
    agent.visits(&mut one, "one", 1000);
    agent.visits(&mut other, "other", 4000);
    agent.visits(&mut one, "one", 7);
    assert_eq!((counted(&one), counted(&other)), (1007, 4000));
}

#[test]
fn what_a_child_counted_between_two_parents_counts_at_the_second() {
    let (mut one, mut other, mut agent) = (controller(11), controller(12), Traveller::new());
    agent.visits(&mut one, "one", 1000);
    agent.offered += 50;
    agent.visits(&mut other, "other", 7);
    assert_eq!((counted(&one), counted(&other)), (1000, 57));
}

#[test]
fn a_child_that_comes_back_goes_on_where_it_was() {
    let (mut one, mut agent) = (controller(11), Traveller::new());
    agent.visits(&mut one, "one", 1000);
    agent.offered += 50;
    agent.visits(&mut one, "one", 7);
    assert_eq!(counted(&one), 1057);
}

#[test]
fn a_child_on_a_second_stream_counts_once() {
    let (mut fleet, mut agent) = (controller(11), Traveller::new());
    let first = fleet.attach(agent.agent.hello(), agent.now).child;
    agent.agent.attached("one".to_owned());
    agent.agent.plan(fleet.plan_for(first, agent.now).unwrap(), agent.now);
    agent.tells(&mut fleet, first, 100);
    agent.tells(&mut fleet, first, 100);
    // The first stream broke, and only the child knows.
    let second = fleet.attach(agent.agent.hello(), agent.now);
    assert!(!second.twin);
    let demand =
        |fleet: &Fleet| fleet.children().buckets().iter().map(|(.., bucket)| bucket.demand).sum::<f64>();
    assert!((demand(&fleet) - 100.0).abs() < 1.0, "{} until it reports again", demand(&fleet));
    agent.agent.attached("one".to_owned());
    agent.tells(&mut fleet, second.child, 100);
    agent.tells(&mut fleet, second.child, 100);
    let (.., bucket) = fleet.children().buckets().iter().next().unwrap();
    assert_eq!(bucket.counts.offered, 400);
    assert!((bucket.demand - 100.0).abs() < 1.0, "{}", bucket.demand);
}

#[test]
fn a_limit_that_becomes_a_budget_owes_nothing_for_what_was_before() {
    let told = told(&[50; 200]);
    let mut fleet = told.fleet;
    for (now, report) in &told.reports {
        fleet.report(told.child, report, *now);
    }
    fleet.install(Arc::new(parse("limits: [{name: all, rate: 1000000/hour}]").unwrap()), told.end);
    let (.., bucket) = fleet.children().buckets().iter().next().unwrap();
    assert!(bucket.headroom.unwrap().value() > 1.0, "{:?}", bucket.headroom);
}

#[test]
fn an_agent_at_rest_reports_every_other_interval_and_speaks_up_at_once_when_it_counts_again() {
    let (mut fleet, mut agent) = (controller(11), Traveller::new());
    let child = fleet.attach(agent.agent.hello(), agent.now).child;
    agent.agent.attached("one".to_owned());
    agent.agent.plan(fleet.plan_for(child, agent.now).unwrap(), agent.now);
    let mut beats = |agent: &mut Traveller, beats: u32, units: u64| {
        let said = (0..beats).filter(|_| {
            agent.now = agent.now + Duration::from_millis(50);
            agent.offered += units;
            agent.agent.count(
                agent.number,
                Counts { offered: agent.offered, ..Counts::default() },
                agent.now,
            );
            let Some(report) = agent.agent.report(agent.now) else { return false };
            fleet.report(child, &report, agent.now);
            if let Some(plan) = fleet.plan_for(child, agent.now) {
                agent.agent.plan(plan, agent.now);
            }
            true
        });
        said.count()
    };
    assert_eq!(beats(&mut agent, 200, 0), 10);
    beats(&mut agent, 40, 0);
    assert_eq!(beats(&mut agent, 380, 0), 10);
    assert!(beats(&mut agent, 20, 1) >= 1);
    assert!(beats(&mut agent, 20, 1) >= 1);
}
