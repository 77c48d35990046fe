//! The limits file is followed by its content; a bad one changes nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use crate::harness::{CHECKOUT_400, Fleet, eventually, stays};

/// A good change is in force on every agent by then.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(5);
/// Two looks at the file, and some.
const LOOKED_TWICE: Duration = Duration::from_millis(2500);

const GENERATION: &str = "headworks_limits_generation";
const LOAD_ERRORS: &str = "headworks_limits_load_errors_total";

fn limits(rate: u32) -> String {
    CHECKOUT_400.replace("400", &rate.to_string())
}

fn await_rate(fleet: &Fleet, rate: u32) {
    for node in fleet.nodes() {
        let what = format!("{} goes by {rate}/second", node.id);
        eventually(&what, IN_FORCE_WITHIN, || {
            match node.metrics().find("headworks_limit_rate", &[("limit", "checkout")]) {
                Some(now) if (now - f64::from(rate)).abs() < 0.1 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
    }
}

#[test]
fn a_new_limits_file_is_in_force_everywhere_soon_however_it_was_written() {
    let fleet = Fleet::start(CHECKOUT_400);
    let file = fleet.limits();
    let generation = fleet.controller.metrics().value(GENERATION);

    let renamed = fleet.folder().join("renamed.yaml");
    fs::write(&renamed, limits(200)).unwrap();
    fs::rename(&renamed, &file).unwrap();
    await_rate(&fleet, 200);

    fs::write(&file, limits(250)).unwrap();
    await_rate(&fleet, 250);

    let target = fleet.folder().join("target.yaml");
    fs::write(&target, limits(300)).unwrap();
    let link = fleet.folder().join("link");
    symlink(&target, &link).unwrap();
    fs::rename(&link, &file).unwrap();
    await_rate(&fleet, 300);

    let metrics = fleet.controller.metrics();
    assert_eq!(metrics.value(GENERATION), generation + 3.0);
    assert_eq!(metrics.value(LOAD_ERRORS), 0.0);
}

#[test]
fn a_bad_limits_file_leaves_the_old_limits_and_is_counted() {
    let fleet = Fleet::start_small(CHECKOUT_400);
    let generation = fleet.controller.metrics().value(GENERATION);
    let file = fleet.limits();
    fs::write(&file, "limits:\n  - {name: checkout, rate: fast}\n  - {name: b, rate: 1/second, mode: dry}\n")
        .unwrap();

    eventually("the error is counted", IN_FORCE_WITHIN, || {
        match fleet.controller.metrics().value(LOAD_ERRORS) {
            errors if errors >= 1.0 => Ok(()),
            errors => Err(format!("{errors} errors")),
        }
    });
    for place in ["2:28: limits[0].rate: ", "3:38: limits[1].mode: "] {
        let named = format!("{}:{place}", file.display());
        let said = fleet
            .controller
            .process
            .stderr
            .find(Duration::from_secs(1), |line| line.contains(&named).then_some(()));
        assert!(said.is_some(), "the log does not name {named}");
    }
    stays("the old limits hold", LOOKED_TWICE, || {
        let metrics = fleet.controller.metrics();
        let seen = (
            metrics.value(GENERATION),
            metrics.value(LOAD_ERRORS),
            metrics.of_limit("headworks_limit_rate", "checkout"),
        );
        if seen == (generation, 1.0, 400.0) {
            Ok(())
        } else {
            Err(format!("generation, errors, rate: {seen:?}"))
        }
    });
    await_rate(&fleet, 400);

    fs::write(&file, limits(500)).unwrap();
    await_rate(&fleet, 500);
}

#[test]
fn a_touch_makes_no_new_generation() {
    let fleet = Fleet::start_small(CHECKOUT_400);
    let before = fleet.controller.metrics().value(GENERATION);
    let renamed = fleet.folder().join("same.yaml");
    fs::write(&renamed, CHECKOUT_400).unwrap();
    fs::rename(&renamed, fleet.limits()).unwrap();
    stays("the generation is the same", LOOKED_TWICE, || {
        match fleet.controller.metrics().value(GENERATION) {
            now if (now - before).abs() < 0.1 => Ok(()),
            now => Err(format!("{now} after {before}")),
        }
    });
}

#[test]
fn series_of_a_removed_limit_go_away() {
    let fleet = Fleet::start_small(CHECKOUT_400);
    fs::write(fleet.limits(), "limits: []\n").unwrap();
    for node in fleet.nodes() {
        eventually(&format!("{} has forgotten the limit", node.id), IN_FORCE_WITHIN, || {
            let text = node.metrics().text;
            if text.contains("checkout") { Err(text) } else { Ok(()) }
        });
    }
}
