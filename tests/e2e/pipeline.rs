//! Two limits on one request: a caller's own comes first, and the service's counts what that one let through.

use std::ops::Range;
use std::time::Duration;

use crate::harness::{Figure, Fleet, FleetPlan, Load, Loads, Tally};

const CALLER: &str = "  - {name: caller, match: {service: checkout}, per: [caller], rate: 300/second}\n";
const SERVICE: &str = "  - {name: service, match: {service: checkout}, rate: 1000/second}\n";

/// Seconds that count: the loop may take a few to find its feet.
const COUNTED: Range<usize> = 5..20;

/// A caller whose requests go to all agents in turn.
fn caller(fleet: &Fleet, name: &str, rps: f64) -> Load {
    let targets: Vec<String> = fleet.agents.iter().map(|agent| agent.url("http")).collect();
    Load::new(&targets.join(","), rps).with(&format!("caller={name}"))
}

/// One hog that offers twice the whole service's limit, and five who stay below their own limits.
fn shares(limits: &str) {
    let fleet = FleetPlan::new(limits).start();
    let mut loads = vec![caller(&fleet, "hog", 2000.0)];
    loads.extend((1..=5).map(|number| caller(&fleet, &format!("small-{number}"), 180.0)));
    let tallies = Loads::start(&loads, Duration::from_secs(20)).finish();
    let all = Tally::sum(&tallies);
    all.has_no_errors();
    let rates: Vec<f64> = tallies.iter().map(|tally| tally.rate(COUNTED)).collect();
    Figure::new(&format!("admitted a second, of {rates:?},"), all.rate(COUNTED)).is_about(1000.0, 0.03);
    Figure::new(&format!("the hog's part of {rates:?}"), rates[0]).is_about(250.0, 0.08);
    for rate in &rates[1..] {
        Figure::new(&format!("a small caller's part of {rates:?}"), *rate).is_about(150.0, 0.08);
    }
}

#[test]
fn a_hog_pays_for_itself_with_the_callers_limit_first_in_the_file() {
    shares(&format!("limits:\n{CALLER}{SERVICE}"));
}

#[test]
fn a_hog_pays_for_itself_with_the_services_limit_first_in_the_file() {
    shares(&format!("limits:\n{SERVICE}{CALLER}"));
}
