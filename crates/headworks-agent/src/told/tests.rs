use headworks_core::limits::{Enforcement, Missing, Mode, OnSilence, Scope, SurgeGuard};
use headworks_core::units::Unit;

use super::*;
use crate::{Decisive, LimitRef};

const ALMOST_ONE: f64 = 0.999_999;

fn limit(amount: u64, unit: Unit, burst: Option<u64>) -> Limit {
    Limit {
        name: "a".into(),
        matches: Vec::new(),
        exactly: false,
        per: Vec::new(),
        rate: Rate::Per { amount, unit },
        cost: 1,
        mode: Mode::Enforce,
        order: 0,
        on_silence: OnSilence::default(),
        max_buckets: 1,
        missing: Missing::Skip,
        burst,
        surge_guard: SurgeGuard::default(),
        max_rate_per_agent: None,
        enforcement: Enforcement::DropRatio,
        scope: Scope::Global,
        overrides: Vec::new(),
        rollout: None,
    }
}

fn told(allowed: bool, limit: &Limit, standing: Standing, asked: Option<u32>) -> Told {
    let decisive = Decisive { limit: LimitRef::default(), standing };
    Told::of(&Verdict { allowed, decisive: Some(decisive), unanswerable: None }, limit, asked).unwrap()
}

fn remaining(limit: &Limit, headroom: Headroom) -> Option<u64> {
    told(true, limit, Standing::Headroom(headroom), None).remaining
}

fn by_ratio(amount: u64, unit: Unit, asked: Option<u32>) -> Option<Wait> {
    told(false, &limit(amount, unit, None), Standing::Headroom(Headroom::SHUT), asked).wait
}

fn exact(wait_ms: u64, amount: u64, unit: Unit) -> Wait {
    Wait::at_least(Duration::from_millis(wait_ms), Rate::Per { amount, unit })
}

#[test]
fn what_remains_is_limit_minus_demand() {
    for demand in 1..=10_u32 {
        let left = remaining(&limit(10, Unit::Second, None), Headroom::of(10.0, f64::from(demand)));
        assert_eq!(left, Some(u64::from(10 - demand)), "at a demand of {demand}");
    }
}

#[test]
fn a_part_of_a_unit_does_not_remain() {
    assert_eq!(remaining(&limit(10, Unit::Second, None), Headroom::of(10.0, 0.5)), Some(9));
}

#[test]
fn nothing_remains_at_or_over_the_limit() {
    let of = limit(400, Unit::Second, None);
    assert_eq!(remaining(&of, Headroom::of(400.0, 400.0)), Some(0));
    assert_eq!(remaining(&of, Headroom::of(400.0, 4000.0)), Some(0));
    assert_eq!(remaining(&limit(0, Unit::Second, None), Headroom::SHUT), Some(0));
}

#[test]
fn all_remains_without_traffic() {
    assert_eq!(remaining(&limit(400, Unit::Second, None), Headroom::OPEN), Some(400));
    assert_eq!(remaining(&limit(u64::MAX, Unit::Second, None), Headroom::OPEN), Some(u64::MAX));
}

#[test]
fn a_budget_tells_at_most_what_it_saves_up_and_nothing_when_it_is_used_up() {
    let hourly = limit(1000, Unit::Hour, None);
    assert_eq!(remaining(&hourly, Headroom::OPEN), Some(17));
    assert_eq!(remaining(&hourly, Headroom::of(3.0, 2.0)), Some(17));
    assert_eq!(remaining(&hourly, Headroom::of(2.0, 2.0)), Some(0));
    assert_eq!(remaining(&hourly, Headroom::SHUT), Some(0));
}

#[test]
fn an_unlimited_limit_has_no_numbers() {
    let of = Limit { rate: Rate::Unlimited, ..limit(1, Unit::Second, None) };
    let told = told(true, &of, Standing::Headroom(Headroom::OPEN), None);
    assert_eq!((told.limit, told.remaining, told.wait), (None, None, None));
}

#[test]
fn a_wait_gives_the_rate_time_for_the_request_from_a_second_to_the_unit() {
    let wait = |amount, unit, asked| by_ratio(amount, unit, asked).map(Wait::least_ms);
    assert_eq!(wait(6, Unit::Minute, None), Some(10_000));
    assert_eq!(wait(6, Unit::Minute, Some(3)), Some(30_000));
    assert_eq!(wait(6, Unit::Minute, Some(100)), Some(60_000));
    assert_eq!(wait(50_000, Unit::Day, None), Some(1728));
    assert_eq!(wait(1000, Unit::Minute, None), Some(1000));
    assert_eq!(wait(1, Unit::Day, None), Some(86_400_000));
    assert_eq!(wait(400, Unit::Second, None), Some(1000));
    assert_eq!(wait(1, Unit::Second, Some(u32::MAX)), Some(1000));
}

#[test]
fn no_wait_ends_a_ban() {
    assert_eq!(by_ratio(0, Unit::Day, None), None);
    assert_eq!(by_ratio(0, Unit::Second, None), None);
}

#[test]
fn a_wait_is_rounded_up_to_milliseconds() {
    let rate = Rate::Per { amount: 1, unit: Unit::Minute };
    let ms = |nanos| Wait::at_least(Duration::from_nanos(nanos), rate).least_ms();
    assert_eq!([0, 1, 1_000_000, 1_000_001].map(ms), [0, 1, 1, 2]);
}

#[test]
fn seconds_to_wait_are_rounded_up_and_never_zero() {
    let seconds = |wait_ms| exact(wait_ms, 60, Unit::Minute).retry_after(0.0);
    assert_eq!([0, 1, 200, 1000, 1001, 12_010, 59_990].map(seconds), [1, 1, 1, 1, 2, 13, 60]);
}

#[test]
fn waits_are_spread_upwards_alone_and_never_over_the_unit() {
    for (unit, longest) in [(Unit::Second, 1), (Unit::Minute, 60), (Unit::Hour, 3600), (Unit::Day, 86_400)] {
        let whole = unit.duration();
        for amount in [1, 7, 60, 1_000_000] {
            for least in [Duration::from_millis(200), whole / 3, whole - Duration::from_millis(10), whole] {
                let least = least.min(whole);
                let wait = Wait::at_least(least, Rate::Per { amount, unit });
                for draw in [0.0, 0.3, ALMOST_ONE, 1.0, 7.0, -1.0, f64::NAN] {
                    let seconds = wait.retry_after(draw);
                    assert!(Duration::from_secs(seconds) >= least, "{wait:?} by {draw}: {seconds}");
                    assert!((1..=longest).contains(&seconds), "{wait:?} by {draw}: {seconds}");
                }
            }
        }
    }
}

#[test]
fn many_refusals_at_once_come_back_one_after_the_other() {
    let told_by = |wait: Wait| {
        let mut seconds: Vec<u64> = (0..200).map(|n| wait.retry_after(f64::from(n) / 200.0)).collect();
        seconds.dedup();
        seconds
    };
    // 60 a minute give one a second: of those told a second, all but one would be refused again.
    assert_eq!(told_by(exact(200, 60, Unit::Minute)), [1, 2, 3, 4, 5]);
    assert_eq!(told_by(exact(12_010, 600, Unit::Minute)), [13, 14, 15]);
    assert_eq!(told_by(exact(59_990, 60, Unit::Minute)), [60]);
    assert_eq!(told_by(by_ratio(20, Unit::Minute, None).unwrap()), (3..=8).collect::<Vec<_>>());
    // A second later there is room for a second's worth of them.
    assert_eq!(told_by(by_ratio(400, Unit::Second, None).unwrap()), [1]);
}

#[test]
fn a_wait_that_is_longer_than_the_unit_is_told_as_it_is() {
    // 50 units at 10 a minute.
    let wait = exact(299_500, 10, Unit::Minute);
    assert_eq!([0.0, ALMOST_ONE].map(|draw| wait.retry_after(draw)), [300, 300]);
}

#[test]
fn an_exact_limit_tells_what_was_counted_and_says_where_it_was_not() {
    let rate = Rate::Per { amount: 60, unit: Unit::Minute };
    let counts = Remaining { rate, limit: Some(60), remaining: Some(59), retry_after: None };
    let of = limit(60, Unit::Minute, None);
    let counted = told(true, &of, Standing::Exact(counts), None);
    assert_eq!((counted.limit, counted.remaining, counted.basis), (Some(60), Some(59), Basis::Counted));
    let uncounted = told(true, &of, Standing::Uncounted(counts), None);
    assert_eq!((uncounted.basis, uncounted.wait), (Basis::Uncounted, None));
}

#[test]
fn what_was_taken_is_there_again_after_a_part_of_the_unit() {
    let reset = |amount, unit, remaining| {
        let rate = Rate::Per { amount, unit };
        let counts = Remaining { rate, limit: Some(amount), remaining: Some(remaining), retry_after: None };
        Told::counted(true, counts, Basis::Counted).reset()
    };
    assert_eq!(reset(60, Unit::Minute, 60), Some(0));
    assert_eq!(reset(60, Unit::Minute, 30), Some(30));
    assert_eq!(reset(10, Unit::Second, 1), Some(1));
    assert_eq!(reset(7, Unit::Hour, 0), Some(3600));
    assert_eq!(reset(0, Unit::Hour, 0), None);
}

#[test]
fn an_estimate_is_told_in_headers_only_with_a_refusal() {
    let of = limit(60, Unit::Minute, None);
    let headers = |told: Told| told.headers(0.0).collect::<Vec<_>>();
    assert_eq!(headers(told(true, &of, Standing::Headroom(Headroom::OPEN), None)), []);
    let refused = headers(told(false, &of, Standing::Headroom(Headroom::SHUT), None));
    assert_eq!(refused, [("x-ratelimit-remaining", 0), ("x-ratelimit-limit", 60), ("retry-after", 1)]);
    let counts = Remaining { rate: of.rate, limit: Some(60), remaining: Some(59), retry_after: None };
    let passed = headers(told(true, &of, Standing::Exact(counts), None));
    assert_eq!(passed, [("x-ratelimit-remaining", 59), ("x-ratelimit-limit", 60)]);
}
