//! Metrics: well formed on every tier, idle and under load, and about limits, never about who is limited.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::{Fleet, FleetPlan, Node, Tally, sleep_until};

const PER_KEY: &str = "
limits:
  - {name: checkout, match: {service: checkout}, per: [key], rate: 100/second}
  - {name: free, match: {service: checkout}, rate: unlimited}
  - {name: banned, match: {service: banned}, rate: 0/second}
  - {name: budget, match: {service: checkout}, per: [key], rate: 6000/minute}
";

/// What promtool finds wrong with this text.
pub(crate) fn faults(text: &str) -> Option<String> {
    let command = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut promtool = command.unwrap_or_else(|error| {
        panic!("cannot run promtool: {error}; `tests/run` installs it, or `apt-get install prometheus`")
    });
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let clean = output.status.success() && said.is_empty();
    (!clean).then(|| format!("{}: {}", output.status, String::from_utf8_lossy(&said)))
}

#[track_caller]
fn is_well_formed(node: &Node, when: &str) {
    let text = node.scrape().0;
    let faults = faults(&text);
    assert!(faults.is_none(), "{} {when}: {}\n{text}", node.id, faults.unwrap());
    assert!(!text.contains("NaN"), "{} {when} tells NaN\n{text}", node.id);
    assert!(
        !text.contains("\"K\"") && !text.contains("key="),
        "{} {when} tells who is limited\n{text}",
        node.id
    );
}

fn all_are_well_formed(fleet: &Fleet, when: &str) {
    fleet.nodes().for_each(|node| is_well_formed(node, when));
}

#[test]
fn promtool_passes_every_tier_idle_and_under_load() {
    let fleet = FleetPlan::new(PER_KEY).start();
    all_are_well_formed(&fleet, "before any traffic");
    let loads = fleet.load(&[50.0; 4], Duration::from_secs(5));
    sleep_until(loads.second(4));
    all_are_well_formed(&fleet, "under load");
    let under_load = fleet.controller.scrape().of_limit("headworks_offered_rate", "checkout");
    assert!(under_load > 100.0, "the controller hears {under_load}/s of 200/s");
    Tally::sum(&loads.finish()).has_no_errors();
    std::thread::sleep(Duration::from_secs(5));
    all_are_well_formed(&fleet, "idle again");
    let idle = fleet.controller.scrape().of_limit("headworks_offered_rate", "checkout");
    assert!(idle < 1.0, "idle for 5 s, the controller still tells {idle}/s");
}
