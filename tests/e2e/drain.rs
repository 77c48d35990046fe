//! SIGTERM: not ready, last report sent, streams closed, exit 0 within the grace period.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::LIMIT_400;
use crate::harness::{Fleet, FleetPlan, Node, eventually, sleep_until};

/// The default grace period, and a little for a machine that is busy.
const GRACE: Duration = Duration::from_secs(10);

/// Where a node tells whether it is ready.
fn ports(node: &Node) -> Vec<&'static str> {
    if node.id.starts_with("agent") { vec!["http", "admin"] } else { vec!["admin"] }
}

/// Asks a node to end: it says that it is not ready before it goes, and exits with 0 in time.
#[track_caller]
fn drains(node: &mut Node) {
    for port in ports(node) {
        assert_eq!(node.get(port, "/readyz").unwrap().status, 200, "{} {port}", node.id);
    }
    // A client that never finishes its request must not keep the node.
    let mut idle = TcpStream::connect(node.address("admin")).unwrap();
    idle.write_all(b"GET /readyz HTTP/1.1\r\n").unwrap();
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
    let status = node.process.wait(GRACE);
    assert_eq!(status.code(), Some(0), "{} after {:?}", node.id, asked.elapsed());
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
fn every_role_ends_in_time_from_the_leaves_to_the_root() {
    let mut fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).start();
    drains(&mut fleet.agents[0]);
    drains(&mut fleet.aggregators[0]);
    drains(&mut fleet.controller);
}

#[test]
fn every_role_ends_in_time_while_its_children_are_attached() {
    let mut fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).start();
    drains(&mut fleet.controller);
    drains(&mut fleet.aggregators[0]);
    drains(&mut fleet.agents[0]);
}

#[test]
fn the_last_report_of_an_agent_is_heard_up_to_the_controller() {
    let mut fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).start();
    ask(&fleet, 37);
    fleet.agents[0].process.signal("TERM");
    let asked = Instant::now();
    // Still served while others notice that it is not ready; these are counted too.
    sleep_until(asked + Duration::from_millis(500));
    ask(&fleet, 5);
    assert_eq!(fleet.agents[0].process.wait(GRACE).code(), Some(0));
    for node in [&fleet.aggregators[0], &fleet.controller] {
        eventually("all 42 requests are heard", Duration::from_secs(3), || {
            let heard = offered(node);
            ((heard - 42.0).abs() > 0.5).then(|| format!("{} heard of {heard}", node.id))
        });
    }
}
