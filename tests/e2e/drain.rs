//! SIGTERM: not ready, last report sent, streams closed, exit 0 within the grace period.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::LIMIT_400;
use crate::harness::{Fleet, FleetPlan, Node, eventually, sleep_until};

/// What the nodes are given, and a second more for a machine that is busy.
const GRACE: &str = "4s";
const GRACE_IS_OVER: Duration = Duration::from_secs(5);

/// A node that nobody keeps needs no grace: a second in which others notice, and the rest.
const PROMPT: Duration = Duration::from_secs(3);

fn fleet() -> Fleet {
    FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).grace(GRACE).start()
}

/// Where a node tells whether it is ready.
fn ports(node: &Node) -> &'static [&'static str] {
    if node.id.starts_with("agent") { &["http", "admin"] } else { &["admin"] }
}

/// Asks a node to end: it says that it is not ready before it goes, and exits with 0 in time.
#[track_caller]
fn drains(node: &mut Node, limit: Duration) {
    for port in ports(node) {
        assert_eq!(node.get(port, "/readyz").unwrap().status, 200, "{} {port}", node.id);
    }
    let asked = Instant::now();
    node.process.signal("TERM");
    for port in ports(node) {
        eventually("it says that it is not ready", Duration::from_secs(1), || {
            match node.get(port, "/readyz") {
                Ok(answer) if answer.status == 503 => None,
                other => Some(format!("{} {port}: {other:?}", node.id)),
            }
        });
    }
    let status = node.process.wait(limit);
    assert_eq!(status.code(), Some(0), "{} after {:?}", node.id, asked.elapsed());
}

/// A client that began a request and never ends it.
fn stuck_client(node: &Node, port: &str) -> TcpStream {
    let mut client = TcpStream::connect(node.address(port)).unwrap();
    client.write_all(b"GET /readyz HTTP/1.1\r\n").unwrap();
    client
}

fn offered(node: &Node) -> f64 {
    node.scrape().of_limit("headworks_offered_total", "checkout")
}

fn ask(fleet: &Fleet, times: usize) {
    for _ in 0..times {
        let answer = fleet.agents[0].get("http", "/allow?key=K&service=checkout").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[test]
fn every_role_ends_promptly_from_the_leaves_to_the_root() {
    let mut fleet = fleet();
    drains(&mut fleet.agents[0], PROMPT);
    drains(&mut fleet.aggregators[0], PROMPT);
    drains(&mut fleet.controller, PROMPT);
}

#[test]
fn every_role_ends_promptly_while_its_children_are_attached() {
    let mut fleet = fleet();
    drains(&mut fleet.controller, PROMPT);
    drains(&mut fleet.aggregators[0], PROMPT);
    drains(&mut fleet.agents[0], PROMPT);
}

#[test]
fn a_client_that_never_ends_its_request_keeps_no_node_beyond_the_grace_period() {
    let mut fleet = fleet();
    let _stuck = stuck_client(&fleet.agents[0], "http");
    drains(&mut fleet.agents[0], GRACE_IS_OVER);
    let _stuck = stuck_client(&fleet.aggregators[0], "tree");
    drains(&mut fleet.aggregators[0], GRACE_IS_OVER);
    let _stuck = stuck_client(&fleet.controller, "admin");
    drains(&mut fleet.controller, GRACE_IS_OVER);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut fleet = fleet();
    let agent = &mut fleet.agents[0];
    agent.process.signal("TERM");
    eventually("it says that it shuts down", PROMPT, || {
        (agent.says("shutting down") == 0).then(|| "not yet".to_owned())
    });
    agent.process.signal("TERM");
    let status = agent.process.wait(Duration::from_millis(500));
    assert_eq!(status.code(), Some(1));
}

#[test]
fn the_last_report_of_an_agent_is_heard_up_to_the_controller() {
    let mut fleet = fleet();
    ask(&fleet, 37);
    fleet.agents[0].process.signal("TERM");
    let asked = Instant::now();
    // Still served while others notice that it is not ready; these are counted too.
    sleep_until(asked + Duration::from_millis(500));
    ask(&fleet, 5);
    assert_eq!(fleet.agents[0].process.wait(GRACE_IS_OVER).code(), Some(0));
    for node in [&fleet.aggregators[0], &fleet.controller] {
        eventually("all 42 requests are heard", Duration::from_secs(3), || {
            let heard = offered(node);
            ((heard - 42.0).abs() > 0.5).then(|| format!("{} heard of {heard}", node.id))
        });
    }
}
