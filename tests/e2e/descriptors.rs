//! A node that runs out of descriptors rests, and accepts again when there are some; it neither ends nor spins.

use std::net::TcpStream;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::LIMIT_400;
use crate::harness::{FleetPlan, Node, eventually};

/// More connections than descriptors.
const CLIENTS: usize = 120;
const TROUBLE: Duration = Duration::from_secs(2);

/// A node may open no more than it has open now, and a few.
fn allow_few_descriptors(node: &Node) {
    let pid = node.process.pid();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let bound = open + 20;
    let done =
        Command::new("prlimit").args([format!("--pid={pid}"), format!("--nofile={bound}:{bound}")]).status();
    assert!(done.expect("prlimit is missing: install util-linux").success());
}

/// Processor time that the node has used so far, in hundredths of a second.
fn processor_time(node: &Node) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", node.process.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[track_caller]
fn survives_a_lack_of_descriptors(node: &Node, port: &str) {
    allow_few_descriptors(node);
    let address = node.address(port).to_owned();
    let clients: Vec<_> = (0..CLIENTS).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    assert!(clients.len() > 40, "{} connected", clients.len());
    eventually("it says that it cannot accept", Duration::from_secs(5), || {
        (node.says("cannot accept connections") == 0).then(|| "nothing".to_owned())
    });
    let before = processor_time(node);
    sleep(TROUBLE);
    let used = processor_time(node) - before;
    assert!(used < 60, "{used} hundredths of a second of processor time in {TROUBLE:?} of nothing to do");
    drop(clients);
    eventually("it accepts again", Duration::from_secs(10), || {
        (node.get("admin", "/healthz").map(|answer| answer.status).ok() != Some(200))
            .then(|| "no answer".to_owned())
    });
    let said = node.says("cannot accept connections");
    assert!(said <= 2, "said {said} times, by two listeners: this port's and admin's");
}

#[test]
fn on_the_port_that_answers_requests() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).start();
    survives_a_lack_of_descriptors(&fleet.agents[0], "http");
    assert_eq!(fleet.agents[0].get("http", "/allow?key=K").unwrap().status, 200);
    fleet.stands();
}

#[test]
fn on_the_port_of_the_tree() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).start();
    survives_a_lack_of_descriptors(&fleet.aggregators[0], "tree");
    fleet.stands();
    assert_eq!(fleet.agents[0].says("not attached"), 0, "the child that was attached stays so");
}
