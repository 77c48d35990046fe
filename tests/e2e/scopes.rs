//! Limits that hold for each zone by itself.

use std::time::Duration;

use crate::harness::{Figure, FleetPlan, Load, Loads, Tally};

const LIMITS: &str =
    "limits:\n  - {name: checkout, match: {service: checkout}, rate: 200/second, scope: zone}\n";
/// Seconds of load, and from when on it is held.
const SECONDS: u64 = 14;
const SETTLED: usize = 5;

#[test]
fn zones_with_unequal_demand_each_hold_a_limit_of_their_own() {
    let fleet = FleetPlan::new(LIMITS).zones(&[("a", 2), ("b", 2)]).start();
    let rates = [450.0, 450.0, 150.0, 150.0];
    let loads: Vec<Load> =
        fleet.agents.iter().zip(rates).map(|(agent, rate)| Load::new(&agent.url("http"), rate)).collect();
    let tallies = Loads::start(&loads, Duration::from_secs(SECONDS)).finish();
    for (zone, tallies) in [("a", &tallies[..2]), ("b", &tallies[2..])] {
        let all = Tally::sum(tallies);
        let rate = all.rate(SETTLED..usize::try_from(SECONDS).unwrap() - 1);
        Figure::new(&format!("admitted in zone {zone}\n{all}\n"), rate).is_about(200.0, 0.1);
    }
    let top = fleet.controller.status().limit("checkout").unwrap()["top"].clone();
    assert_eq!(top[0]["scope"], serde_json::json!(["", "a"]), "{top}");
    assert_eq!(top[1]["scope"], serde_json::json!(["", "b"]), "{top}");
}
