//! An agent whose aggregator was never there: nobody waits for it.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::harness::{Load, Loads, Node};

/// No request waits for the network; a crowded machine may take a while, though.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Starts an agent below this address and asks it at once, then loads it.
#[track_caller]
fn allows_everything_below(aggregator: &str) {
    let args = ["--zone", "a", "--aggregators", &format!("http://{aggregator}")].map(str::to_owned);
    let agent = Node::start("agent", "agent", &args);
    let asked = Instant::now();
    let answer = agent.get("http", "/allow?key=K&service=checkout").unwrap();
    assert!(asked.elapsed() < AT_ONCE, "answered after {:?}", asked.elapsed());
    assert_eq!((answer.status, answer.json()["allowed"].as_bool()), (200, Some(true)), "{answer:?}");
    let load = Load::new(&agent.url("http"), 200.0);
    let tally = Loads::start(&[load], Duration::from_secs(2)).finish().remove(0);
    assert_eq!((tally.total.attempts, tally.total.allowed), (400, 400), "{tally}");
    assert_eq!(agent.scrape().plan_state(), "none");
    assert_eq!(agent.get("admin", "/readyz").unwrap().status, 200, "it is ready: it needs nobody to answer");
}

#[test]
fn everything_passes_at_once_where_nobody_listens() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    allows_everything_below(&unused.to_string());
}

#[test]
fn everything_passes_at_once_where_the_listener_never_answers() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    allows_everything_below(&silent.local_addr().unwrap().to_string());
}
