//! Several limits on one request: each judges only what those before it let through.

use std::ops::Range;
use std::time::Duration;

use crate::harness::{Client, Fleet, Outcome, Traffic, assert_within_percent};

const PER_CALLER: &str =
    "  - {name: per-caller, match: {service: checkout}, per: [caller], rate: 300/second}\n";
const SERVICE: &str = "  - {name: service, match: {service: checkout}, rate: 1000/second}\n";
const HOG: u32 = 2000;
const SMALL: u32 = 180;
const SETTLED: Range<usize> = 6..20;

#[test]
fn a_hog_is_cut_first_when_its_limit_comes_first_in_the_file() {
    assert_hog_is_cut_first(&[PER_CALLER, SERVICE]);
}

#[test]
fn a_hog_is_cut_first_when_its_limit_comes_last_in_the_file() {
    assert_hog_is_cut_first(&[SERVICE, PER_CALLER]);
}

fn assert_hog_is_cut_first(limits: &[&str]) {
    let fleet = Fleet::start(&format!("limits:\n{}", limits.concat()));
    let callers = std::iter::once(HOG).chain([SMALL; 5]).enumerate();
    let clients = callers.map(|(number, rate)| caller(&fleet, number, rate));
    let outcome = Traffic::start(clients, Duration::from_secs(20)).finish();

    outcome.assert_unharmed();
    let course = outcome.course();
    assert_within_percent(&format!("all callers, of {course:?}"), outcome.admitted(&SETTLED), 1000.0, 3.0);
    assert_within_percent("the hog", admitted_of(&outcome, 0), 250.0, 8.0);
    for small in 1..=5 {
        assert_within_percent(&format!("small caller {small}"), admitted_of(&outcome, small), 150.0, 8.0);
    }
}

/// A caller asks all agents in turn.
fn caller(fleet: &Fleet, number: usize, rate: u32) -> Client {
    Client {
        targets: fleet.agents.iter().map(|agent| agent.url("http")).collect(),
        key: "demo",
        attributes: vec!["service=checkout".to_owned(), format!("caller=caller-{number}")],
        rate,
    }
}

fn admitted_of(outcome: &Outcome, client: usize) -> f64 {
    outcome.admitted_by(client..client + 1, &SETTLED)
}
