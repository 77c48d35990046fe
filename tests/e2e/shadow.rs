//! Shadow: a limit that is watched but not enforced tells what it would have done.

use std::time::Duration;

use crate::harness::{Figure, Fleet, FleetPlan, Tally, sleep_until};

const SHADOW: &str = "
limits:
  - {name: checkout, match: {service: checkout}, rate: 400/second, mode: shadow}
";

/// The same limit watched and enforced. The watched one comes first, so both are offered the same.
const BOTH: &str = "
limits:
  - {name: watched, match: {service: checkout}, rate: 400/second, order: 1, mode: shadow}
  - {name: enforced, match: {service: checkout}, rate: 400/second, order: 2}
";

/// A counter of one limit, over all agents.
fn counted(fleet: &Fleet, metric: &str, limit: &str) -> f64 {
    fleet.agents.iter().map(|agent| agent.scrape().of_limit(metric, limit)).sum()
}

#[test]
fn drops_nothing_and_counts_what_it_would_have_dropped() {
    let fleet = FleetPlan::new(SHADOW).start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(17));
    let totals =
        || ["headworks_offered_total", "headworks_would_drop_total"].map(|m| counted(&fleet, m, "checkout"));
    sleep_until(loads.second(5));
    let before = totals();
    sleep_until(loads.second(16));
    let after = totals();
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    assert_eq!(all.total.denied, 0, "shadow dropped requests\n{all}");
    assert!(counted(&fleet, "headworks_dropped_total", "checkout").abs() < 0.5);
    let part = (after[1] - before[1]) / (after[0] - before[0]);
    Figure::new("part that would be dropped", part).is_about(1.0 / 3.0, 0.03);
}

#[test]
fn would_drop_what_the_same_limit_drops_when_enforced() {
    let fleet = FleetPlan::new(BOTH).start();
    let all = Tally::sum(&fleet.load(&[300.0, 200.0, 80.0, 20.0], Duration::from_secs(20)).finish());
    all.has_no_errors();
    Figure::new(&format!("admitted a second\n{all}\n"), all.rate(5..20)).is_about(400.0, 0.03);
    let would_drop = counted(&fleet, "headworks_would_drop_total", "watched");
    let dropped = counted(&fleet, "headworks_dropped_total", "enforced");
    Figure::new("headworks_would_drop_total", would_drop).is_about(dropped, 0.03);
}
