//! Many limits: they arrive whole, or are refused where they are loaded, and never in between.

use std::fmt::Write;
use std::time::Duration;

use crate::harness::{FleetPlan, LimitsFile, Process, eventually};

/// So many limits, each with a value this long to match.
fn limits(count: usize, value: usize) -> String {
    let mut text = "limits:\n".to_owned();
    for number in 0..count {
        let value = format!("{number:0>value$}");
        writeln!(text, "  - {{name: limit-{number}, match: {{service: \"{value}\"}}, rate: 100/second}}")
            .unwrap();
    }
    text
}

#[test]
fn sixty_thousand_limits_reach_every_agent() {
    let fleet = FleetPlan::new(&limits(60_000, 20)).zones(&[("a", 1)]).start();
    eventually("the agent has all of them", Duration::from_secs(30), || {
        let status = fleet.agents[0].try_status();
        let known = status.map_or(0, |status| status.0["limits"].as_array().map_or(0, Vec::len));
        (known != 60_000).then(|| format!("{known} of them"))
    });
    assert_eq!(fleet.agents[0].says("not attached"), 0, "the agent's stream broke");
    let answer = fleet.agents[0].get("http", &format!("/allow?key=K&service={:0>20}", 59_999)).unwrap();
    assert!(answer.status == 200 && answer.body.contains("limit-59999"), "{answer:?}");
}

#[test]
fn limits_that_no_plan_could_carry_are_refused_with_size_and_bound() {
    let file = LimitsFile::new(&limits(15_000, 900));
    let path = file.path().display().to_string();
    for args in
        [&["limits", "check", &path][..], &["controller", "--limits", &path, "--listen", "127.0.0.1:0"]]
    {
        let ended = Process::run(args, Duration::from_secs(20));
        assert_eq!(ended.status.code(), Some(64), "{args:?}: {}", ended.stderr);
        let said = ended.stdout + &ended.stderr;
        assert!(said.contains("at most 12582912 of them"), "{args:?}: {said}");
    }
}
