//! `headworks bench fanin` and `bench tick`: what reports cost a parent, told in figures, with none of them lost.

use std::time::Duration;

use serde_json::Value;

use crate::harness::Process;

/// Runs a bench, and returns the one run of each that it measured.
#[track_caller]
fn rows(args: &[&str], measured: &[&str]) -> Vec<Value> {
    let common = ["--duration", "2s", "--runs", "1", "--json"];
    let ended = Process::run(args.iter().copied().chain(common), Duration::from_secs(120));
    assert!(ended.status.success(), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rows = report.as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["measured"].as_str().unwrap()).collect();
    assert_eq!(names, measured, "{report}");
    rows.iter().map(|row| row["runs"][0].clone()).collect()
}

/// No figure here depends on how fast the machine is.
#[track_caller]
fn is_sound(run: &Value) {
    let sent = run["reports_sent"].as_u64().unwrap();
    assert!(sent > 0 && run["reports_taken"] == sent, "reports were lost: {run}");
    assert_eq!(run["without_headroom"], 0, "{run}");
    for figure in ["cores", "report_us", "bucket_ns", "resident_bytes_per_child", "plans_per_second"] {
        assert!(run[figure].as_f64().is_some_and(|value| value > 0.0), "{figure} in {run}");
    }
}

#[test]
fn an_aggregator_takes_in_every_report_and_tells_every_headroom() {
    // So many that even the echo takes several of the hundredths of a second in which the kernel tells processor time.
    let args = ["bench", "fanin", "--agents", "400", "--buckets", "20", "--resting", "10"];
    rows(&args, &["aggregator", "echo"]).iter().for_each(is_sound);
}

#[test]
fn a_controller_takes_in_every_report_and_tells_every_headroom() {
    let args = ["bench", "tick", "--zones", "5", "--buckets", "20000", "--beside", "nothing"];
    rows(&args, &["controller"]).iter().for_each(is_sound);
}
