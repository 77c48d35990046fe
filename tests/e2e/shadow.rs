//! A limit in shadow counts what it would drop, and drops nothing.

use std::time::{Duration, Instant};

use crate::harness::{Fleet, assert_within_percent};

const SHADOW: &str =
    "limits:\n  - {name: checkout, match: {service: checkout}, rate: 400/second, mode: shadow}\n";
const RATE: f64 = 400.0;

/// Counts of all agents at one moment.
struct Counted {
    at: Instant,
    offered: f64,
    would_drop: f64,
}

impl Counted {
    fn by(fleet: &Fleet) -> Self {
        let offered = fleet.sum("headworks_offered_total", "checkout");
        Self { at: Instant::now(), offered, would_drop: fleet.sum("headworks_would_drop_total", "checkout") }
    }
}

#[test]
fn a_limit_in_shadow_drops_nothing_and_counts_what_it_would() {
    let fleet = Fleet::start(SHADOW);
    let traffic = fleet.checkouts(&[150; 4], Duration::from_secs(22));
    traffic.wait_until(5.0);
    let before = Counted::by(&fleet);
    traffic.wait_until(21.0);
    let after = Counted::by(&fleet);
    let outcome = traffic.finish();

    outcome.assert_unharmed();
    assert!(outcome.0.iter().all(|client| client.denied == 0 && client.allowed == client.attempts));
    let excess = after.offered - before.offered - RATE * (after.at - before.at).as_secs_f64();
    assert_within_percent("counted as would drop", after.would_drop - before.would_drop, excess, 3.0);
    assert_nothing_dropped(&fleet);
}

fn assert_nothing_dropped(fleet: &Fleet) {
    for node in fleet.nodes() {
        let metrics = node.metrics();
        let of = |name: &str| metrics.of_limit(name, "checkout");
        assert_eq!(of("headworks_dropped_total"), 0.0, "{}", node.id);
        assert_eq!(of("headworks_admitted_total"), of("headworks_offered_total"), "{}", node.id);
        assert!(of("headworks_would_drop_total") > 0.0, "{} has counted nothing:\n{}", node.id, metrics.text);
    }
}
