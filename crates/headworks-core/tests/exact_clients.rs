//! Exact limits as clients meet them, over simulated minutes.

use std::time::Duration;

use headworks_core::exact::{Rule, State};
use headworks_core::limits::Algorithm;
use headworks_core::units::{Moment, Rate, Unit};

const UNITS: [Unit; 6] = [Unit::Second, Unit::Minute, Unit::Hour, Unit::Day, Unit::Month, Unit::Year];

/// The start of a minute of today.
fn minute() -> Moment {
    Moment::after(Duration::from_secs(1_790_000_040))
}

fn rules(amount: u64, unit: Unit) -> [Rule; 3] {
    [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow]
        .map(|algorithm| Rule::new(algorithm, Rate::Per { amount, unit }, None))
}

/// How many pass of `n` requests at equal distances.
fn passed(rule: Rule, n: u32, apart: Duration) -> usize {
    let mut state = State::default();
    (0..n).filter(|i| rule.decide(&mut state, 1, 1, minute() + apart * *i).passes).count()
}

#[test]
fn whoever_asks_at_the_rate_or_below_is_never_refused() {
    for (amount, unit, apart, n) in [
        (60, Unit::Minute, Duration::from_secs(1), 120),
        (2, Unit::Second, Duration::from_millis(500), 60),
        (86_400, Unit::Day, Duration::from_secs(1), 600),
        (6, Unit::Minute, Duration::from_secs(11), 100),
    ] {
        for rule in rules(amount, unit) {
            assert_eq!(passed(rule, n, apart), usize::try_from(n).unwrap(), "{rule:?}");
        }
    }
}

#[test]
fn whoever_asks_twice_as_often_as_allowed_gets_half_and_is_never_shut_out() {
    for rule in rules(1, Unit::Minute) {
        let passed = passed(rule, 20, Duration::from_secs(30));
        assert!((10..=11).contains(&passed), "{rule:?}: {passed} of 20");
    }
}

#[test]
fn the_time_to_wait_is_what_is_left_of_the_minute() {
    let [_, sliding, fixed] = rules(1, Unit::Minute);
    for left in [200_u64, 12_010, 59_990].map(Duration::from_millis) {
        let now = minute() + (Unit::Minute.duration() - left);
        for rule in [sliding, fixed] {
            let mut state = State::default();
            rule.decide(&mut state, 1, 1, minute());
            assert_eq!(rule.look(&state, 1, now).retry_after, Some(left), "{rule:?}");
        }
    }
}

#[test]
fn whoever_waits_the_whole_seconds_that_headers_tell_passes_and_they_never_exceed_the_unit() {
    for unit in UNITS {
        for rule in rules(7, unit) {
            let (mut state, mut now) = (State::default(), minute() + Duration::from_nanos(123_456_789));
            for _ in 0..200 {
                let Some(wait) = rule.decide(&mut state, 1, 1, now).retry_after else { continue };
                let seconds =
                    Duration::from_secs(u64::try_from(wait.as_nanos().div_ceil(1_000_000_000)).unwrap());
                assert!(wait > Duration::ZERO && seconds <= unit.duration(), "{rule:?}: {wait:?}");
                now = now + seconds;
                assert!(rule.look(&state, 1, now).passes, "{rule:?} after {seconds:?}");
            }
        }
    }
}

#[test]
fn many_refusals_at_one_instant_are_told_the_same_and_take_nothing() {
    for rule in rules(1, Unit::Minute) {
        let (mut state, now) = (State::default(), minute() + Duration::from_millis(47_990));
        rule.decide(&mut state, 1, 1, now);
        let first = rule.look(&state, 1, now);
        assert!((0..200).all(|_| rule.decide(&mut state, 1, 1, now) == first), "{rule:?}");
        let then = now + first.retry_after.unwrap();
        assert!(!rule.look(&state, 1, now).passes && rule.look(&state, 1, then).passes, "{rule:?}");
    }
}

#[test]
fn the_largest_cost_is_refused_and_leaves_the_next_window_whole() {
    for rule in rules(100, Unit::Minute) {
        let mut state = State::default();
        for (cost, passes) in [(u64::from(u32::MAX), false), (60, true), (u64::MAX, false), (40, true)] {
            assert_eq!(rule.decide(&mut state, cost, cost, minute()).passes, passes, "{rule:?}: {cost}");
        }
        assert_eq!(rule.look(&state, 1, minute()).remaining, Some(0));
        let next = rule.look(&state, 100, minute() + Unit::Minute.duration());
        assert_eq!((next.passes, next.remaining), (true, Some(100)), "{rule:?}");
    }
}

#[test]
fn a_look_passes_until_nothing_is_left_and_never_takes_anything() {
    for rule in rules(2, Unit::Minute) {
        let mut state = State::default();
        let mut look = |charge| {
            let look = rule.look(&state, 1, minute());
            rule.charge(&mut state, charge, minute());
            (look.passes, look.remaining)
        };
        assert_eq!(
            [look(0), look(0), look(2), look(0)],
            [(true, Some(2)), (true, Some(2)), (true, Some(2)), (false, Some(0))]
        );
    }
}
