//! Requests whose keys are known beforehand.

use super::*;

const TWO: &str = "limits:
  - {name: each, match: {service: checkout}, per: [caller], rate: 10/second, order: 1}
  - {name: all, match: {service: \"check*\"}, rate: 100/second, order: 2}";

#[test]
fn a_request_by_values_is_decided_and_counted_as_any_other() {
    let limiter = limiter(TWO);
    let mut keyed = limiter.keyed(["service", "caller"]);
    assert!(keyed.check(["checkout", "web"], None).allowed);
    squeeze(&limiter.take_opened(), 0.5);
    let allowed = (0..1000).filter(|_| keyed.check(["checkout", "web"], None).allowed).count();
    assert!((248..=252).contains(&allowed), "{allowed}: half of half");
    assert!((0..100).all(|_| keyed.check(["search", "web"], None).allowed), "no limit concerns it");
    let counts: Vec<_> = limiter.stats().limits.iter().map(|limit| limit.counts).collect();
    assert_eq!(
        (counts[0].offered, counts[1].offered),
        (1001, 1 + 500),
        "the second counts what the first let through"
    );
    let verdict = keyed.check(["checkout", "ios"], Some(7));
    let as_any = limiter.check(Attributes::new(&[("service", "checkout"), ("caller", "ios")]), Some(7));
    assert_eq!(decisive(&limiter, verdict).name, decisive(&limiter, as_any).name);
    drop(keyed);
    assert_eq!(limiter.stats().limits[0].counts.offered, 1001 + 14, "what it counted stays counted");
}

#[test]
fn it_follows_new_limits_and_the_switch() {
    let limiter = limiter(TWO);
    let mut keyed = limiter.keyed(["service", "caller"]);
    let mut check = |asked| keyed.check(["checkout", "web"], asked);
    assert!(check(None).allowed);
    limiter.install(&limits("limits: [{name: ban, per: [caller], rate: 0/second}]"));
    assert!(!check(None).allowed, "a ban");
    limiter.set_shadow_all(true);
    assert!(check(None).allowed);
    limiter.set_shadow_all(false);
    limiter.install(&limits("limits: [{name: drops, per: [path], rate: 1/second, missing: drop}]"));
    assert!(!check(None).allowed, "it has no path");
    limiter.install(&limits("limits: [{name: exact, per: [caller], rate: 1/hour, enforcement: exact}]"));
    assert_eq!([check(None).allowed, check(None).allowed, check(Some(0)).allowed], [true, false, false]);
    limiter.install(&limits("limits: []"));
    assert!(check(None).allowed);
}

#[test]
fn more_limits_than_are_looked_at_one_by_one_are_looked_up() {
    let one = |n| format!("{{name: l{n}, match: {{service: checkout}}, per: [caller], rate: 10/second}}");
    let limiter = limiter(&format!("limits: [{}]", (0..80).map(one).collect::<Vec<_>>().join(", ")));
    let mut keyed = limiter.keyed(["service", "caller"]);
    assert!((0..10).all(|_| keyed.check(["checkout", "web"], None).allowed));
    assert!(limiter.stats().limits.iter().all(|limit| limit.counts.offered == 10));
}
