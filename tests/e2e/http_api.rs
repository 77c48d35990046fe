//! The agent's HTTP API, over TCP and over a Unix socket.

use std::time::Duration;

use serde_json::json;

use crate::harness::{Figure, Fleet, FleetPlan, Load, Loads, eventually, get_unix};

const LIMITS: &str = "
limits:
  - {name: per-key, per: [key], rate: 1000/second}
  - {name: banned, match: {ip: 203.0.113.66}, rate: 0/second}
";

fn fleet() -> Fleet {
    let fleet = FleetPlan::new(LIMITS).zones(&[("a", 1)]).start();
    eventually("the agent has the limits", Duration::from_secs(5), || {
        fleet.agents[0].status().limit("banned").is_none().then(|| "not yet".to_owned())
    });
    fleet
}

#[test]
fn answers_the_same_on_tcp_and_on_the_unix_socket() {
    let fleet = fleet();
    let agent = &fleet.agents[0];
    for path in ["/allow?key=K", "/allow?key=K&ip=203.0.113.66", "/allow", "/healthz", "/readyz", "/nowhere"]
    {
        let (tcp, unix) = (agent.get("http", path).unwrap(), get_unix(&agent.socket(), path).unwrap());
        assert_eq!((tcp.status, &tcp.body), (unix.status, &unix.body), "{path}");
    }
    let target = format!("unix:{}", agent.socket().display());
    let tally = Loads::start(&[Load::new(&target, 50.0)], Duration::from_secs(2)).finish().remove(0);
    assert_eq!((tally.total.attempts, tally.total.allowed), (100, 100), "{tally}");
}

#[test]
fn a_refusal_names_its_limit() {
    let fleet = fleet();
    let answer = fleet.agents[0].get("http", "/allow?key=K&ip=203.0.113.66").unwrap();
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.json()["limit_name"], "banned", "{answer:?}");
    assert_eq!(answer.json()["allowed"], false, "{answer:?}");
    assert!(answer.head.contains("x-ratelimit-remaining: 0"), "{answer:?}");
    let answer = fleet.agents[0].get("http", "/allow?key=K").unwrap();
    assert_eq!((answer.status, answer.json()["limit_name"].clone()), (200, json!("per-key")), "{answer:?}");
}

#[test]
fn one_key_is_one_bucket_however_it_is_encoded() {
    let fleet = fleet();
    let agent = &fleet.agents[0];
    let spellings = ["%E6%9D%B1%E4%BA%AC%20x", "%e6%9d%b1%e4%ba%ac+x", "東京%20x", "%E6%9D%B1京+x"];
    for spelling in spellings {
        let answer = agent.get("http", &format!("/allow?key={spelling}")).unwrap();
        assert_eq!(answer.status, 200, "{spelling}: {answer:?}");
    }
    eventually("the controller hears of one bucket", Duration::from_secs(4), || {
        let limit = fleet.controller.status().limit("per-key").cloned().unwrap_or_default();
        let heard = limit["buckets"] == 1 && limit["totals"]["offered"] == 4;
        let named = limit["top"][0]["values"] == json!(["東京 x"]);
        (!heard || !named).then(|| limit.to_string())
    });
    assert_eq!(agent.status().limit("per-key").unwrap()["buckets"], 1);
}

#[test]
fn a_cost_counts_as_that_many_units() {
    let fleet = fleet();
    let agent = &fleet.agents[0];
    assert_eq!(agent.get("http", "/allow?key=K&n=5").unwrap().status, 200);
    let offered = agent.scrape().of_limit("headworks_offered_total", "per-key");
    Figure::new("offered to the agent", offered).is_near(5.0, 0.0);
    eventually("the controller hears of five units", Duration::from_secs(4), || {
        let limit = fleet.controller.status().limit("per-key").cloned().unwrap_or_default();
        (limit["totals"]["offered"] != 5).then(|| limit.to_string())
    });
}

#[test]
fn what_is_no_text_is_refused_and_counts_nowhere() {
    let fleet = fleet();
    for query in ["key=%FF", "key=%C3", "key=%zz", "key=a&n=0", "key=a&n=x", "key=", ""] {
        let answer = fleet.agents[0].get("http", &format!("/allow?{query}")).unwrap();
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(answer.json()["error"].is_string(), "{query}: {answer:?}");
    }
    let offered = fleet.agents[0].scrape().of_limit("headworks_offered_total", "per-key");
    assert!(offered < 0.5, "{offered} counted");
}
