//! The controller is away: the fleet goes on by its last ratios for the hold, then opens; and comes back.

use std::time::{Duration, Instant};

use crate::LIMIT_400;
use crate::harness::{Figure, FleetPlan, Tally, sleep_until};

/// When it is killed, in seconds of the load: by then the loop has settled.
const KILLED: u64 = 6;

#[test]
fn keeps_the_last_ratio_for_the_hold_and_then_lets_everything_pass() {
    let mut fleet = FleetPlan::new(LIMIT_400).hold("8s").start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(22));
    sleep_until(loads.second(KILLED));
    fleet.controller.kill();
    sleep_until(loads.second(KILLED + 7) - Duration::from_millis(500));
    fleet.agents.iter().for_each(|agent| assert_eq!(agent.scrape().plan_state(), "alone", "{}", agent.id));
    sleep_until(loads.second(KILLED + 12));
    for agent in &fleet.agents {
        assert_eq!(agent.scrape().plan_state(), "open", "{}", agent.id);
        assert_eq!(agent.says("failing open"), 1, "{} says so once", agent.id);
    }
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    Figure::new(&format!("admitted in the hold\n{all}\n"), all.rate(6..13)).is_about(400.0, 0.05);
    let open = all.during(17..22);
    assert_eq!(open.allowed, open.attempts, "something is dropped after the hold\n{all}");
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
