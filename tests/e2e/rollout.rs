//! A change of a limit that one zone tries first.

use std::time::Duration;

use crate::harness::{Figure, FleetPlan, Tally};

const TRIED: &str = "
limits:
  - name: checkout
    match: {service: checkout}
    rate: 200/second
    rollout: {zones: [a], elsewhere: {rate: 400/second}}
";

#[test]
fn the_zone_that_tries_it_is_held_to_the_change_and_the_other_to_what_was() {
    let fleet = FleetPlan::new(TRIED).start();
    // Two agents in each of two zones, 800/s in all: half of the demand is in each zone.
    let tallies = fleet.load(&[200.0; 4], Duration::from_secs(12)).finish();
    let zone = |range: std::ops::Range<usize>| {
        let all = Tally::sum(&tallies[range]);
        all.has_no_errors();
        all.rate(4..12)
    };
    Figure::new("zone a, by 200/second", zone(0..2)).is_about(100.0, 0.1);
    Figure::new("zone b, by 400/second", zone(2..4)).is_about(200.0, 0.1);
}
