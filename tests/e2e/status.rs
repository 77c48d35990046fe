//! `headworks status`: what a node sees, for people and for programs.

use std::time::Duration;

use serde_json::Value;

use crate::LIMIT_400;
use crate::harness::{Figure, Fleet, FleetPlan, Node, Process, Tally, sleep_until};

fn told(node: &Node, flags: &[&str]) -> String {
    let url = node.url("admin");
    let ended = Process::run([&["status", "--admin", &url], flags].concat(), Duration::from_secs(5));
    assert!(ended.status.success(), "{}", ended.stderr);
    ended.stdout
}

fn json(node: &Node) -> Value {
    serde_json::from_str(&told(node, &["--json"])).unwrap()
}

fn table_names_everything(fleet: &Fleet) {
    let text = told(&fleet.controller, &[]);
    for part in ["controller", "fresh", "aggregator-a", "aggregator-b", "checkout", "400/s", "RATIO", "0.3"] {
        assert!(text.contains(part), "the table lacks {part:?}\n{text}");
    }
    let text = told(&fleet.aggregators[0], &[]);
    for part in ["aggregator-a", "agent-a1", "agent-a2", "checkout"] {
        assert!(text.contains(part), "the table lacks {part:?}\n{text}");
    }
}

fn json_has_the_nodes(fleet: &Fleet) {
    let status = json(&fleet.controller);
    let length = |name: &str| status[name].as_array().map_or(0, Vec::len);
    assert_eq!((length("zones"), length("children")), (2, 2), "{status:#}");
    let agents = status["zones"].as_array().unwrap().iter().map(|zone| zone["agents"].as_u64().unwrap());
    assert_eq!(agents.sum::<u64>(), 4, "{status:#}");
    assert_eq!((&status["tier"], &status["state"]), (&"controller".into(), &"fresh".into()), "{status:#}");
    let agent = json(&fleet.agents[0]);
    assert!(agent["plan_age_ms"].as_u64().unwrap() < 5_000, "{agent:#}");
    assert_eq!(agent["limits_digest"], status["limits_digest"]);
}

fn json_has_the_figures(fleet: &Fleet) {
    let status = json(&fleet.controller);
    let figure =
        |name: &str| status["limits"][0][name].as_f64().unwrap_or_else(|| panic!("no {name} in {status:#}"));
    Figure::new("rate", figure("rate")).is_near(400.0, 0.0);
    Figure::new("offered", figure("offered")).is_about(600.0, 0.05);
    Figure::new("admitted", figure("admitted")).is_about(400.0, 0.05);
    Figure::new("dropped", figure("dropped")).is_about(200.0, 0.10);
    Figure::new("ratio", figure("ratio")).is_near(1.0 / 3.0, 0.02);
}

#[test]
fn tells_zones_children_and_the_figures_of_each_limit() {
    let fleet = FleetPlan::new(LIMIT_400).start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(11));
    sleep_until(loads.second(8));
    table_names_everything(&fleet);
    json_has_the_nodes(&fleet);
    json_has_the_figures(&fleet);
    Tally::sum(&loads.finish()).has_no_errors();
}
