//! `headworks status`: what a node sees.

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Client, Fleet, Process, Traffic, assert_near, assert_within_percent};

const LIMITS: &str = "limits:
  - {name: checkout, match: {service: checkout}, rate: 400/second}
  - {name: per-key, per: [key], rate: 1000/second, mode: shadow}
  - {name: free, match: {service: free}, rate: unlimited}
";

fn limit<'s>(status: &'s Value, name: &str) -> &'s Value {
    let limits = status["limits"].as_array().unwrap();
    limits.iter().find(|limit| limit["name"] == name).unwrap_or_else(|| panic!("no {name} in {status}"))
}

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("no number {field} in {value}"))
}

fn loaded(fleet: &Fleet) -> Traffic {
    let client = |(number, agent): (usize, &crate::harness::Node)| Client {
        targets: vec![agent.url("http")],
        key: if number == 0 { "one" } else { "others" },
        attributes: vec!["service=checkout".to_owned()],
        rate: 150,
    };
    Traffic::start(fleet.agents.iter().enumerate().map(client), Duration::from_secs(8))
}

#[test]
fn status_shows_zones_children_and_limits() {
    let fleet = Fleet::start(LIMITS);
    let traffic = loaded(&fleet);
    traffic.wait_until(6.0);
    assert_controller(&fleet.controller.status());
    assert_aggregator(&fleet.aggregators[0].status());
    assert_agent(&fleet.agents[0].status());
    assert_table(&fleet);
    traffic.finish().assert_unharmed();
}

fn assert_controller(status: &Value) {
    assert_eq!((&status["node"], &status["tier"]), (&"controller".into(), &"controller".into()), "{status}");
    assert!(status["version"].as_str().is_some_and(|version| !version.is_empty()), "{status}");
    assert!(number(status, "plan_age_ms") < 2000.0, "{status}");
    assert_eq!(number(status, "limits_generation"), 1.0, "{status}");
    let zones: Vec<(&str, u64, u64)> = (status["zones"].as_array().unwrap().iter())
        .map(|zone| {
            (
                zone["zone"].as_str().unwrap(),
                zone["aggregators"].as_u64().unwrap(),
                zone["agents"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(zones, [("a", 1, 2), ("b", 1, 2)]);
    assert_children(status, &["aggregator-a", "aggregator-b"]);
    assert_checkout(status, 600.0);
    assert_top(limit(status, "per-key"));
    assert_eq!(limit(status, "per-key")["mode"], "shadow");
    assert!(limit(status, "free")["rate"].is_null(), "unlimited is no number: {status}");
}

fn assert_aggregator(status: &Value) {
    assert_eq!((&status["tier"], &status["state"]), (&"aggregator".into(), &"fresh".into()), "{status}");
    assert_children(status, &["agent-a1", "agent-a2"]);
    assert_checkout(status, 300.0);
}

fn assert_agent(status: &Value) {
    assert_eq!((&status["tier"], &status["state"]), (&"agent".into(), &"fresh".into()), "{status}");
    assert_children(status, &[]);
    assert_checkout(status, 150.0);
}

fn assert_children(status: &Value, expected: &[&str]) {
    let children = status["children"].as_array().unwrap();
    let ids: Vec<&str> = children.iter().map(|child| child["node"].as_str().unwrap()).collect();
    assert_eq!(ids, expected, "{status}");
    for child in children {
        assert!(number(child, "report_age_ms") < 3000.0, "reports come every second: {child}");
    }
}

/// `offered` is what reaches this node.
fn assert_checkout(status: &Value, offered: f64) {
    let checkout = limit(status, "checkout");
    assert_eq!(number(checkout, "rate"), 400.0);
    assert_within_percent("offered", number(checkout, "offered"), offered, 8.0);
    assert_within_percent("admitted", number(checkout, "admitted"), offered * 2.0 / 3.0, 8.0);
    assert_within_percent("dropped", number(checkout, "dropped"), offered / 3.0, 8.0);
    assert_near("ratio", number(checkout, "ratio"), 1.0 / 3.0, 0.02);
}

/// The pipeline puts the limit with a `per` key first, so it sees all that is offered.
fn assert_top(per_key: &Value) {
    assert_eq!(number(per_key, "buckets"), 2.0, "{per_key}");
    let top = per_key["top"].as_array().unwrap();
    assert_eq!((&top[0]["values"][0], &top[1]["values"][0]), (&"others".into(), &"one".into()), "{per_key}");
    assert_within_percent("offered of the largest", number(&top[0], "offered"), 450.0, 8.0);
    assert_within_percent("offered of the other", number(&top[1], "offered"), 150.0, 8.0);
}

fn assert_table(fleet: &Fleet) {
    let mut table = Process::start("status", &["status", "--admin", &fleet.controller.url("admin")]);
    assert_eq!(table.exit_code(Duration::from_secs(5)), 0, "{}", table.complaint());
    let text = table.stdout.to_end().join("\n");
    for word in ["checkout", "per-key", "free", "unlimited", "shadow", "aggregator-a", "aggregator-b", "400"]
    {
        assert!(text.contains(word), "the table should show {word}:\n{text}");
    }
}
