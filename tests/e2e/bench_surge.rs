//! `headworks bench surge`: a step in demand on processes of its own, told in figures, with nothing left behind.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Figure, Process, eventually};

/// Small enough for a machine that runs other tests at the same time.
const SMALL: [&str; 12] =
    ["bench", "surge", "--limit", "400", "--agents", "2", "--runs", "1", "--warm-up", "3s", "--surge", "2s"];

/// A figure of a run, which has to be a number.
#[track_caller]
fn number(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or_else(|| panic!("{name} is no number in {run}"))
}

#[test]
fn tells_the_figures_of_both_configurations() {
    let ended = Process::run(SMALL.into_iter().chain(["--json"]), Duration::from_secs(90));
    assert!(ended.status.success(), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows = report.as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["configuration"].as_str().unwrap()).collect();
    assert_eq!(names, ["early reports and guard", "neither"], "{report}");
    for row in rows {
        assert_eq!((&row["limit"], &row["agents"]), (&Value::from(400), &Value::from(2)), "{row}");
        let runs = row["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 1, "{row}");
        is_plausible(&runs[0]);
    }
}

/// No figure here depends on how fast the machine is.
#[track_caller]
fn is_plausible(run: &Value) {
    for (phase, rate) in [("before", 360.0), ("after", 1600.0)] {
        let [wanted, offered] = ["wanted", "offered"].map(|name| number(run, &format!("{name}_{phase}")));
        Figure::new(&format!("wanted in {run}"), wanted).is_near(rate, 0.01);
        Figure::new(&format!("offered in {run}"), offered).is_about(rate, 0.2);
        let admitted = number(run, &format!("admitted_{phase}"));
        assert!(admitted > 0.0 && admitted <= offered, "{run}");
    }
    assert!(run["settle_s"].is_null() || (0.0..=2.0).contains(&number(run, "settle_s")), "{run}");
    // No more comes through than is offered: three times the limit beyond it, for two seconds, give or take chance.
    assert!((0.0..=7.0).contains(&number(run, "excess_s")), "{run}");
    assert!(number(run, "peak") > 0.0, "{run}");
    assert!(number(run, "late_p99_ms") <= number(run, "late_max_ms"), "{run}");
    assert!(run["unanswered"].is_u64(), "{run}");
}

/// Where the fleet under way keeps its sockets, as the progress tells it.
fn folder(bench: &Process) -> Option<String> {
    let lines = bench.stderr.lines();
    let place = lines.iter().find_map(|line| line.split_once(" in /")).map(|(_, place)| format!("/{place}"));
    place.filter(|place| place.contains("headworks-bench-"))
}

/// Processes with this text among their arguments.
fn processes_with(text: &str) -> usize {
    let found = std::fs::read_dir("/proc").unwrap().flatten();
    let arguments = found.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    arguments.filter(|arguments| String::from_utf8_lossy(arguments).contains(text)).count()
}

#[test]
fn leaves_no_process_and_no_file_behind_when_interrupted() {
    let mut bench = Process::start("bench", SMALL);
    eventually("a warm-up", Duration::from_secs(30), || {
        (bench.stderr.lines().len() < 2).then(|| bench.stderr.tail())
    });
    let folder = folder(&bench).unwrap_or_else(|| panic!("no folder in\n{}", bench.stderr.tail()));
    // The controller has its limits file there, and each agent its socket.
    assert_eq!(processes_with(&folder), 3, "{}", bench.stderr.tail());
    assert!(Path::new(&folder).join("limits.yaml").exists());
    bench.signal("INT");
    let status = bench.wait(Duration::from_secs(5));
    assert_eq!(status.code(), Some(1), "{}", bench.stderr.tail());
    assert!(
        bench.stderr.whole().contains("interrupted before the first run was over"),
        "{}",
        bench.stderr.tail()
    );
    assert_eq!(processes_with(&folder), 0);
    assert!(!Path::new(&folder).exists(), "{folder} is still there");
}
