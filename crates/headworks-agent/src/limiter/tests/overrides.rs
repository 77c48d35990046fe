//! Overrides of limits that drop by ratio: each bucket by its own rate and mode.

use headworks_core::bucket::Counts;

use super::*;

const EACH: &str = "limits: [{name: each, per: [caller], rate: 5/second, overrides: [
    {match: {caller: banned}, rate: 0/second},
    {match: {caller: \"free-*\"}, rate: 5/second, mode: off},
    {match: {caller: \"trial-*\"}, rate: 7/second, mode: shadow},
    {match: {caller: slow}, rate: 6/minute}]}]";

fn ask(limiter: &Limiter, n: usize, caller: &str) -> usize {
    allowed_of(limiter, n, &[("caller", caller)])
}

fn counts(limiter: &Limiter) -> Counts {
    limiter.stats().limits[0].counts
}

fn callers(records: &[Handle]) -> Vec<String> {
    let of = |record: &Handle| match &record.key().unwrap().values {
        Values::Of(values) => values[0].clone(),
        Values::Rest => "the rest".to_owned(),
    };
    records.iter().map(of).collect()
}

#[test]
fn a_bucket_goes_by_the_mode_of_its_override() {
    let limiter = limiter(EACH);
    assert_eq!(ask(&limiter, 10, "web") + ask(&limiter, 10, "trial-1"), 20);
    let records = limiter.take_opened();
    squeeze(&records, 0.0);
    assert_eq!(
        [ask(&limiter, 10, "web"), ask(&limiter, 10, "trial-1"), ask(&limiter, 10, "banned")],
        [0, 10, 0]
    );
    let counts = counts(&limiter);
    assert_eq!((counts.offered, counts.dropped, counts.would_drop), (50, 20, 10));
}

#[test]
fn one_that_is_off_is_as_if_the_limit_did_not_concern_the_request() {
    let limiter = limiter(EACH);
    assert_eq!(ask(&limiter, 10, "free-1"), 10);
    assert!(limiter.take_opened().is_empty());
    assert_eq!(counts(&limiter), Counts::default());
    let verdict = limiter.check(Attributes::new(&[("caller", "free-1")]), None);
    assert!(verdict.decisive.is_none());
}

#[test]
fn the_verdict_tells_the_limit_as_it_holds_for_the_bucket() {
    let limiter = limiter(EACH);
    let rate = |caller| {
        let verdict = limiter.check(Attributes::new(&[("caller", caller)]), None);
        verdict.decisive.map(|_| decisive(&limiter, verdict).rate.to_string())
    };
    assert_eq!(rate("web").as_deref(), Some("5/second"));
    assert_eq!(rate("slow").as_deref(), Some("6/minute"));
    assert_eq!(rate("banned").as_deref(), Some("0/second"));
    assert_eq!(rate("trial-1"), None, "a limit in shadow decides nothing");
}

#[test]
fn a_reload_changes_what_buckets_go_by_and_keeps_their_counts() {
    let limiter = limiter(EACH);
    for caller in ["web", "trial-1", "free-1"] {
        ask(&limiter, 4, caller);
    }
    let before = limiter.take_opened();
    assert_eq!(callers(&before), ["web", "trial-1"]);
    // Now what was in shadow is off, what was off is enforced, and what had no override is in shadow.
    let changed =
        EACH.replace("\"free-*\"}, rate: 5/second, mode: off", "\"trial-*\"}, rate: 5/second, mode: off");
    let changed =
        changed.replace("\"trial-*\"}, rate: 7/second, mode: shadow", "web}, rate: 9/second, mode: shadow");
    limiter.install(&limits(&changed));
    squeeze(&before, 0.0);
    assert_eq!(["web", "trial-1", "free-1"].map(|caller| ask(&limiter, 4, caller)), [4; 3]);
    assert!(before[1].is_retired() && !before[0].is_retired());
    assert_eq!(callers(&limiter.take_opened()), ["free-1"]);
    let counts = counts(&limiter);
    assert_eq!((counts.offered, counts.would_drop), (4 + 4 + 4 + 4, 4), "what was counted stays counted");
    limiter.install(&limits("limits: [{name: each, per: [caller], rate: 5/second}]"));
    assert_eq!(ask(&limiter, 4, "web"), 0, "without overrides, by the limit itself");
}

#[test]
fn a_bucket_that_an_override_names_has_a_place_when_there_is_none_left() {
    let limiter =
        limiter(&EACH.replace("rate: 5/second, overrides", "rate: 5/second, max_buckets: 1, overrides"));
    for caller in ["web", "app", "trial-1", "slow"] {
        ask(&limiter, 1, caller);
    }
    assert_eq!(callers(&limiter.take_opened()), ["web", "the rest", "slow"]);
}

#[test]
fn a_budget_by_override_pays_for_what_passed_the_whole_pipeline() {
    let text = "limits: [{name: each, per: [caller], rate: 5/second, overrides: [
            {match: {caller: slow}, rate: 6/minute}, {match: {caller: free}, rate: 6/minute, mode: off}]},
        {name: other, per: [path], rate: 60/minute}, {name: all, rate: 9/second}]";
    let limiter = limiter(text);
    for caller in ["slow", "free", "web"] {
        allowed_of(&limiter, 1, &[("caller", caller), ("path", "/")]);
    }
    let records = limiter.take_opened();
    let all: Vec<_> =
        records.iter().filter(|record| &*record.key().unwrap().limit == "all").cloned().collect();
    squeeze(&all, 0.0);
    for caller in ["slow", "free"] {
        assert_eq!(allowed_of(&limiter, 5, &[("caller", caller), ("path", "/")]), 0);
    }
    let refused = |name: &str| -> Vec<u64> {
        let of = records.iter().filter(|record| &*record.key().unwrap().limit == name);
        of.map(|record| record.counts().refused_later).collect()
    };
    assert_eq!(refused("each"), [5, 0]);
    assert_eq!(refused("other"), [10]);
}

#[test]
fn threads_and_reloads_together_lose_no_count() {
    let limiter = limiter(EACH);
    let shadow = EACH.replace("mode: shadow", "mode: enforce");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope
                .spawn(|| (0..20_000).map(|n| ask(&limiter, 1, &format!("trial-{}", n % 10))).sum::<usize>());
        }
        for round in 0..50 {
            limiter.install(&limits(if round % 2 == 0 { &shadow } else { EACH }));
        }
    });
    assert_eq!(counts(&limiter).offered, 80_000);
}
