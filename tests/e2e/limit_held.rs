//! The first promise: a fleet is held to its limit, however its traffic is spread.

use std::time::Duration;

use crate::LIMIT_400;
use crate::harness::{Figure, Fleet, FleetPlan, Tally, fraction, sleep_until};

/// Seconds that count: the loop may take a few to find its feet.
const COUNTED: std::ops::Range<usize> = 5..30;

fn every_ratio_is_a_third(fleet: &Fleet) {
    for node in fleet.agents.iter().chain([&fleet.controller]) {
        let ratio = node.scrape().of_limit("headworks_drop_ratio", "checkout");
        Figure::new(&format!("headworks_drop_ratio of {}", node.id), ratio).is_near(1.0 / 3.0, 0.02);
    }
}

/// Loads for 30 s, looks at the ratios on the way, and checks what was admitted in sum.
fn hold_at(rates: &[f64]) -> Vec<Tally> {
    let fleet = FleetPlan::new(LIMIT_400).start();
    let loads = fleet.load(rates, Duration::from_secs(30));
    sleep_until(loads.second(25));
    every_ratio_is_a_third(&fleet);
    let tallies = loads.finish();
    let all = Tally::sum(&tallies);
    all.has_no_errors();
    Figure::new(&format!("admitted a second\n{all}\n"), all.rate(COUNTED)).is_about(400.0, 0.03);
    tallies
}

#[test]
fn holds_even_traffic_to_the_limit() {
    hold_at(&[150.0; 4]);
}

#[test]
fn holds_uneven_traffic_to_the_limit_and_drops_the_same_part_everywhere() {
    let tallies = hold_at(&[300.0, 200.0, 80.0, 20.0]);
    for (tally, slack) in tallies.iter().zip([0.03, 0.03, 0.03, 0.06]) {
        let counts = tally.during(COUNTED);
        let dropped = fraction(counts.denied, counts.attempts);
        Figure::new(&format!("dropped part\n{tally}\n"), dropped).is_near(1.0 / 3.0, slack);
    }
}

#[test]
fn drops_nothing_below_the_limit() {
    let fleet = FleetPlan::new(LIMIT_400).start();
    let all = Tally::sum(&fleet.load(&[80.0; 4], Duration::from_secs(8)).finish());
    assert_eq!(all.total.denied, 0, "320/s is less than 400/s\n{all}");
    all.has_no_errors();
}
