//! Agents come and go: the dead are not counted for long, and those who came once leave nothing behind.

use std::time::{Duration, Instant};

use headworks_core::message::{Hello, Incarnation, Report};
use headworks_proto::wire::tree_client::TreeClient;
use tokio_stream::wrappers::ReceiverStream;

use crate::LIMIT_400;
use crate::harness::{Figure, Fleet, FleetPlan, Node, Traffic, eventually};
use crate::tree_bounds::{hello, runtime};

/// Asked of all agents together: half as much again as the limit.
const OFFERED: f64 = 600.0;
/// When half of the agents are killed, in seconds of the load.
const KILLED: usize = 6;
const REPLACED: usize = 8;

/// How many agents there are: more than in CI with `HEADWORKS_CHURN_AGENTS=40`.
fn agents() -> usize {
    std::env::var("HEADWORKS_CHURN_AGENTS").map_or(10, |number| number.parse().unwrap())
}

fn offered(fleet: &Fleet) -> f64 {
    fleet.controller.status().limit("checkout").unwrap()["offered"].as_f64().unwrap()
}

fn known(fleet: &Fleet) -> f64 {
    fleet.controller.scrape().value("headworks_agents")
}

#[test]
fn the_dead_are_not_counted_for_long_and_agents_are_replaced_without_a_step() {
    let (agents, half) = (agents(), agents() / 2);
    let mut fleet = FleetPlan::new(LIMIT_400).zones(&[("a", agents)]).start();
    let mut traffic = Traffic::start(&fleet.agents, OFFERED / agents as f64);
    traffic.sleep_until_second(KILLED);
    traffic.sleep_until_shortly_before_a_second();
    for dead in 0..half {
        traffic.moves(dead, &fleet.agents[dead + half]);
        fleet.agents[dead].kill();
    }
    let killed = Instant::now();
    eventually("the dead are not counted", Duration::from_secs(4), || {
        let (known, offered) = (known(&fleet), offered(&fleet));
        let right = known == half as f64 && (offered - OFFERED).abs() < 0.05 * OFFERED;
        (!right).then(|| format!("{known} agents with {offered}/s"))
    });
    eprintln!("the dead are not counted after {:?}", killed.elapsed());
    for back in 0..half {
        fleet.agents[back].restart();
        traffic.moves(back, &fleet.agents[back]);
    }
    fleet.stands();
    replace_one_after_the_other(&mut fleet, &mut traffic);
    let end = traffic.second() - 1;
    let all = traffic.finish();
    all.has_no_errors();
    Figure::new(&format!("admitted\n{all}\n"), all.rate(KILLED..end)).is_about(400.0, 0.1);
}

/// Every two seconds the oldest is killed, after another of a new name has taken its load.
fn replace_one_after_the_other(fleet: &mut Fleet, traffic: &mut Traffic) {
    let parent = fleet.aggregators[0].url("tree");
    let (agents, few) = (fleet.agents.len() as f64, (fleet.agents.len() as f64 / 20.0).max(1.0));
    for number in 0..REPLACED {
        let begun = Instant::now();
        let args = ["--zone", "a", "--aggregators", &parent].map(str::to_owned);
        let new = Node::start("agent", &format!("replacement-{number}"), &args);
        traffic.moves(number, &new);
        fleet.agents[number].kill();
        fleet.agents[number] = new;
        while begun.elapsed() < Duration::from_secs(2) {
            let known = known(fleet);
            assert!((known - agents).abs() <= few, "{known} agents are known");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// How many come once: ten thousand with `HEADWORKS_CHURN_NAMES=10000`.
fn names() -> u32 {
    std::env::var("HEADWORKS_CHURN_NAMES").map_or(600, |number| number.parse().unwrap())
}

/// Says hello by this name, reports once, hears a plan, and goes without a word.
async fn come_once(url: String, number: u32) {
    let mut client = TreeClient::connect(url).await.unwrap();
    let (say, said) = tokio::sync::mpsc::channel(2);
    let hello =
        Hello { node: format!("once-{number}"), incarnation: Incarnation(u64::from(number) + 1), ..hello() };
    say.send(headworks_proto::hello_message(&hello)).await.unwrap();
    let report = Report {
        sequence: 1,
        elapsed: Duration::ZERO,
        full: true,
        agents: 1,
        entries: Vec::new(),
        forgotten: Vec::new(),
        switch: None,
    };
    say.send(headworks_proto::report_message(&report)).await.unwrap();
    let mut plans = client.attach(ReceiverStream::new(said)).await.unwrap().into_inner();
    assert!(plans.message().await.unwrap().is_some(), "no plan for once-{number}");
}

/// Waits until all but the agent that belongs there are gone, at both tiers.
#[track_caller]
fn nobody_is_left(fleet: &Fleet) {
    eventually("those who came once are gone", Duration::from_secs(15), || {
        let left = [&fleet.aggregators[0], &fleet.controller].map(|node| node.status().agents());
        (left != [1, 1]).then(|| format!("{left:?} agents"))
    });
    let status = fleet.aggregators[0].status().0.to_string();
    assert!(!status.contains("once-"), "{status}");
    let gauge = fleet.aggregators[0].scrape().value("headworks_agents");
    assert!(gauge == 1.0, "{gauge}");
}

#[test]
fn names_that_come_once_leave_nothing_behind() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 1)]).start();
    let (aggregator, url) = (&fleet.aggregators[0], fleet.aggregators[0].url("tree"));
    let come = |names: std::ops::Range<u32>| {
        let all = async {
            for number in names {
                come_once(url.clone(), number).await;
            }
        };
        runtime().block_on(all);
    };
    let resident = || [&fleet.controller, aggregator].map(|node| node.process.resident());
    come(0..100);
    nobody_is_left(&fleet);
    let base = resident();
    come(100..100 + names());
    nobody_is_left(&fleet);
    let after = resident();
    eprintln!("controller and aggregator held {base:?} bytes, and {after:?} after {} names", names());
    for (base, after) in base.iter().zip(after) {
        assert!(after < base + 16 * 1024 * 1024, "{base} bytes grew to {after}");
    }
    assert!(aggregator.says("not attached") == 0 && fleet.agents[0].says("not attached") == 0);
}
