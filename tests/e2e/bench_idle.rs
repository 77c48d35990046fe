//! `headworks bench idle`: what a fleet at rest costs its parents, told in figures.

use std::time::Duration;

use serde_json::Value;

use crate::harness::Process;

#[test]
fn tells_what_agents_at_rest_cost_their_parents() {
    let args = ["bench", "idle", "--agents", "20", "--duration", "2s", "--json"];
    let ended = Process::run(args, Duration::from_secs(60));
    assert!(ended.status.success(), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["agents"], 20, "{report}");
    assert!(report["duration_s"].as_f64().is_some_and(|time| time >= 2.0), "{report}");
    for parent in ["aggregator", "controller"] {
        let share = report[parent]["cpu_percent"].as_f64();
        assert!(share.is_some_and(|share| (0.0..100.0).contains(&share)), "{report}");
        let resident = report[parent]["resident_bytes"].as_u64();
        assert!(resident.is_some_and(|bytes| bytes > 1_000_000), "{report}");
    }
    // Three lines of progress, and none from each of the agents.
    assert_eq!(ended.stderr.lines().count(), 3, "{}", ended.stderr);
}
