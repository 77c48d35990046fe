//! Budgets: a limit per minute holds an amount, and pays back what got through before it was known.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Fleet, FleetPlan, Node, eventually};

const SIX: &str = "
limits:
  - {name: logins, per: [key], rate: 6/minute}
";
/// What it saves up, and gives in a minute.
const AMOUNT: u64 = 6;
/// Requests may pass while the controller's answer is on its way.
const SLACK: u64 = 2;
/// The same while what was counted is on its way up: two seconds at ten a second, and half as many for a busy machine.
const UNHEARD: u64 = 30;

/// Agents that have the limits.
fn fleet() -> Fleet {
    let fleet = FleetPlan::new(SIX).zones(&[("a", 1), ("b", 1)]).start();
    eventually("the agents have the limits", Duration::from_secs(5), || {
        let lacks = |agent: &Node| agent.status().limit("logins").is_none();
        fleet.agents.iter().any(lacks).then(|| "not yet".to_owned())
    });
    fleet
}

/// How many of `n` requests of this key pass, asked of the agents in turn.
fn allowed_of(fleet: &Fleet, key: &str, n: usize, pause: Duration) -> u64 {
    let path = format!("/allow?key={key}");
    let ask = |i: usize| {
        sleep(pause);
        fleet.agents[i % fleet.agents.len()].get("http", &path).unwrap().status
    };
    (0..n).map(|i| u64::from(ask(i) == 200)).sum()
}

/// What the controller tells of the budget.
fn told(fleet: &Fleet) -> Value {
    fleet.controller.status().limit("logins").cloned().unwrap_or_default()
}

#[track_caller]
fn controller_hears(fleet: &Fleet, offered: u64) {
    eventually("the controller hears of them", Duration::from_secs(5), || {
        let limit = told(fleet);
        (limit["totals"]["offered"] != offered).then(|| limit.to_string())
    });
}

#[test]
fn a_handful_at_once_passes_and_a_flood_gets_the_amount_and_what_the_rate_gives() {
    let fleet = fleet();
    assert_eq!(allowed_of(&fleet, "K", 5, Duration::ZERO), 5);
    controller_hears(&fleet, 5);
    // Ten a second. Agents and aggregators each report once a second, so two seconds of it may pass unheard, and be owed.
    let more = allowed_of(&fleet, "K", 40, Duration::from_millis(100));
    assert!(more <= UNHEARD, "{more} of 40 passed");
    controller_hears(&fleet, 45);
    let heard = Instant::now();
    let after = allowed_of(&fleet, "K", 40, Duration::from_millis(50));
    let given = heard.elapsed().as_secs() * AMOUNT / 60;
    assert!(after <= given + SLACK, "{after} of 40 passed when the amount was used up");
    assert_eq!(allowed_of(&fleet, "other", 5, Duration::ZERO), 5, "another key has its own budget");
}

#[test]
fn a_refusal_tells_the_amount_and_when_to_come_back() {
    let fleet = fleet();
    allowed_of(&fleet, "K", 60, Duration::ZERO);
    eventually("it is used up", Duration::from_secs(5), || {
        (allowed_of(&fleet, "K", 1, Duration::ZERO) > 0).then(|| told(&fleet).to_string())
    });
    let refused = (0..20).map(|_| fleet.agents[0].get("http", "/allow?key=K").unwrap());
    let answer = refused.into_iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(answer.json()["limit_name"], "logins", "{answer:?}");
    assert_eq!(answer.json()["limit"], AMOUNT, "{answer:?}");
    let wait = answer.head.lines().find_map(|line| line.strip_prefix("retry-after: "));
    let wait: u64 = wait.unwrap_or_else(|| panic!("no wait: {answer:?}")).trim().parse().unwrap();
    assert!(wait >= 1, "{answer:?}");
}

#[test]
fn the_controller_tells_what_is_left_by_key_and_the_least_of_it_as_a_metric() {
    let fleet = fleet();
    assert_eq!(allowed_of(&fleet, "K", 4, Duration::ZERO), 4);
    assert_eq!(allowed_of(&fleet, "other", 1, Duration::ZERO), 1);
    controller_hears(&fleet, 5);
    let limit = told(&fleet);
    assert_eq!((&limit["amount"], &limit["unit"]), (&6.into(), &"minute".into()), "{limit:#}");
    // Half a minute gives back three: the test is long over by then.
    let is_left =
        |tokens: &Value, left: f64| tokens.as_f64().is_some_and(|t| (left..left + 3.0).contains(&t));
    assert!(is_left(&limit["tokens"], 2.0), "{limit:#}");
    let tokens_of = |key: &str| {
        let top = limit["top"].as_array().unwrap().iter();
        top.clone().find(|top| top["values"][0] == key).unwrap_or_else(|| panic!("no {key}: {limit:#}"))
    };
    assert!(is_left(&tokens_of("K")["tokens"], 2.0), "{limit:#}");
    assert!(is_left(&tokens_of("other")["tokens"], 5.0), "{limit:#}");
    let least = fleet.controller.scrape().of_limit("headworks_budget_tokens", "logins");
    assert!((2.0..5.0).contains(&least), "{least}");
}
