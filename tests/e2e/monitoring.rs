//! What ships to watch a fleet with, on a real Prometheus that scrapes a real fleet.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::LIMIT_400;
use crate::harness::{FleetPlan, Prometheus, Redis, Tally, deployed};

/// A limit of each kind that dashboards tell apart; all are asked for more than they let pass.
const LIMITS: &str = "
limits:
  - {name: checkout, match: {service: checkout}, rate: 200/second}
  - {name: budget, match: {service: checkout}, rate: 600/minute}
  - {name: tried, match: {service: checkout}, rate: 50/second, mode: shadow}
  - {name: counted, match: {service: other}, rate: 5/second, enforcement: exact}
";
const NAMES: [&str; 3] = ["checkout", "budget", "tried"];

/// The queries of a dashboard, in panels and in variables.
fn queries(dashboard: &Value, found: &mut Vec<String>) {
    match dashboard {
        Value::Object(map) => {
            found.extend(map.get("expr").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| queries(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| queries(value, found)),
        _ => {}
    }
}

fn dashboards() -> Vec<(String, Value)> {
    let folder = deployed("grafana/dashboards");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.display().to_string(), serde_json::from_str(&text).unwrap())
        })
        .collect()
}

/// A query as Grafana sends it, for this limit and all zones.
fn filled_in(query: &str, limit: &str) -> String {
    query
        .replace("$job", "headworks")
        .replace("$limit", limit)
        .replace("$zone", ".*")
        .replace("$__rate_interval", "20s")
}

/// The metrics that a text names, but for those that Prometheus makes itself.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c| !is_part(c));
    words.filter(|word| word.contains("headworks_")).collect()
}

/// Lines of a rules file that have an expression or go on with one.
fn expressions(rules: &str) -> String {
    let other = ["#", "summary:", "description:", "runbook:", "labels:", "for:", "- record:", "- alert:"];
    let is_other = |line: &str| other.iter().any(|start| line.trim_start().starts_with(start));
    let mut in_annotations = false;
    let mut kept = String::new();
    for line in rules.lines() {
        in_annotations = match line.trim() {
            "annotations:" => true,
            trimmed if trimmed.starts_with("- ") => false,
            _ => in_annotations,
        };
        if !in_annotations && !is_other(line) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[test]
fn every_query_and_rule_names_what_exists_and_every_panel_shows_something() {
    let redis = Redis::start();
    let fleet = FleetPlan::new(LIMITS).tls().agents_with(&["--store", &redis.url()]).start();
    let prometheus = Prometheus::start(fleet.nodes());
    let loads = fleet.load(&[75.0; 4], Duration::from_secs(12));
    prometheus.await_value("limit:headworks_would_drop:rate1m{limit=\"tried\"}", |rate| rate > 1.0);
    prometheus.await_value("limit:headworks_dropped:rate1m{limit=\"checkout\"}", |rate| rate > 1.0);
    let scraped: String = fleet.nodes().map(|node| node.scrape().0).collect();
    let rules = fs::read_to_string(deployed("prometheus/rules.yaml")).unwrap();
    let alerts = fs::read_to_string(deployed("prometheus/alerts.yaml")).unwrap();
    let exists = |name: &str| match name.contains(':') {
        true => rules.lines().any(|line| line.trim() == format!("- record: {name}")),
        false => scraped
            .lines()
            .any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))),
    };
    let mut named = 0;
    for text in [expressions(&rules), expressions(&alerts)] {
        for name in metrics_in(&text) {
            assert!(exists(name), "a rule names {name}, which no node and no rule has");
            named += 1;
        }
    }
    assert!(named > 20, "only {named} metrics found in rules");
    for (file, dashboard) in dashboards() {
        let mut panels = Vec::new();
        queries(&dashboard, &mut panels);
        assert!(panels.len() > 10, "{file} has {} queries", panels.len());
        for name in metrics_in(&dashboard.to_string()) {
            assert!(exists(name), "{file} names {name}, which no node and no rule has");
        }
        for query in panels {
            let answers: Vec<_> = (NAMES.iter())
                .map(|limit| {
                    prometheus.query(&filled_in(&query, limit)).unwrap_or_else(|e| panic!("{file}: {e}"))
                })
                .collect();
            let empty = answers.iter().all(Vec::is_empty);
            assert!(!empty || query.contains("ALERTS"), "{file}: nothing to show for {query}");
        }
    }
    Tally::sum(&loads.finish()).has_no_errors();
}

#[test]
fn of_a_controller_that_dies_alerts_tell_in_order_until_it_is_back() {
    let mut fleet = FleetPlan::new(LIMIT_400).hold("10s").start();
    let prometheus = Prometheus::start(fleet.nodes());
    let mut loads = fleet.load(&[50.0; 4], Duration::from_secs(120));
    prometheus.await_value("limit:headworks_load:max", |load| load > 0.3);
    let firing = |alert: &str| format!("count(ALERTS{{alertstate=\"firing\"{alert}}}) or vector(0)");
    prometheus.await_value(&firing(""), |alerts| alerts < 0.5);
    fleet.controller.kill();
    prometheus.await_value(&firing(", alertname=\"HeadworksFailedOpen\""), |open| open > 3.5);
    fleet.controller.restart();
    prometheus.await_value(&firing(""), |alerts| alerts < 0.5);
    let first = "min by (alertname) (min_over_time(timestamp(ALERTS{alertstate=\"firing\"})[5m:500ms]))";
    let mut told = prometheus.values(first, "alertname");
    told.sort_by(|a, b| a.1.total_cmp(&b.1));
    let at = |alert: &str| {
        let alert = format!("Headworks{alert}");
        told.iter().find(|(name, _)| *name == alert).unwrap_or_else(|| panic!("no {alert} in {told:?}")).1
    };
    let open = at("FailedOpen");
    assert!(at("Down") < open && at("ControllerUnreachable") < open, "{told:?}");
    // They may begin with one look of Prometheus.
    assert!(at("PlanStale") <= at("Alone") && at("Alone") < open, "{told:?}");
    assert_eq!(told.len(), 5, "{told:?}");
    loads.interrupt();
    Tally::sum(&loads.finish()).has_no_errors();
}

#[test]
fn the_runbook_has_a_section_for_each_alert_and_no_other() {
    let read = |file: &str| fs::read_to_string(deployed("prometheus").join(file)).unwrap();
    let (alerts, runbook) = (read("alerts.yaml"), read("RUNBOOK.md"));
    let after = |text: &str, start: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.trim().strip_prefix(start)).map(str::to_owned).collect()
    };
    let names = after(&alerts, "- alert: ");
    assert!(names.len() > 10, "{names:?}");
    let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(sorted(&names), sorted(&after(&runbook, "## ")));
    let links: Vec<String> = names.iter().map(|name| format!("RUNBOOK.md#{}", name.to_lowercase())).collect();
    assert_eq!(after(&alerts, "runbook: "), links, "each alert names its own section");
}
