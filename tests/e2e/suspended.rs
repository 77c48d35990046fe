//! A node is suspended, as a laptop's lid or a hypervisor does it: it says nothing, ends nothing, and later goes on
//! as if no time had passed.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::LIMIT_400;
use crate::harness::{Figure, Fleet, FleetPlan, Load, Loads, Node, Tally, eventually, fraction, sleep_until};

/// When a node is suspended, in seconds of the load: by then the loop has settled.
const SUSPENDED: u64 = 6;
/// How often what goes on is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Looks at these nodes until then: at every look they have a plan that is hardly older than a heartbeat.
#[track_caller]
fn have_fresh_plans_until(moment: Instant, nodes: &[Node]) {
    while Instant::now() < moment {
        for node in nodes {
            let status = node.status();
            let age = status.0["plan_age_ms"].as_u64().unwrap();
            assert!(status.state() == "fresh" && age < 3000, "{}: {} at {age} ms", node.id, status.state());
        }
        sleep(LOOK);
    }
}

/// Waits until every node below the controller has a fresh plan.
#[track_caller]
fn are_fresh_within(limit: Duration, fleet: &Fleet) {
    eventually("all nodes have a fresh plan", limit, || {
        let states: Vec<String> = fleet.nodes().map(|node| node.scrape().plan_state()).collect();
        states.iter().any(|state| state != "fresh").then(|| format!("{states:?}"))
    });
}

/// The part that was admitted in these seconds.
#[track_caller]
fn share(tally: &Tally, seconds: std::ops::Range<usize>) -> f64 {
    let counts = tally.during(seconds);
    fraction(counts.allowed, counts.allowed + counts.denied)
}

#[test]
fn an_agent_leaves_its_part_to_the_others_and_returns_without_a_jump() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 3)]).start();
    let (agents, aggregator) = (&fleet.agents, &fleet.aggregators[0]);
    let start = |node: &Node, seconds| {
        Loads::start(&[Load::new(&node.url("http"), 300.0)], Duration::from_secs(seconds))
    };
    // Those who ask the suspended one get no answer: it is asked for as long as it runs, and anew when it does again.
    let before = start(&agents[2], SUSPENDED);
    let loads = [0, 1].map(|agent| Load::new(&agents[agent].url("http"), 300.0));
    let loads = Loads::start(&loads, Duration::from_secs(31));
    sleep_until(loads.second(SUSPENDED) - LOOK);
    agents[2].process.signal("STOP");
    have_fresh_plans_until(loads.second(SUSPENDED + 12), &agents[..2]);
    assert_eq!(aggregator.status().agents(), 2, "the suspended agent is counted for 12 s");
    have_fresh_plans_until(loads.second(SUSPENDED + 14), &agents[..2]);

    agents[2].process.signal("CONT");
    let resumed = loads.second_from(Instant::now());
    let after = start(&agents[2], 9);
    eventually("the agent is back, with a fresh plan", Duration::from_secs(12), || {
        let (counted, state) = (aggregator.status().agents(), agents[2].scrape().plan_state());
        (counted != 3 || state != "fresh").then(|| format!("{counted} agents, {state}"))
    });
    before.finish();
    let (after, others) = (after.finish().remove(0), Tally::sum(&loads.finish()));
    others.has_no_errors();
    after.has_no_errors();
    let alone = others.rate(10..20);
    Figure::new(&format!("admitted by the others\n{others}\n"), alone).is_about(400.0, 0.15);
    let name = format!("its share, once resumed\n{after}\nof the others, from second {resumed}\n{others}\n");
    Figure::new(&name, share(&after, 0..8)).is_near(share(&others, resumed..resumed + 8), 0.15);
}

#[test]
fn a_parent_leaves_the_ratios_in_force_and_takes_up_where_it_was() {
    let fleet = FleetPlan::new(LIMIT_400).start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(38));
    let mut moment = loads.second(SUSPENDED);
    for parent in [&fleet.aggregators[0], &fleet.controller] {
        sleep_until(moment);
        parent.process.signal("STOP");
        sleep_until(moment + Duration::from_secs(8));
        parent.process.signal("CONT");
        are_fresh_within(Duration::from_secs(5), &fleet);
        moment += Duration::from_secs(16);
    }
    fleet.stands();
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    for node in fleet.nodes() {
        assert_eq!(node.says("failing open"), 0, "{} opens", node.id);
    }
    for (what, seconds) in [
        ("the aggregator is suspended", 6..14),
        ("the aggregator is back", 14..22),
        ("the controller is suspended", 22..30),
        ("the controller is back", 30..38),
    ] {
        Figure::new(&format!("admitted while {what}\n{all}\n"), all.rate(seconds)).is_about(400.0, 0.2);
    }
}
