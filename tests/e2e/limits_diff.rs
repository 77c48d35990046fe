//! `headworks limits diff`: what a file would change on a running controller, and drop of the present demand.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Figure, Fleet, FleetPlan, LimitsFile, Load, Loads, Process, eventually};

const RUNNING: &str = "
limits:
  - {name: per-key, match: {service: checkout}, per: [key], rate: 25000/second}
  - {name: gone, match: {service: gone}, rate: 5/second}
";
const NEW: &str = "
limits:
  - {name: per-key, match: {service: checkout}, per: [key], rate: 25/second, overrides: [{match: {key: a}, rate: 100/second}]}
  - {name: new, match: {service: new}, rate: 5/second}
";
const PATIENCE: Duration = Duration::from_secs(10);

fn diff(fleet: &Fleet, limits: &str, more: &[&str]) -> (Option<i32>, String) {
    let file = LimitsFile::new(limits);
    let (path, admin) = (file.path().display().to_string(), fleet.controller.url("admin"));
    let ended = Process::run([&["limits", "diff", &path, "--admin", &admin], more].concat(), PATIENCE);
    (ended.status.code(), format!("{}{}", ended.stdout, ended.stderr))
}

/// A fleet with 200/s of each of the keys a and b.
fn loaded() -> (Fleet, Loads) {
    let fleet = FleetPlan::new(RUNNING).zones(&[("a", 1)]).start();
    let load = |key: &str| Load { key: key.to_owned(), ..Load::new(&fleet.agents[0].url("http"), 200.0) };
    let loads = Loads::start(&[load("a"), load("b")], Duration::from_secs(60));
    eventually("the controller hears the traffic", PATIENCE, || {
        let limit = fleet.controller.status().limit("per-key").cloned().unwrap_or_default();
        let offered = limit["offered"].as_f64().unwrap_or_default();
        (offered < 380.0).then(|| format!("{offered}"))
    });
    (fleet, loads)
}

#[test]
fn tells_fields_and_effects_by_bucket_with_overrides() {
    let (fleet, _loads) = loaded();
    let (code, text) = diff(&fleet, NEW, &["--json"]);
    assert_eq!(code, Some(1), "{text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    let changes: Vec<_> =
        report["limits"].as_array().unwrap().iter().map(|l| (&l["limit"], &l["change"])).collect();
    let wanted = [("per-key", "changed"), ("new", "added"), ("gone", "removed")];
    assert!(
        changes.iter().zip(wanted).all(|((l, c), (limit, change))| **l == limit && **c == change),
        "{text}"
    );
    assert_eq!(changes.len(), 3, "{text}");
    let effect = &report["limits"][0]["effect"];
    let figure = |name: &str| effect[name].as_f64().unwrap();
    // Of what a is offered 100/s pass, of what b is 25/s.
    Figure::new("would drop", figure("would_drop")).is_near(figure("offered") - 125.0, 1e-6);
    Figure::new("newly", figure("newly_part")).is_about(figure("would_drop") / figure("offered"), 1e-6);
    Figure::new("offered", figure("offered")).is_about(400.0, 0.2);
    assert_eq!(report["limits"][1]["effect"]["basis"], "unknown");
    assert_eq!(report["would_be_held"], true);

    let (code, text) = diff(&fleet, NEW, &[]);
    assert_eq!(code, Some(1));
    for part in [
        "rate: 25000/second → 25/second",
        "override {key: a}: none → 100/second",
        "its demand is not known",
        "removed  gone",
        "would hold this back",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(fleet.controller.status().generation(), 1, "it changes nothing");
}

#[test]
fn its_exit_code_tells_a_difference_from_trouble() {
    let fleet = FleetPlan::new(RUNNING).zones(&[("a", 1)]).start();
    let (code, text) = diff(&fleet, &format!("# the same\n{RUNNING}"), &[]);
    assert_eq!((code, text.contains("nothing would change")), (Some(0), true), "{text}");
    assert_eq!(diff(&fleet, "limits: 3\n", &[]).0, Some(64));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, RUNNING).unwrap();
    let path = path.display().to_string();
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (away, agent) = (format!("http://{unused}"), fleet.agents[0].url("admin"));
    for (admin, code, told) in
        [(away.as_str(), 2, "cannot ask"), (&agent, 2, "a controller"), ("localhost", 64, "--admin")]
    {
        let ended = Process::run(["limits", "diff", &path, "--admin", admin], PATIENCE);
        assert_eq!(ended.status.code(), Some(code), "{admin}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{admin}: {}", ended.stderr);
    }
}
