//! The controller is away: the fleet goes on by its last ratios for the hold, then opens; and comes back.

use std::time::{Duration, Instant};

use crate::LIMIT_400;
use crate::harness::{Figure, Fleet, FleetPlan, Node, Tally, eventually, sleep_until};

/// When it is killed, in seconds of the load: by then the loop has settled.
const KILLED: u64 = 6;

#[test]
fn keeps_the_last_ratio_for_the_hold_then_lets_everything_pass_until_it_comes_back() {
    let mut fleet = FleetPlan::new(LIMIT_400).hold("8s").start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(40));
    sleep_until(loads.second(KILLED));
    fleet.controller.kill();
    sleep_until(loads.second(KILLED + 7) - Duration::from_millis(500));
    below(&fleet).for_each(|node| assert_eq!(node.scrape().plan_state(), "alone", "{}", node.id));
    eventually("everyone below the controller is open", Duration::from_secs(5), || {
        let states: Vec<String> = below(&fleet).map(|node| node.scrape().plan_state()).collect();
        states.iter().any(|state| state != "open").then(|| format!("{states:?}"))
    });
    let opened = Instant::now();
    // Four seconds to open, and two that count.
    sleep_until(opened + Duration::from_secs(7));
    let (opened, restarted) = (loads.second_from(opened), loads.second_from(Instant::now()));
    fleet.controller.restart();
    fleet.stands();
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    for node in below(&fleet) {
        assert_eq!(node.says("hold is over: failing open"), 1, "{} says so once", node.id);
    }
    Figure::new(&format!("admitted in the hold\n{all}\n"), all.rate(6..13)).is_about(400.0, 0.05);
    let open = all.during(opened + 4..opened + 6);
    assert_eq!(open.allowed, open.attempts, "something is dropped after the hold\n{all}");
    Figure::new(&format!("admitted 15 s after\n{all}\n"), all.rate(restarted + 15..40)).is_about(400.0, 0.03);
}

/// Those who go on alone without it.
fn below(fleet: &Fleet) -> impl Iterator<Item = &Node> {
    fleet.aggregators.iter().chain(&fleet.agents)
}

#[test]
fn returns_to_the_limit_when_it_comes_back_during_the_hold() {
    let mut fleet = FleetPlan::new(LIMIT_400).hold("30s").start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(37));
    sleep_until(loads.second(KILLED));
    fleet.controller.kill();
    sleep_until(loads.second(KILLED + 9));
    fleet.controller.restart();
    let restarted = loads.second_from(Instant::now());
    fleet.stands();
    let attached = loads.second_from(Instant::now());
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    Figure::new(&format!("admitted in the hold\n{all}\n"), all.rate(6..15)).is_about(400.0, 0.05);
    let admitted = all.during(attached..attached + 10).allowed;
    assert!(admitted <= 4_800, "{admitted} in the 10 s from second {attached}\n{all}");
    Figure::new(&format!("admitted 15 s after\n{all}\n"), all.rate(restarted + 15..37)).is_about(400.0, 0.03);
}
