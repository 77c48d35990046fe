//! The rules and alerts that ship are sound, and fire and clear when they should.

use std::process::Command;

use crate::harness::deployed;

#[track_caller]
fn promtool(args: &[&str]) {
    let made = Command::new("promtool").args(args).current_dir(deployed("prometheus")).output();
    let made = made.expect("promtool is missing: install Debian's package prometheus");
    let said = [made.stdout, made.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(made.status.success(), "promtool {args:?}:\n{said}");
}

#[test]
fn they_are_sound_and_fire_and_clear() {
    promtool(&["check", "config", "prometheus.yml"]);
    promtool(&["check", "config", "--syntax-only", "../compose/prometheus.yml"]);
    promtool(&["check", "rules", "rules.yaml", "alerts.yaml"]);
    promtool(&["test", "rules", "alerts-test.yaml"]);
}
