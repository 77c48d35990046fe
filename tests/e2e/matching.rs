//! Which limits a request meets, in a fleet and by `limits explain`: patterns, keys exactly as named, overrides.

use std::time::Duration;

use serde_json::Value;

use crate::command_line::fails;
use crate::harness::{Fleet, FleetPlan, LimitsFile, Load, Loads, Process, eventually};

const LIMITS: &str = r#"
limits:
  - {name: internal, match: {path: "*/internal/*"}, rate: 0/second}
  - {name: key-alone, match: {key: alone}, exactly: true, rate: 0/second}
  - name: callers
    match: {service: checkout}
    per: [caller]
    rate: 50/second
    overrides:
      - {match: {caller: "gold-*"}, rate: 200/second}
      - {match: {caller: trial}, rate: 0/second, mode: shadow}
      - {match: {caller: banned}, rate: 0/second}
      - {match: {caller: staff}, rate: 0/second, mode: off}
"#;

fn fleet() -> Fleet {
    let fleet = FleetPlan::new(LIMITS).zones(&[("a", 1), ("b", 1)]).start();
    eventually("the agents have the limits", Duration::from_secs(5), || {
        let has = |agent: &crate::harness::Node| agent.status().limit("callers").is_some();
        (!fleet.agents.iter().all(has)).then(|| "not yet".to_owned())
    });
    fleet
}

#[test]
fn patterns_keys_and_overrides_hold_in_a_fleet() {
    let fleet = fleet();
    for (query, status, name) in [
        ("key=K&path=/a/internal/b", 429, Some("internal")),
        ("key=K&path=/a/internal", 200, None),
        ("key=alone", 429, Some("key-alone")),
        ("key=alone&path=/", 200, None),
        ("key=K&service=checkout&caller=banned", 429, Some("callers")),
        ("key=K&service=checkout&caller=staff", 200, None),
        ("key=K&service=checkout&caller=trial", 200, None),
        ("key=K&service=checkout&caller=gold-1", 200, Some("callers")),
    ] {
        let answer = fleet.agents[0].get("http", &format!("/allow?{query}")).unwrap();
        assert_eq!(
            (answer.status, answer.json()["limit_name"].as_str()),
            (status, name),
            "{query}: {answer:?}"
        );
    }
    let gold = fleet.agents[0].get("http", "/allow?key=K&service=checkout&caller=gold-1").unwrap().json();
    assert_eq!(gold["rate"], 200, "{gold}");
}

#[test]
fn each_bucket_is_held_to_its_own_rate_over_all_agents() {
    let fleet = fleet();
    let callers = ["plain", "gold-1"];
    let load = |agent: usize, caller: &str| {
        Load::new(&fleet.agents[agent].url("http"), 300.0).with(&format!("caller={caller}"))
    };
    let loads: Vec<Load> = callers.iter().flat_map(|caller| [load(0, caller), load(1, caller)]).collect();
    // The first seconds find out what the demand is, and the one after the pause finds out again.
    Loads::start(&loads, Duration::from_secs(4)).finish();
    let tallies = Loads::start(&loads, Duration::from_secs(5)).finish();
    for (place, (caller, rate)) in callers.iter().zip([50.0, 200.0]).enumerate() {
        let of_both = &tallies[2 * place..2 * place + 2];
        let allowed: u64 = of_both.iter().map(|tally| tally.during(1..5).allowed).sum();
        let held = allowed as f64 / 4.0 / rate;
        assert!((0.75..=1.25).contains(&held), "{caller}: {held} of {rate}/s");
    }
}

#[test]
fn explain_tells_what_the_fleet_does() {
    let file = LimitsFile::new(LIMITS);
    let path = file.path().display().to_string();
    let run = |args: &[&str]| {
        let all: Vec<&str> = ["limits", "explain", "--limits", &path].iter().chain(args).copied().collect();
        let ended = Process::run(&all, Duration::from_secs(5));
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        ended.stdout
    };
    let told = run(&["key=K", "service=checkout", "caller=gold-1"]);
    assert!(told.contains("callers: bucket caller=\"gold-1\", 200/second by overrides[0]"), "{told}");
    assert!(told.contains("internal: lacks path"), "{told}");
    let json: Value = serde_json::from_str(&run(&["--json", "key=alone"])).unwrap();
    assert_eq!(json["met"][0]["limit"], "key-alone", "{json}");
    fails(&["limits", "explain", "--limits", &path, "key"], 64, &["key=value"]);
    fails(&["limits", "explain", "--limits", &path, "a=1", "a=2"], 64, &["given twice"]);
    fails(&["limits", "explain", "--limits", "/no/such/file", "a=1"], 64, &["/no/such/file"]);
}

#[test]
fn the_schema_is_printed_as_json() {
    let ended = Process::run(["limits", "schema"], Duration::from_secs(5));
    let schema: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(
        schema["properties"]["limits"]["items"]["properties"]["overrides"]["items"]["properties"]["mode"]
            .is_object()
    );
}
