//! Sums that nodes tell: sound, whatever was counted below.
#![allow(missing_docs, reason = "a test")]

use std::time::Duration;

use headworks_core::agent::Identity;
use headworks_core::bucket::{BucketKey, Counts};
use headworks_core::message::{BucketRef, Incarnation, Report, ReportEntry, Tier};
use headworks_core::node::Node;
use headworks_core::units::Moment;
use headworks_core::zone::Zone;

fn identity(node: &str, life: u64) -> Identity {
    let (zone, region, version) = (String::new(), String::new(), String::new());
    Identity { node: node.to_owned(), incarnation: Incarnation(life), zone, region, version }
}

fn report(sequence: u64, counts: Counts) -> Report {
    let bucket = BucketRef::Named(BucketKey::whole("a".into()));
    let entry =
        ReportEntry { bucket, counts, demand: Some(1e12), news: None, in_force: None, tokens: None, life: 0 };
    // So long a life that no count is absurd.
    let elapsed = Duration::from_secs(sequence * 100_000_000);
    Report {
        sequence,
        elapsed,
        full: true,
        agents: 1,
        entries: vec![entry],
        forgotten: Vec::new(),
        switch: None,
    }
}

/// What a zone tells of these reports, each of them sound, from `children` children alike.
fn told(children: u64, reports: &[Counts]) -> ReportEntry {
    let now = Moment::default();
    let mut zone = Zone::new(identity("zone", 1), 1, Duration::from_secs(60), now);
    zone.parent_attached(0);
    for life in 0..children {
        let hello = identity(&format!("agent-{life}"), 2 + life).hello(Tier::Agent, None, None, None);
        let child = zone.attach(hello, now).child;
        for (sequence, counts) in (1..).zip(reports) {
            zone.report(child, &report(sequence, *counts), now);
        }
    }
    zone.full_report(0, now).entries.remove(0)
}

#[test]
fn a_child_whose_counts_fall_and_rise_again_makes_no_sum_that_is_unsound() {
    let many = Counts { offered: 5, dropped: 4, would_drop: 3, refused_later: 2 };
    let none = Counts { offered: 5, ..Counts::default() };
    let told = told(1, &[many, none, many, none, many]);
    assert!(told.counts.are_sound(), "{told:?}");
    assert_eq!((told.counts.offered, told.counts.dropped), (5, 5));
}

#[test]
fn many_children_with_the_most_there_is_make_no_sum_that_is_more() {
    let most = Counts { offered: Counts::MOST, ..Counts::default() };
    let told = told(3, &[most]);
    assert_eq!((told.counts.offered, told.demand), (Counts::MOST, Some(3e10)));
}
