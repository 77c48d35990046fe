//! The tree as a whole: what a fleet admits, whatever happens to its parts.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "a test")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::Agent;
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::fleet::Fleet;

use headworks_core::ladder::PlanState;
use headworks_core::limits::parse;
use headworks_core::message::BucketRef;
use headworks_core::node::Node;
use headworks_core::units::Moment;
use world::{HOLD, Mischief, World, identity};

const SECOND: Duration = Duration::from_secs(1);

fn assert_near(admitted: f64, wanted: f64, tolerance: f64) {
    assert!((admitted / wanted - 1.0).abs() <= tolerance, "admitted {admitted}/s, wanted {wanted}/s");
}

/// 600/s against a limit of 400/s, over two zones of two hosts.
fn settled() -> World {
    let mut world = World::new(400, &[&[150.0, 150.0], &[150.0, 150.0]]);
    world.run(10 * SECOND);
    world
}

#[test]
fn holds_the_fleet_to_its_limit() {
    assert_near(settled().run(20 * SECOND), 400.0, 0.01);
}

#[test]
fn drops_every_host_alike_however_uneven_the_load() {
    let mut world = World::new(400, &[&[300.0, 200.0], &[80.0, 20.0]]);
    world.run(10 * SECOND);
    let before: Vec<f64> = world.hosts.iter().map(|host| host.admitted).collect();
    assert_near(world.run(30 * SECOND), 400.0, 0.01);
    for (host, before) in world.hosts.iter().zip(before) {
        assert_near((host.admitted - before) / 30.0, host.rate * 2.0 / 3.0, 0.03);
    }
}

#[test]
fn drops_nothing_below_the_limit() {
    let mut world = World::new(1000, &[&[150.0, 150.0], &[150.0, 150.0]]);
    assert_near(world.run(20 * SECOND), 600.0, 0.001);
}

#[test]
fn settles_on_a_surge_within_a_second() {
    let mut world = World::new(400, &[&[90.0, 90.0], &[90.0, 90.0]]);
    world.run(10 * SECOND);
    world.hosts.iter_mut().for_each(|host| host.rate = 400.0);
    world.run(SECOND);
    assert_near(world.run(5 * SECOND), 400.0, 0.05);
}

#[test]
fn lost_and_repeated_reports_change_nothing_in_the_end() {
    for mischief in [Mischief::LoseEveryThird, Mischief::SayEverythingTwice] {
        let mut world = settled();
        world.mischief = mischief;
        world.run(5 * SECOND);
        assert_near(world.run(30 * SECOND), 400.0, 0.03);
        world.mischief = Mischief::None;
        world.run(3 * SECOND);
        let offered: u64 = world
            .sites
            .iter()
            .flat_map(|site| site.zone.as_ref().unwrap().children().buckets().iter())
            .map(|(_, _, bucket)| bucket.counts.offered)
            .sum();
        #[allow(clippy::cast_precision_loss)]
        let offered = offered as f64;
        assert!((offered - 48.0 * 600.0).abs() <= 700.0, "{offered} counted of 28800");
    }
}

#[test]
fn without_a_controller_the_last_ratio_stays_for_the_hold_and_then_everything_passes() {
    let mut world = settled();
    world.kill_fleet();
    assert_near(world.run(HOLD - 2 * SECOND), 400.0, 0.01);
    assert_eq!(world.hosts[0].agent.plan_state(world.now), PlanState::Alone);
    world.run(4 * SECOND);
    assert_near(world.run(10 * SECOND), 600.0, 0.001);
    assert_eq!(world.hosts[0].agent.plan_state(world.now), PlanState::Open);
    world.start_fleet();
    world.run(5 * SECOND);
    assert_near(world.run(10 * SECOND), 400.0, 0.03);
}

#[test]
fn a_restarted_controller_learns_what_was_in_force_before_it_lets_anything_more_through() {
    let mut world = settled();
    world.kill_fleet();
    world.run(5 * SECOND);
    world.start_fleet();
    assert_near(world.run(10 * SECOND), 400.0, 0.02);
}

#[test]
fn a_dead_aggregator_leaves_its_zone_counted_for_the_hold_and_the_limit_holds() {
    let mut world = settled();
    world.kill_zone(1);
    assert_near(world.run(HOLD - 2 * SECOND), 400.0, 0.01);
    world.run(4 * SECOND);
    // Zone 1 has opened; what is left below the limit in zone 0 is all of it.
    assert_near(world.run(10 * SECOND), 600.0, 0.001);
}

#[test]
fn a_restarted_aggregator_is_counted_once() {
    let mut world = settled();
    world.kill_zone(1);
    world.run(10 * SECOND);
    world.start_zone(1);
    assert_near(world.run(10 * SECOND), 400.0, 0.03);
    world.run(20 * SECOND);
    assert_near(world.run(10 * SECOND), 400.0, 0.01);
}

#[test]
fn load_that_leaves_a_dead_zone_for_another_is_not_counted_twice() {
    let mut world = settled();
    world.kill_zone(1);
    for host in &mut world.hosts {
        host.rate = if host.zone == 0 { 300.0 } else { 0.0 };
    }
    world.run(3 * SECOND);
    assert_near(world.run(20 * SECOND), 400.0, 0.02);
}

#[test]
fn an_agent_that_falls_silent_stops_counting_after_three_intervals() {
    let mut world = settled();
    world.silence_host(3);
    world.run(5 * SECOND);
    // 450/s are left to count, and 400/s of them pass; counting the silent one would pass only 300/s.
    assert_near(world.run(10 * SECOND), 400.0, 0.02);
}

#[test]
fn ten_thousand_new_names_of_a_kilobyte_travel_in_messages_that_fit() {
    let limits = parse("limits: [{name: each, per: [key], rate: 5/second}]").unwrap();
    let now = Moment::default();
    let mut agent = Agent::new(identity("agent", 1), HOLD, now);
    let mut fleet = Fleet::new(&identity("controller", 2), Arc::new(limits), HOLD, now);
    let child = fleet.attach(agent.hello(), now).child;
    agent.attached("controller".to_owned());
    agent.plan(fleet.plan_for(child, now).unwrap(), now);
    for value in 0..10_000 {
        let values = Values::Of(vec![format!("{value:01000}")]);
        let key = BucketKey { limit: "each".into(), scope: Vec::new(), values };
        let number = agent.open(&key, now).unwrap();
        agent.count(number, Counts { offered: 1, ..Counts::default() }, now);
    }
    let mut told = 0;
    for beat in 1..=20 {
        let now = now + beat * Duration::from_millis(50);
        let Some(report) = agent.report(now) else { continue };
        let names = report.entries.iter().filter(|entry| matches!(entry.bucket, BucketRef::Named(_))).count();
        assert!(names * 1000 <= 1 << 20, "{names} names in one report");
        told += report.entries.len();
        fleet.report(child, &report, now);
        agent.plan(fleet.plan_for(child, now).unwrap(), now);
    }
    assert!(told >= 10_000, "{told} buckets told");
    assert_eq!(
        fleet.children().buckets().iter().map(|(_, _, bucket)| bucket.counts.offered).sum::<u64>(),
        10_000
    );
}
