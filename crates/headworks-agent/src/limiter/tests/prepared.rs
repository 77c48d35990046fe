//! Prepared requests, and buckets that are so hot that threads count for themselves.

use std::time::Duration;

use headworks_core::bucket::Counts;

use super::*;

const TWO: &str = "limits:
  - {name: budget, per: [caller], rate: 6/minute, order: 1}
  - {name: each, per: [caller], rate: 10/second, order: 2}";
const WEB: [(&str, &str); 1] = [("caller", "web")];

fn counts(limiter: &Limiter) -> Vec<Counts> {
    limiter.stats().limits.iter().map(|limit| limit.counts).collect()
}

#[test]
fn a_prepared_request_is_decided_and_counted_as_any_other() {
    let limiter = limiter(TWO);
    let mut prepared = limiter.prepare(&WEB);
    assert!(prepared.check(None).allowed && limiter.check(Attributes::new(&WEB), None).allowed);
    assert_eq!(prepared.check(None), limiter.check(Attributes::new(&WEB), None));
    let records = limiter.take_opened();
    let each: Vec<_> = records.iter().filter(|r| &*r.key().unwrap().limit == "each").cloned().collect();
    squeeze(&each, 0.25);
    let allowed = (0..1000).filter(|_| prepared.check(None).allowed).count();
    assert!((248..=252).contains(&allowed), "{allowed}");
    let passed = u64::try_from(allowed).unwrap() + 4;
    let all = counts(&limiter);
    assert_eq!((all[0].offered, all[1].offered, all[1].dropped), (1004, 1004, 1004 - passed));
    assert_eq!((all[0].refused_later, all[0].charged()), (1004 - passed, passed), "the budget gets it back");
    assert_eq!(&*decisive(&limiter, prepared.check(Some(3))).name, "each");
    drop(prepared);
    assert_eq!(counts(&limiter)[1].offered, 1007, "what it counted stays counted");
}

#[test]
fn a_prepared_request_follows_new_limits_overrides_and_the_switch() {
    let limiter = limiter(TWO);
    let mut prepared = limiter.prepare(&WEB);
    assert!(prepared.check(None).allowed);
    limiter.install(&limits("limits: [{name: each, per: [caller], rate: 10/second, overrides: [{match: {caller: web}, rate: 0/second}]}]"));
    limiter.take_opened().iter().filter(|handle| !handle.is_retired()).for_each(|handle| {
        squeeze(std::slice::from_ref(handle), 0.0);
    });
    let verdict = prepared.check(None);
    assert_eq!((verdict.allowed, decisive(&limiter, verdict).rate.to_string()), (false, "0/second".into()));
    limiter.set_shadow_all(true);
    assert!(prepared.check(None).allowed);
    limiter.set_shadow_all(false);
    limiter.install(&limits("limits: [{name: drops, per: [path], rate: 1/second, missing: drop}]"));
    assert!(!prepared.check(None).allowed);
    limiter.install(&limits("limits: [{name: exact, per: [caller], rate: 1/hour, enforcement: exact}]"));
    assert_eq!([prepared.check(None).allowed, prepared.check(None).allowed], [true, false]);
    assert!(!prepared.check(Some(0)).allowed);
}

#[test]
fn threads_with_prepared_requests_of_their_own_lose_no_count() {
    let limiter = limiter(TWO);
    let prepared = limiter.prepare(&WEB);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut own = prepared.clone();
            scope.spawn(move || (0..25_000).filter(|_| own.check(None).allowed).count());
        }
        for _ in 0..100 {
            limiter.install(&limits(TWO));
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    assert_eq!(counts(&limiter)[1].offered, 100_000);
}

#[test]
fn what_a_prepared_request_holds_on_to_is_marked_and_released() {
    let limiter = limiter(TWO);
    let mut prepared = limiter.prepare(&WEB);
    prepared.check(None);
    let records = limiter.take_opened();
    assert!(records.iter().all(Handle::is_pinned));
    let other = prepared.clone();
    drop(other);
    assert!(records.iter().all(Handle::is_pinned), "a clone that was never asked holds on to nothing");
    drop(prepared);
    assert!(!records.iter().any(Handle::is_pinned));
}

#[test]
fn a_hot_bucket_is_counted_by_each_thread_and_brought_in_when_it_cools() {
    let limiter = limiter(CHECKOUT);
    let now = limiter.inner.bell.now();
    let records = limiter.take_opened();
    let ask = || allowed_of(&limiter, 1000, &[("service", "checkout")]);
    ask();
    records[0].set_hot(true, now);
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(ask))));
    squeeze(&records, 0.5);
    let allowed = ask();
    assert!((499..=501).contains(&allowed), "{allowed}");
    let together = records[0].counts();
    assert_eq!(together.offered, 6000);
    records[0].set_hot(false, now);
    ask();
    limiter.inner.ledger.tend(now + Duration::from_secs(6));
    assert_eq!(records[0].counts().offered, 7000);
    // Its cells are free for another bucket by now, which begins with nothing.
    limiter.install(&limits("limits: [{name: other, rate: 4/second}]"));
    let others = limiter.take_opened();
    others[0].set_hot(true, now);
    allowed_of(&limiter, 10, &[]);
    assert_eq!((others[0].counts().offered, counts(&limiter)[0].offered), (10, 10));
}

#[test]
fn values_that_are_too_long_for_a_record_have_buckets_too() {
    let limiter = limiter("limits: [{name: each, per: [a, b], rate: 5/second}]");
    let long = "x".repeat(300);
    for (a, b) in [(&*long, "y"), ("y", &*long), (&*long, "y"), (&long[1..], "xy")] {
        allowed_of(&limiter, 1, &[("a", a), ("b", b)]);
    }
    let keys: Vec<_> = limiter.take_opened().iter().map(|record| record.key().unwrap().values).collect();
    let of = |a: &str, b: &str| Values::Of(vec![a.to_owned(), b.to_owned()]);
    assert_eq!(keys, [of(&long, "y"), of("y", &long), of(&long[1..], "xy")]);
    assert_eq!(counts(&limiter)[0].offered, 4);
}

#[test]
fn a_prepared_request_whose_value_is_not_tracked_counts_with_the_others_and_has_its_bucket_again() {
    let limiter = limiter("limits: [{name: each, per: [caller], rate: 5/second, max_buckets: 3}]");
    let mut prepared = limiter.prepare(&WEB);
    assert!(prepared.check(None).allowed);
    let own = limiter.take_opened().remove(0);
    own.set_away(true);
    limiter.set_full(&own, true);
    let rest = limiter.take_opened();
    squeeze(&rest, 0.0);
    let verdict = prepared.check(None);
    assert_eq!((verdict.allowed, &*decisive(&limiter, verdict).name), (false, "each"));
    assert_eq!((own.counts().offered, rest[0].counts().offered), (1, 1));
    own.set_away(false);
    let passes = (0..2000).filter(|_| prepared.check(None).allowed).count();
    assert_eq!(
        passes, 2000,
        "any other request is looked up each time, and so is this one until it has a bucket"
    );
    assert!(own.is_pinned());
}

#[test]
fn threads_that_meet_a_bucket_first_at_once_make_one() {
    for _ in 0..50 {
        let limiter = limiter("limits: [{name: each, per: [caller], rate: 5/second, missing: drop}]");
        let start = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    allowed_of(&limiter, 10, &[]) + allowed_of(&limiter, 10, &WEB)
                });
            }
        });
        let records = limiter.take_opened();
        assert_eq!(records.len(), 2);
        assert_eq!(records.iter().map(|record| record.counts().offered).collect::<Vec<_>>(), [40, 40]);
    }
}

#[test]
fn requests_of_ever_other_forms_are_decided_as_those_of_one() {
    let limiter = limiter("limits: [{name: each, per: [caller], rate: 5/second}]");
    for n in 0..500 {
        let key = format!("key-{n}");
        allowed_of(&limiter, 2, &[(&*key, "x"), ("caller", "web")]);
        allowed_of(&limiter, 1, &[(&*key, "x")]);
    }
    assert_eq!(counts(&limiter)[0].offered, 1000);
    assert_eq!(limiter.take_opened().len(), 1);
}

#[test]
fn buckets_that_come_and_go_leave_room_for_others() {
    let limiter = limiter("limits: [{name: each, per: [caller], rate: 5/second, max_buckets: 1000}]");
    let mut now = limiter.inner.bell.now();
    for round in 0..200 {
        for n in 0..100 {
            allowed_of(&limiter, 1, &[("caller", &format!("caller-{round}-{n}"))]);
        }
        for handle in limiter.take_opened() {
            limiter.forget(&handle, now);
            assert!(handle.is_retired());
        }
        now = now + Duration::from_secs(6);
        limiter.tend(now);
    }
    assert_eq!(counts(&limiter)[0].offered, 20_000);
    let mut most = 0;
    allowed_of(&limiter, 1, &WEB);
    limiter.inner.ledger.for_each(|number, _| most = most.max(number));
    assert!(most < 400, "records are used again, and number {most} is in use");
}
