//! A zone's aggregator is away: its agents go on by their last ratios, and the others take none of it for free.

use std::time::{Duration, Instant};

use crate::LIMIT_400;
use crate::harness::{Figure, FleetPlan, Tally, sleep_until};

/// When it is killed, in seconds of the load: by then the loop has settled.
const KILLED: u64 = 6;

#[test]
fn the_total_stays_for_the_hold_and_then_the_zone_opens() {
    let mut fleet = FleetPlan::new(LIMIT_400).hold("8s").start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(24));
    sleep_until(loads.second(KILLED));
    fleet.aggregators[0].kill();
    sleep_until(loads.second(KILLED + 7) - Duration::from_millis(500));
    let states = || fleet.agents.iter().map(|agent| agent.scrape().plan_state()).collect::<Vec<_>>();
    assert_eq!(states(), ["alone", "alone", "fresh", "fresh"]);
    sleep_until(loads.second(KILLED + 12));
    assert_eq!(states(), ["open", "open", "fresh", "fresh"]);
    let said: Vec<usize> = fleet.agents.iter().map(|agent| agent.says("failing open")).collect();
    assert_eq!(said, [1, 1, 0, 0], "agents below the dead aggregator say so once");
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    Figure::new(&format!("admitted in the hold\n{all}\n"), all.rate(6..13)).is_about(400.0, 0.05);
    let open = all.during(19..24);
    assert_eq!(open.allowed, open.attempts, "the zone is open, and the other one below the limit\n{all}");
}

#[test]
fn the_total_returns_to_the_limit_when_it_comes_back_during_the_hold() {
    let mut fleet = FleetPlan::new(LIMIT_400).hold("30s").start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(37));
    sleep_until(loads.second(KILLED));
    fleet.aggregators[0].kill();
    sleep_until(loads.second(KILLED + 9));
    fleet.aggregators[0].restart();
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
