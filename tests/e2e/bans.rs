//! A limit of nothing: all that it matches is refused, whatever is away.

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Fleet, FleetPlan, Load, Loads, Node, eventually};

const LIMITS: &str = "
limits:
  - {name: checkout, match: {service: checkout}, rate: 400/second}
  - {name: banned, match: {ip: 203.0.113.66}, rate: 0/second}
";

/// One agent, which has the limits, and a hold that is soon over.
fn fleet() -> Fleet {
    let fleet = FleetPlan::new(LIMITS).zones(&[("a", 1)]).hold("6s").start();
    eventually("the agent has the limits", Duration::from_secs(5), || {
        fleet.agents[0].status().limit("banned").is_none().then(|| "not yet".to_owned())
    });
    fleet
}

/// Loads the agent for a second with what is banned: nothing passes, and nobody is told to come back.
#[track_caller]
fn refuses_what_is_banned(agent: &Node) {
    let load = Load::new(&agent.url("http"), 100.0).with("ip=203.0.113.66");
    let tally = Loads::start(&[load], Duration::from_secs(1)).finish().remove(0);
    assert_eq!((tally.total.denied, tally.total.attempts), (100, 100), "{tally}");
    let answer = agent.get("http", "/allow?key=K&service=checkout&ip=203.0.113.66").unwrap();
    assert_eq!((answer.status, answer.json()["limit_name"].as_str()), (429, Some("banned")), "{answer:?}");
    assert!(!answer.head.contains("retry-after"), "no wait ends a ban: {answer:?}");
    assert_eq!(answer.json()["retry_after_ms"], Value::Null, "no wait ends a ban: {answer:?}");
}

#[test]
fn a_ban_refuses_everything_and_names_no_time_to_come_back() {
    let fleet = fleet();
    refuses_what_is_banned(&fleet.agents[0]);
    let answer = fleet.agents[0].get("http", "/allow?key=K&service=checkout").unwrap();
    assert_eq!(answer.status, 200, "the ban is of one address: {answer:?}");
}

#[test]
fn a_ban_stays_when_the_hold_is_over_and_all_else_passes() {
    let mut fleet = fleet();
    fleet.aggregators[0].kill();
    let agent = &fleet.agents[0];
    eventually("the agent is open", Duration::from_secs(10), || {
        let state = agent.scrape().plan_state();
        (state != "open").then_some(state)
    });
    refuses_what_is_banned(agent);
    let answer = agent.get("http", "/allow?key=K&service=checkout").unwrap();
    assert_eq!(answer.status, 200, "the ban is of one address: {answer:?}");
}
