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
