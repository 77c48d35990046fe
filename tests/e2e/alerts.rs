//! The alerts that ship fire when they should, and name only metrics that exist.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::LIMIT_400;
use crate::harness::FleetPlan;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus")
}

#[track_caller]
fn promtool(args: &[&str]) {
    let made = Command::new("promtool").args(args).current_dir(folder()).output();
    let made = made.expect("promtool is missing: install Debian's package prometheus");
    let said = [made.stdout, made.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(made.status.success(), "promtool {args:?}:\n{said}");
}

#[test]
fn they_are_sound_and_fire_and_clear() {
    promtool(&["check", "rules", "alerts.yaml"]);
    promtool(&["test", "rules", "alerts-test.yaml"]);
}

#[test]
fn they_name_metrics_that_a_fleet_has() {
    let fleet = FleetPlan::new(LIMIT_400).tls().start();
    let scraped: String = fleet.nodes().map(|node| node.scrape().0).collect();
    let alerts = fs::read_to_string(folder().join("alerts.yaml")).unwrap();
    let expressions = alerts.lines().filter(|line| line.trim_start().starts_with("expr:"));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names: Vec<&str> = (expressions.flat_map(|line| line.split(|c| !is_part(c))))
        .filter(|name| name.starts_with("headworks_"))
        .collect();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        let has = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        assert!(scraped.lines().any(has), "no node has a metric {name}");
    }
}
