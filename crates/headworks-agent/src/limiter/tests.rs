mod allocations;
mod allowances;
mod budgets;
mod exact;
mod idle;
mod keyed;
mod overrides;
mod prepared;
mod swaps;

use std::sync::Arc;

use headworks_core::agent::InForce;
use headworks_core::attributes::Attributes;
use headworks_core::bucket::{BucketKey, Values};
use headworks_core::limits::{Limit, LimitSet, parse};
use headworks_core::units::{Headroom, Moment};

use super::{Handle, Limiter, REMEMBERED, Verdict};
use crate::Clock;

fn limits(text: &str) -> Arc<LimitSet> {
    Arc::new(parse(text).unwrap())
}

/// A limiter under these limits, and the records it opened.
fn limiter(text: &str) -> Limiter {
    let limiter = Limiter::new(Clock::new());
    limiter.install(&limits(text));
    limiter
}

fn squeeze(records: &[Handle], headroom: f64) {
    records.iter().for_each(|record| {
        let headroom = Headroom::new(headroom).unwrap();
        record.set(InForce { headroom, allowance: None }, Moment::default());
    });
}

/// The limit that a verdict rests on.
fn decisive(limiter: &Limiter, verdict: Verdict) -> Arc<Limit> {
    limiter.limit(verdict.decisive.unwrap().limit).unwrap()
}

fn allowed_of(limiter: &Limiter, n: usize, attributes: &[(&str, &str)]) -> usize {
    (0..n).filter(|_| limiter.check(Attributes::new(attributes), None).allowed).count()
}

const CHECKOUT: &str = "limits: [{name: checkout, match: {service: checkout}, rate: 400/second}]";

#[test]
fn drops_by_the_headroom_that_was_pushed() {
    let limiter = limiter(CHECKOUT);
    squeeze(&limiter.take_opened(), 0.25);
    assert!((248..=252).contains(&allowed_of(&limiter, 1000, &[("service", "checkout")])));
    assert_eq!(allowed_of(&limiter, 10, &[("service", "search")]), 10);
    let counts = limiter.stats().limits[0].counts;
    assert_eq!((counts.offered, counts.admitted() + counts.dropped), (1000, 1000));
}

#[test]
fn a_shadow_limit_counts_what_it_would_drop_and_drops_nothing() {
    let limiter = limiter("limits: [{name: trial, rate: 1/second, mode: shadow}]");
    squeeze(&limiter.take_opened(), 0.5);
    assert_eq!(allowed_of(&limiter, 1000, &[]), 1000);
    let counts = limiter.stats().limits[0].counts;
    assert_eq!(counts.dropped, 0);
    assert!((499..=501).contains(&counts.would_drop), "{counts:?}");
    assert!(limiter.check(Attributes::new(&[]), None).decisive.is_none());
}

#[test]
fn under_the_switch_every_limit_counts_what_it_would_drop_and_drops_nothing() {
    let limiter = limiter(
        "limits:
          - {name: half, match: {service: a}, rate: 1/second}
          - {name: banned, match: {service: b}, rate: 0/second}
          - {name: spent, match: {service: c}, rate: 1/hour}
          - {name: each, match: {service: d}, per: [key], rate: 1/second, missing: drop}",
    );
    let records = limiter.take_opened();
    let of = |names: &[&str]| -> Vec<Handle> {
        records.iter().filter(|record| names.contains(&&*record.key().unwrap().limit)).cloned().collect()
    };
    squeeze(&of(&["half"]), 0.5);
    squeeze(&of(&["spent"]), 0.0);
    let services = ["a", "b", "c", "d"];
    let allowed = || services.map(|service| allowed_of(&limiter, 100, &[("service", service)]));
    assert_eq!(allowed()[1..], [0, 0, 0]);
    limiter.set_shadow_all(true);
    assert_eq!(allowed(), [100; 4]);
    let stats = limiter.stats();
    assert!(stats.shadow_all);
    let half = stats.limits.iter().find(|limit| &*limit.limit.name == "half").unwrap().counts;
    assert!((49..=51).contains(&half.dropped) && (49..=51).contains(&half.would_drop), "{half:?}");
    for limit in stats.limits.iter().filter(|limit| &*limit.limit.name != "half") {
        assert_eq!((limit.counts.dropped, limit.counts.would_drop), (100, 100), "{}", limit.limit.name);
    }
    limiter.set_shadow_all(false);
    assert_eq!(allowed()[1..], [0, 0, 0]);
}

#[test]
fn a_later_limit_counts_only_what_the_earlier_one_let_through() {
    let limiter =
        limiter("limits: [{name: all, rate: 10/second}, {name: each, per: [caller], rate: 5/second}]");
    allowed_of(&limiter, 1, &[("caller", "a")]);
    let records = limiter.take_opened();
    squeeze(&records.iter().filter(|r| &*r.key().unwrap().limit == "each").cloned().collect::<Vec<_>>(), 0.5);
    allowed_of(&limiter, 1000, &[("caller", "a")]);
    let stats = limiter.stats().limits;
    assert_eq!(&*stats[0].limit.name, "each");
    assert_eq!(stats[1].counts.offered, stats[0].counts.admitted());
}

#[test]
fn a_ban_holds_before_any_plan_entry_came() {
    let limiter = limiter("limits: [{name: banned, match: {caller: x}, per: [service], rate: 0/second}]");
    let attributes = [("caller", "x"), ("service", "s")];
    assert_eq!(allowed_of(&limiter, 10, &attributes), 0);
    let verdict = limiter.check(Attributes::new(&attributes), None);
    assert_eq!(&*decisive(&limiter, verdict).name, "banned");
}

#[test]
fn values_beyond_the_cap_share_one_bucket() {
    let limiter = limiter("limits: [{name: each, per: [key], rate: 5/second, max_buckets: 3}]");
    for key in 0..100 {
        allowed_of(&limiter, 1, &[("key", &key.to_string())]);
    }
    let keys: Vec<BucketKey> = limiter.take_opened().iter().map(|record| record.key().unwrap()).collect();
    assert_eq!(keys.len(), 4);
    assert_eq!(keys.iter().filter(|key| key.values == Values::Rest).count(), 1);
    assert_eq!(limiter.stats().limits[0].counts.offered, 100);
}

#[test]
fn identities_are_lists_not_joined_strings() {
    let limiter = limiter("limits: [{name: pair, per: [a, b], rate: 5/second}]");
    allowed_of(&limiter, 1, &[("a", "x_y"), ("b", "z")]);
    allowed_of(&limiter, 1, &[("a", "x"), ("b", "y_z")]);
    assert_eq!(limiter.take_opened().len(), 2);
}

#[test]
fn a_request_without_a_per_key_is_skipped_counted_as_empty_or_dropped() {
    for (missing, allowed, offered) in [("skip", 1, 0), ("empty", 1, 1), ("drop", 0, 1)] {
        let limiter =
            limiter(&format!("limits: [{{name: each, per: [key], rate: 5/second, missing: {missing}}}]"));
        assert_eq!(allowed_of(&limiter, 1, &[]), allowed, "{missing}");
        assert_eq!(limiter.stats().limits[0].counts.offered, offered, "{missing}");
    }
}

#[test]
fn a_new_rate_keeps_the_counts_and_other_keys_do_not() {
    let limiter = limiter(CHECKOUT);
    allowed_of(&limiter, 7, &[("service", "checkout")]);
    let kept = limiter.take_opened();
    limiter.install(&limits(&CHECKOUT.replace("400", "500")));
    assert_eq!(limiter.stats().limits[0].counts.offered, 7);
    limiter.install(&limits(&CHECKOUT.replace("rate", "per: [caller], rate")));
    assert_eq!(limiter.stats().limits[0].counts.offered, 0);
    assert!(kept[0].is_retired());
}

#[test]
fn verdicts_name_their_limit_as_it_was_whatever_comes_into_force() {
    let text = "limits: [{name: wide, rate: 400/second}, {name: each, rate: 500/minute, enforcement: exact}]";
    let limiter = limiter(text);
    // More than a thread can keep without counting them.
    let verdicts: Vec<_> = (0..100).map(|_| limiter.check(Attributes::new(&[]), None)).collect();
    limiter.install(&limits(CHECKOUT));
    squeeze(&limiter.take_opened(), 0.0);
    let refused = limiter.check(Attributes::new(&[("service", "checkout")]), None);
    limiter.install(&limits(text));
    for verdict in &verdicts {
        assert_eq!(&*decisive(&limiter, *verdict).name, "each");
    }
    assert_eq!(&*decisive(&limiter, refused).name, "checkout");
    (0..REMEMBERED).for_each(|_| limiter.install(&limits(text)));
    let elsewhere = || limiter.limit(refused.decisive.unwrap().limit);
    assert_eq!(std::thread::scope(|scope| scope.spawn(elsewhere).join().unwrap()), None);
}

#[test]
fn threads_lose_no_count() {
    let limiter = limiter(CHECKOUT);
    squeeze(&limiter.take_opened(), 0.5);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| allowed_of(&limiter, 25_000, &[("service", "checkout")]));
        }
    });
    let counts = limiter.stats().limits[0].counts;
    assert_eq!(counts.offered, 100_000);
    assert!((49_999..=50_001).contains(&counts.dropped), "{counts:?}");
}

#[test]
fn a_cost_counts_as_many_units_and_a_limit_has_its_own_default() {
    let limiter = limiter("limits: [{name: heavy, rate: 5/second, cost: 3}]");
    limiter.check(Attributes::new(&[]), Some(50));
    limiter.check(Attributes::new(&[]), None);
    assert_eq!(limiter.stats().limits[0].counts.offered, 53);
}
