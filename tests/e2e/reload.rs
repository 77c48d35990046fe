//! Limits change while the fleet runs: good ones reach everybody, bad ones change nothing.

use std::fs::File;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use crate::LIMIT_400;
use crate::harness::{Figure, Fleet, FleetPlan, eventually};

/// How long a change may take from the file to the last agent.
const REACHES_ALL: Duration = Duration::from_secs(5);

fn generation(fleet: &Fleet) -> u64 {
    fleet.controller.status().generation()
}

fn load_errors(fleet: &Fleet) -> f64 {
    fleet.controller.scrape().value("headworks_limits_load_errors_total")
}

#[track_caller]
fn every_node_has_rate(fleet: &Fleet, rate: f64) {
    eventually(&format!("all go by {rate}/s"), REACHES_ALL, || {
        let rates: Vec<_> = fleet.nodes().map(|node| node.status().rate("checkout")).collect();
        rates.iter().any(|found| *found != Some(rate)).then(|| format!("{rates:?}"))
    });
}

#[test]
fn a_good_change_reaches_every_node() {
    let fleet = FleetPlan::new(LIMIT_400).start();
    every_node_has_rate(&fleet, 400.0);
    let before = generation(&fleet);
    fleet.limits.write(&LIMIT_400.replace("400", "250"));
    every_node_has_rate(&fleet, 250.0);
    assert_eq!(generation(&fleet), before + 1);
    fleet.limits.write("limits: []\n");
    eventually("the limit is gone everywhere", REACHES_ALL, || {
        let left = fleet.nodes().find(|node| node.status().limit("checkout").is_some());
        left.map(|node| format!("{} still has it", node.id))
    });
    let text = fleet.agents[0].scrape().0;
    assert!(!text.contains("checkout"), "series of a limit that is gone\n{text}");
}

#[test]
fn a_bad_change_leaves_the_old_limits_in_force_and_is_told() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).start();
    let before = generation(&fleet);
    assert!(load_errors(&fleet) < 0.5);
    fleet.limits.write("limits:\n  - {name: checkout, rate: 300/fortnight}\n");
    eventually("the error is counted", REACHES_ALL, || {
        (load_errors(&fleet) < 0.5).then(|| "it still is 0".to_owned())
    });
    let place = format!("{}:2:", fleet.limits.path().display());
    assert!(fleet.controller.says(&place) > 0, "the log does not name {place}");
    sleep(Duration::from_secs(2));
    Figure::new("load errors of one bad change", load_errors(&fleet)).is_near(1.0, 0.0);
    assert_eq!(generation(&fleet), before);
    every_node_has_rate(&fleet, 400.0);
    fleet.limits.write(&LIMIT_400.replace("400", "300"));
    every_node_has_rate(&fleet, 300.0);
}

#[test]
fn a_touched_file_makes_no_new_generation() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).start();
    let before = generation(&fleet);
    let file = File::options().append(true).open(fleet.limits.path()).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    sleep(Duration::from_secs(3));
    fleet.limits.write(LIMIT_400);
    sleep(Duration::from_secs(3));
    assert_eq!(generation(&fleet), before);
    assert!(load_errors(&fleet) < 0.5);
}
