//! Whatever tier is away, no request waits for it, and traffic below the limit goes on as it did.

use std::time::Duration;

use crate::LIMIT_400;
use crate::harness::{Fleet, FleetPlan, Link, Tally, Traffic, fraction};

/// Latencies are told by windows of this length.
const WINDOW: Duration = Duration::from_secs(5);
/// Loads that are half of the limit together.
const HALF: [f64; 4] = [50.0; 4];
/// What an answer may take that waits for nobody, beyond what the machine makes it take.
const LONGEST: Duration = Duration::from_millis(250);
/// What a median of percentiles may rise by on a machine that runs other tests.
const SLACK: Duration = Duration::from_millis(10);

/// What was measured in some windows.
#[derive(Default)]
struct Seen {
    windows: Vec<Tally>,
}

impl Seen {
    /// Asks all agents for so many windows.
    fn of(fleet: &Fleet, windows: usize) -> Self {
        let mut seen = Self::default();
        seen.go_on(fleet, windows);
        seen
    }

    fn go_on(&mut self, fleet: &Fleet, windows: usize) {
        (0..windows).for_each(|_| self.windows.extend(fleet.load(&HALF, WINDOW).finish()));
    }

    fn median_p99(&self) -> Duration {
        let mut p99s: Vec<Duration> = self.windows.iter().map(|tally| tally.p99).collect();
        p99s.sort_unstable();
        p99s[p99s.len() / 2]
    }

    fn slowest(&self) -> Duration {
        self.windows.iter().map(|tally| tally.slowest).max().unwrap()
    }

    /// Nothing failed, nothing was dropped, nobody waited.
    #[track_caller]
    fn is_no_worse_than(&self, before: &Seen) {
        let (was, is) = (before.median_p99(), self.median_p99());
        let (slowest_was, slowest_is) = (before.slowest(), self.slowest());
        eprintln!("median of p99s {is:?} after {was:?}, slowest {slowest_is:?} after {slowest_was:?}");
        let all = Tally::sum(&self.windows);
        all.has_no_errors();
        assert_eq!(all.total.denied, 0, "half of the limit was asked for\n{all}");
        assert!(is <= 2 * was + SLACK, "the median of the p99s is {is:?}, and was {was:?}");
        assert!(slowest_is <= LONGEST + slowest_was, "{slowest_is:?}, and before {slowest_was:?}");
    }
}

#[test]
fn no_request_waits_for_a_tier_that_was_killed() {
    let mut fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 4)]).start();
    let before = Seen::of(&fleet, 3);
    fleet.controller.kill();
    let mut away = Seen::of(&fleet, 2);
    fleet.controller.restart();
    fleet.stands();
    fleet.aggregators[0].kill();
    away.go_on(&fleet, 2);
    assert_eq!(fleet.agents[0].status().state(), "alone");
    away.is_no_worse_than(&before);
}

#[test]
fn no_request_waits_for_a_tier_behind_a_broken_link() {
    let fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 4)]).linked().start();
    let before = Seen::of(&fleet, 3);
    let (up, down) = (&fleet.to_controllers, &fleet.to_aggregators);
    let mut away = Seen::default();
    for (links, fault) in [(up, Link::blackhole as fn(&Link)), (down, Link::blackhole), (down, Link::cut)] {
        links.iter().flatten().for_each(fault);
        away.go_on(&fleet, 1);
        links.iter().flatten().for_each(Link::heal);
    }
    fleet.stands();
    away.is_no_worse_than(&before);
}

#[test]
fn alone_at_four_fifths_of_the_limit_half_of_the_load_moves_and_hardly_anything_is_dropped() {
    let mut fleet = FleetPlan::new(LIMIT_400).zones(&[("a", 4)]).start();
    let mut traffic = Traffic::start(&fleet.agents, 80.0);
    traffic.sleep_until_second(8);
    fleet.controller.kill();
    traffic.sleep_until_second(12);
    traffic.sleep_until_shortly_before_a_second();
    fleet.agents.iter().for_each(|agent| assert_eq!(agent.status().state(), "alone", "{}", agent.id));
    let moved = traffic.second();
    for part in 0..2 {
        traffic.moves(part, &fleet.agents[part + 2]);
    }
    traffic.sleep_until_second(moved + 12);
    let end = traffic.second() - 1;
    let all = traffic.finish();
    all.has_no_errors();
    let counts = all.during(moved..end);
    let dropped = fraction(counts.denied, counts.attempts);
    eprintln!("dropped {dropped:.4}");
    assert!(dropped <= 0.08, "{dropped} dropped from second {moved} on\n{all}");
}
