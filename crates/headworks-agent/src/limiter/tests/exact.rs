//! Exact limits in the pipeline.

use super::*;
use crate::{Remaining, Standing, Unanswerable};

fn check(limiter: &Limiter, asked: Option<u32>) -> crate::Verdict {
    limiter.check(Attributes::new(&[("key", "k")]), asked)
}

fn told(limiter: &Limiter, asked: Option<u32>) -> (bool, Remaining) {
    let verdict = check(limiter, asked);
    match verdict.decisive.unwrap().standing {
        Standing::Exact(told) => (verdict.allowed, told),
        other => panic!("{other:?}"),
    }
}

const MINUTE: &str = "limits: [{name: t, per: [key], rate: 100/minute, enforcement: exact}]";

#[test]
fn costs_are_taken_whole_or_not_at_all() {
    let limiter = limiter(MINUTE);
    assert_eq!(told(&limiter, None).1.remaining, Some(99));
    let costs = [29, 30, 30, 30, 10, 1].map(|cost| told(&limiter, Some(cost)));
    assert_eq!(costs.map(|(allowed, _)| allowed), [true, true, true, false, true, false]);
    assert_eq!(costs[3].1.remaining, Some(10));
    assert!(costs[3].1.retry_after.unwrap() <= std::time::Duration::from_secs(12));
}

#[test]
fn a_cost_of_nothing_looks_at_what_an_ordinary_request_would_get() {
    let limiter = limiter(MINUTE);
    assert_eq!((told(&limiter, Some(0)).0, told(&limiter, Some(0)).1.remaining), (true, Some(100)));
    check(&limiter, Some(100));
    assert_eq!((told(&limiter, Some(0)).0, told(&limiter, Some(0)).1.remaining), (false, Some(0)));
    assert_eq!(limiter.stats().limits[0].counts.offered, 100);
}

#[test]
fn there_is_nothing_to_look_at_where_no_exact_limit_is_met() {
    let limiter = limiter("limits: [{name: t, rate: 100/minute}]");
    assert_eq!(check(&limiter, Some(0)).unanswerable, Some(Unanswerable::NothingToSee));
    assert_eq!(limiter.stats().limits[0].counts.offered, 0);
}

#[test]
fn a_cost_above_the_burst_is_told_and_counts_nowhere() {
    let limiter = limiter(MINUTE);
    let verdict = check(&limiter, Some(101));
    let why = verdict.unanswerable.unwrap().to_string();
    assert!(why.contains("101 is above 100"), "{why}");
    assert_eq!(&*limiter.limit(verdict.limit().unwrap()).unwrap().name, "t");
    assert_eq!((limiter.stats().limits[0].counts.offered, told(&limiter, Some(100)).0), (0, true));
}

#[test]
fn a_dropped_request_is_never_charged() {
    let limiter = limiter(
        "limits: [{name: t, per: [key], rate: 100/minute, enforcement: exact}, {name: wide, rate: 1/second}]",
    );
    squeeze(&limiter.take_opened(), 0.0);
    assert_eq!(allowed_of(&limiter, 50, &[("key", "k")]), 0);
    assert_eq!(told(&limiter, Some(0)).1.remaining, Some(100));
}

#[test]
fn budgets_do_not_pay_for_what_an_exact_limit_refuses() {
    let limiter =
        limiter("limits: [{name: t, rate: 3/minute, enforcement: exact}, {name: budget, rate: 1000/minute}]");
    assert_eq!(allowed_of(&limiter, 10, &[]), 3);
    let counts = limiter.stats().limits[0].counts;
    assert_eq!((counts.offered, counts.refused_later, counts.charged()), (10, 7, 3));
}

#[test]
fn shadow_all_counts_and_refuses_nothing() {
    let limiter = limiter("limits: [{name: t, rate: 3/minute, enforcement: exact}]");
    limiter.set_shadow_all(true);
    assert_eq!(allowed_of(&limiter, 10, &[]), 10);
    let counts = limiter.stats().limits[0].counts;
    assert_eq!((counts.would_drop, counts.dropped), (7, 0));
}

#[test]
fn a_request_without_the_key_is_skipped_counted_as_empty_or_dropped() {
    for (missing, allowed) in [("skip", 10), ("empty", 3), ("drop", 0)] {
        let limiter = limiter(&format!(
            "limits: [{{name: t, per: [tenant], rate: 3/minute, enforcement: exact, missing: {missing}}}]"
        ));
        assert_eq!(allowed_of(&limiter, 10, &[]), allowed, "{missing}");
    }
}

#[test]
fn whoever_waits_for_the_longest_of_several_refusals_passes_them_all() {
    let limiter = limiter(
        "limits: [{name: a, rate: 1/second, enforcement: exact}, {name: b, rate: 1/hour, enforcement: exact}]",
    );
    check(&limiter, None);
    let (allowed, told) = told(&limiter, None);
    assert!(!allowed && told.retry_after.unwrap() > std::time::Duration::from_secs(3590), "{told:?}");
}

#[test]
fn exact_limits_have_no_part_in_reports() {
    let limiter = limiter("limits: [{name: t, rate: 3/minute, enforcement: exact}]");
    allowed_of(&limiter, 10, &[]);
    assert!(limiter.take_opened().is_empty());
}

/// How many of ten requests of this tenant pass, and what was counted of all so far.
fn ten_of(limiter: &Limiter, tenant: &str) -> (usize, (u64, u64, u64)) {
    let allowed = allowed_of(limiter, 10, &[("tenant", tenant)]);
    let counts = limiter.stats().limits[0].counts;
    (allowed, (counts.offered, counts.dropped, counts.would_drop))
}

#[test]
fn an_override_is_enforced_rehearsed_or_off_by_itself() {
    let limiter = limiter(
        "limits: [{name: t, per: [tenant], rate: 3/minute, enforcement: exact, overrides: [
           {match: {tenant: tried}, rate: 4/minute, mode: shadow}, {match: {tenant: \"free-*\"}, rate: 4/minute, mode: off},
           {match: {tenant: other}, rate: 4/minute}]}]",
    );
    assert_eq!(ten_of(&limiter, "any"), (3, (10, 7, 0)));
    assert_eq!(ten_of(&limiter, "other"), (4, (20, 13, 0)));
    assert_eq!(ten_of(&limiter, "tried"), (10, (30, 13, 6)));
    assert_eq!(ten_of(&limiter, "free-a"), (10, (30, 13, 6)));
    assert_eq!(limiter.stats().limits[0].buckets, 3, "what is off has no bucket");
    let verdict = |tenant| limiter.check(Attributes::new(&[("tenant", tenant)]), None);
    assert!(verdict("tried").decisive.is_none() && verdict("free-a").decisive.is_none());
}

#[test]
fn an_override_may_be_enforced_where_its_limit_is_rehearsed_but_not_where_it_is_off() {
    let of = |mode| {
        limiter(&format!(
            "limits: [{{name: t, per: [tenant], rate: 3/minute, mode: {mode}, enforcement: exact,
               overrides: [{{match: {{tenant: a}}, rate: 4/minute, mode: enforce}}]}}]"
        ))
    };
    let rehearsed = of("shadow");
    assert_eq!([ten_of(&rehearsed, "a").0, ten_of(&rehearsed, "b").0], [4, 10]);
    rehearsed.set_shadow_all(true);
    assert_eq!(ten_of(&rehearsed, "a").0, 10);
    assert_eq!(allowed_of(&of("off"), 10, &[("tenant", "a")]), 10);
}

#[test]
fn a_request_that_meets_several_limits_is_enforced_by_each_as_its_bucket_says() {
    let limiter = limiter(
        "limits: [{name: a, per: [tenant], rate: 3/minute, enforcement: exact,
                   overrides: [{match: {tenant: x}, rate: 1/minute, mode: shadow}]},
                  {name: b, rate: 5/minute, enforcement: exact}]",
    );
    assert_eq!(allowed_of(&limiter, 10, &[("tenant", "x")]), 5);
    let counts = limiter.stats().limits.iter().map(|limit| limit.counts).collect::<Vec<_>>();
    assert_eq!((counts[0].would_drop, counts[0].dropped, counts[1].dropped), (9, 0, 5));
}

#[test]
fn a_new_mode_of_an_override_holds_at_once_and_what_was_used_stays_used() {
    let of = |mode: &str| {
        format!(
            "limits: [{{name: t, per: [tenant], rate: 3/minute, enforcement: exact,
               overrides: [{{match: {{tenant: a}}, rate: 4/minute, mode: {mode}}}]}}]"
        )
    };
    let limiter = limiter(&of("shadow"));
    assert_eq!(ten_of(&limiter, "a").0, 10);
    limiter.install(&limits(&of("enforce")));
    assert_eq!(ten_of(&limiter, "a").0, 0);
}

#[test]
fn a_request_that_lacks_a_value_is_told_the_limit_and_that_no_wait_helps() {
    let limiter = limiter(
        "limits: [{name: t, per: [key, route], rate: 100/minute, missing: drop, enforcement: exact}]",
    );
    let (allowed, told) = told(&limiter, None);
    assert!(!allowed);
    assert_eq!((told.limit, told.remaining, told.retry_after), (Some(100), Some(0), None));
}

#[test]
fn what_came_to_nothing_is_given_back_once() {
    let limiter = limiter(MINUTE);
    assert_eq!(told(&limiter, Some(30)).1.remaining, Some(70));
    let give_back = |asked, key| limiter.give_back(Attributes::new(&[("key", key)]), asked);
    give_back(Some(20), "k");
    assert_eq!(told(&limiter, Some(0)).1.remaining, Some(90));
    give_back(Some(1000), "k");
    give_back(None, "another");
    assert_eq!(told(&limiter, Some(0)).1.remaining, Some(100));
    let counts = limiter.stats().limits[0].counts;
    assert_eq!((counts.offered, counts.refused_later, counts.charged()), (30, 30, 0));
    assert_eq!(limiter.stats().limits[0].buckets, 1);
}
