//! Links break in the ways in which networks break: cut, one-sided, half open, slow, and read by nobody.

use std::time::{Duration, Instant};

use crate::LIMIT_400;
use crate::harness::{Figure, Fleet, FleetPlan, Flow, Node, Tally, eventually, fraction, sleep_until};

/// When the fault comes, in seconds of the load: by then the loop has settled.
const BROKEN: u64 = 6;

const DISAGREE: &str = "headworks_controllers_disagree{about=\"view\"}";

#[test]
fn with_two_controllers_the_death_of_one_is_no_step() {
    let mut fleet = FleetPlan::new(LIMIT_400).controllers(2).start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(24));
    sleep_until(loads.second(BROKEN));
    fleet.controller.kill();
    stay_fresh_until(loads.second(BROKEN + 9), &fleet);
    fleet.controller.restart();
    eventually("all agents are heard by the controller that is back", Duration::from_secs(15), || {
        let heard = fleet.controller.try_status().map_or(0, |status| status.agents());
        (heard != 4).then(|| format!("{heard} of 4"))
    });
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    Figure::new(&format!("admitted\n{all}\n"), all.rate(5..24)).is_about(400.0, 0.05);
    for second in 5..24 {
        let admitted = all.during(second..second + 1).allowed;
        assert!((320..=480).contains(&admitted), "{admitted} in second {second}\n{all}");
    }
}

/// Until then no agent, and no aggregator, is without a fresh plan.
#[track_caller]
fn stay_fresh_until(moment: Instant, fleet: &Fleet) {
    while Instant::now() < moment {
        for node in fleet.aggregators.iter().chain(&fleet.agents) {
            assert_eq!(node.status().state(), "fresh", "{}", node.id);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn of_controllers_with_partial_views_the_widest_is_obeyed_and_their_disagreement_shows() {
    let fleet = FleetPlan::new(LIMIT_400).controllers(2).linked().start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(36));
    sleep_until(loads.second(BROKEN));
    // Zone b is heard by the second controller alone: the first, which all obeyed, hears half of the fleet.
    fleet.to_controllers[1][0].blackhole();
    eventually("zone a sees that controllers disagree", Duration::from_secs(25), || {
        (fleet.aggregators[0].scrape().value(DISAGREE) != 1.0).then(|| "they agree".to_owned())
    });
    eventually("zone a obeys the one that hears both", Duration::from_secs(5), || {
        let controllers = fleet.aggregators[0].status().0["controllers"].clone();
        (controllers[1]["obeyed"] != true).then(|| controllers.to_string())
    });
    eventually("zone b gives up the link that brings nothing", Duration::from_secs(20), || {
        let attached = fleet.aggregators[1].scrape().value("headworks_controllers{state=\"attached\"}");
        (attached != 1.0).then(|| format!("{attached} attached"))
    });
    fleet.to_controllers[1][0].heal();
    eventually("they agree again", Duration::from_secs(15), || {
        (fleet.aggregators[0].scrape().value(DISAGREE) != 0.0).then(|| "they disagree".to_owned())
    });
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    for second in 5..36 {
        let admitted = all.during(second..second + 1).allowed;
        assert!(admitted <= 460, "{admitted} in second {second}, more than the limit and its noise\n{all}");
    }
    Figure::new(&format!("admitted\n{all}\n"), all.rate(5..36)).is_about(400.0, 0.05);
}

#[test]
fn a_zone_that_is_cut_off_stays_within_the_guard_of_its_share_and_nobody_starves() {
    let fleet = FleetPlan::new(LIMIT_400).linked().start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(30));
    sleep_until(loads.second(BROKEN));
    fleet.to_controllers[1][0].blackhole();
    // A half-open link is found by the pings that nobody answers.
    let aggregator = &fleet.aggregators[1];
    eventually("the half-open link is found", Duration::from_secs(20), || {
        let attached = aggregator.scrape().value("headworks_controllers{state=\"attached\"}");
        (attached != 0.0).then(|| format!("{attached} attached"))
    });
    sleep_until(loads.second(BROKEN + 18));
    let tallies = loads.finish();
    let all = Tally::sum(&tallies);
    all.has_no_errors();
    // At most 1 + 1.5 × one half; what is counted for the zone by the controller keeps it far below.
    for second in 7..30 {
        let admitted = all.during(second..second + 1).allowed;
        assert!(admitted <= 700, "{admitted} in second {second}\n{all}");
    }
    Figure::new(&format!("admitted\n{all}\n"), all.rate(7..30)).is_about(400.0, 0.1);
    for (agent, tally) in tallies.iter().enumerate() {
        let counts = tally.during(7..30);
        let share = fraction(counts.allowed, counts.attempts);
        assert!((0.5..0.85).contains(&share), "agent {agent} has {share} of its requests admitted\n{all}");
    }
}

#[test]
fn slow_links_settle_and_hold() {
    let fleet = FleetPlan::new(LIMIT_400).linked().start();
    for link in fleet.to_controllers.iter().chain(&fleet.to_aggregators).flatten() {
        link.delay(Duration::from_millis(60));
    }
    let all = Tally::sum(&fleet.load(&[150.0; 4], Duration::from_secs(16)).finish());
    all.has_no_errors();
    Figure::new(&format!("admitted\n{all}\n"), all.rate(6..16)).is_about(400.0, 0.05);
}

#[test]
fn an_agent_that_reads_nothing_harms_nobody_is_cut_off_and_hears_the_newest_when_it_is_back() {
    let fleet = FleetPlan::new(LIMIT_400).linked().start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(40));
    sleep_until(loads.second(BROKEN));
    let link = &fleet.to_aggregators[0][0];
    let accepted = link.accepted();
    link.flows(Flow::Passes, Flow::Waits);
    let others: Vec<&Node> = fleet.agents[1..].iter().collect();
    let mut cut_off = None;
    while cut_off.is_none() && Instant::now() < loads.second(BROKEN + 40) {
        for node in &others {
            let status = node.status();
            let age = status.0["plan_age_ms"].as_u64().unwrap();
            assert!(status.state() == "fresh" && age < 2500, "{}: {age} ms", node.id);
        }
        let heard = fleet.aggregators[0].status().agents();
        cut_off = (heard == 1 || link.accepted() > accepted).then(Instant::now);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(cut_off.is_some(), "a child that reads nothing is kept for ever");
    link.heal();
    eventually("it has a fresh plan again", Duration::from_secs(15), || {
        let state = fleet.agents[0].status().state().to_owned();
        (state != "fresh").then_some(state)
    });
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    Figure::new(&format!("admitted\n{all}\n"), all.rate(30..40)).is_about(400.0, 0.05);
}

#[test]
fn an_agent_whose_link_flaps_counts_once() {
    let fleet = FleetPlan::new(LIMIT_400).linked().start();
    let loads = fleet.load(&[150.0; 4], Duration::from_secs(34));
    // It is back within three seconds, and a stream that then lives for five was a healthy one: with less between two cuts
    // it would wait ever longer.
    for flap in [0, 9, 18].map(|after| BROKEN + after) {
        sleep_until(loads.second(flap));
        fleet.to_aggregators[0][0].cut();
        sleep_until(loads.second(flap) + Duration::from_millis(300));
        fleet.to_aggregators[0][0].heal();
    }
    let all = Tally::sum(&loads.finish());
    all.has_no_errors();
    // While it is away, its part is the others', and it goes on by its last ratio.
    for second in 5..34 {
        let admitted = all.during(second..second + 1).allowed;
        assert!(admitted <= 530, "{admitted} in second {second}\n{all}");
    }
    Figure::new(&format!("admitted between two\n{all}\n"), all.rate(30..34)).is_about(400.0, 0.05);
    // What an agent counted while it was away, it tells later; nothing is told twice.
    std::thread::sleep(Duration::from_secs(3));
    let offered = fleet.controller.scrape().of_limit("headworks_offered_total", "checkout");
    let part = offered / all.total.attempts as f64;
    assert!((0.999..=1.0).contains(&part), "the controller counted {part} of what was asked\n{all}");
}
