//! Names of buckets on the wire: many and long ones travel in messages that fit.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent, Identity};
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::fleet::Fleet;
use headworks_core::limits::parse;
use headworks_core::message::{BucketRef, Incarnation};
use headworks_core::node::Node;
use headworks_core::units::Moment;

const HOLD: Duration = Duration::from_secs(60);

fn identity(node: &str, life: u64) -> Identity {
    let (zone, region, version) = (String::new(), String::new(), String::new());
    Identity { node: node.to_owned(), incarnation: Incarnation(life), zone, region, version }
}

#[test]
fn ten_thousand_new_names_of_a_kilobyte_travel_in_messages_that_fit() {
    let limits = parse("limits: [{name: each, per: [key], rate: 5/second}]").unwrap();
    let now = Moment::default();
    let mut agent = Agent::new(identity("agent", 1), HOLD, now);
    let mut fleet = Fleet::new(&identity("controller", 2), Arc::new(limits), HOLD, now);
    let child = fleet.attach(agent.hello(), now).child;
    agent.attached("controller".to_owned());
    agent.plan(fleet.plan_for(child, now).unwrap(), now);
    for value in 0..10_000 {
        let values = Values::Of(vec![format!("{value:01000}")]);
        let key = BucketKey { limit: "each".into(), scope: Vec::new(), values };
        let number = agent.open(&key, now).unwrap();
        agent.count(number, Counts { offered: 1, ..Counts::default() }, now);
    }
    let mut told = 0;
    for beat in 1..=20 {
        let now = now + beat * Duration::from_millis(50);
        let Some(report) = agent.report(now) else { continue };
        let names = report.entries.iter().filter(|entry| matches!(entry.bucket, BucketRef::Named(_))).count();
        assert!(names * 1000 <= 1 << 20, "{names} names in one report");
        told += report.entries.len();
        fleet.report(child, &report, now);
        agent.plan(fleet.plan_for(child, now).unwrap(), now);
    }
    assert!(told >= 10_000, "{told} buckets told");
    assert_eq!(
        fleet.children().buckets().iter().map(|(_, _, bucket)| bucket.counts.offered).sum::<u64>(),
        10_000
    );
}
