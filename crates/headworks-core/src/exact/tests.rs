use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::units::Unit;

/// A moment of today, so that nothing is right only near the origin.
fn at(nanos: u64) -> Moment {
    Moment::after(Duration::from_secs(1_790_000_000) + Duration::from_nanos(nanos))
}

fn ms(ms: u64) -> Moment {
    at(ms * 1_000_000)
}

fn per(amount: u64, unit: Unit) -> Rate {
    Rate::Per { amount, unit }
}

fn bucket(amount: u64, unit: Unit, burst: Option<u64>) -> Rule {
    Rule::new(Algorithm::TokenBucket, per(amount, unit), burst)
}

fn sliding(amount: u64, unit: Unit) -> Rule {
    Rule::new(Algorithm::SlidingWindow, per(amount, unit), None)
}

fn fixed(amount: u64, unit: Unit) -> Rule {
    Rule::new(Algorithm::FixedWindow, per(amount, unit), None)
}

fn passed(rule: Rule, state: &mut State, n: usize, now: Moment) -> usize {
    (0..n).filter(|_| rule.decide(state, 1, 1, now).passes).count()
}

#[test]
fn a_bucket_passes_its_burst_at_once_and_then_its_rate() {
    let (rule, mut state) = (bucket(10, Unit::Second, Some(10)), State::default());
    assert_eq!(passed(rule, &mut state, 12, ms(0)), 10);
    let refused = rule.look(&state, 1, ms(0));
    assert_eq!((refused.remaining, refused.retry_after), (Some(0), Some(Duration::from_millis(100))));
    assert!(!rule.look(&state, 1, at(99_999_999)).passes);
    assert!(rule.look(&state, 1, at(100_000_000)).passes);
    assert_eq!(passed(rule, &mut state, 12, ms(500)), 5);
}

#[test]
fn a_steady_caller_at_the_rate_is_never_refused() {
    let (rule, mut state) = (bucket(60, Unit::Minute, None), State::default());
    assert_eq!((0..120).filter(|s| rule.decide(&mut state, 1, 1, ms(s * 1000)).passes).count(), 120);
    let (rule, mut state) = (sliding(60, Unit::Minute), State::default());
    assert_eq!((0..120).filter(|s| rule.decide(&mut state, 1, 1, ms(s * 1000)).passes).count(), 120);
    let (rule, mut state) = (bucket(86_400, Unit::Day, Some(1)), State::default());
    assert_eq!((0..600).filter(|s| rule.decide(&mut state, 1, 1, ms(s * 1000)).passes).count(), 600);
}

#[test]
fn a_rate_of_two_a_second_is_not_one_in_two_seconds() {
    let (rule, mut state) = (bucket(2, Unit::Second, None), State::default());
    passed(rule, &mut state, 2, ms(0));
    assert_eq!((1..=60).filter(|i| rule.decide(&mut state, 1, 1, ms(i * 500)).passes).count(), 60);
}

#[test]
fn six_a_minute_pass_five_at_once() {
    for rule in [bucket(6, Unit::Minute, None), sliding(6, Unit::Minute), fixed(6, Unit::Minute)] {
        assert_eq!(passed(rule, &mut State::default(), 5, ms(0)), 5);
    }
}

#[test]
fn nothing_is_lost_when_rates_do_not_divide() {
    let (rule, mut state) = (bucket(3, Unit::Second, Some(1)), State::default());
    let passed = (0..3_000_000_u64).filter(|i| rule.decide(&mut state, 1, 1, at(i * 1000)).passes).count();
    // Looked at each microsecond, a third of a second is seen a third of a microsecond late at worst.
    assert_eq!(passed, 9);
    let (rule, mut state) = (bucket(7, Unit::Year, Some(1)), State::default());
    rule.charge(&mut state, 1, at(0));
    let wait = rule.look(&state, 1, at(0)).retry_after.unwrap();
    assert_eq!(wait, Duration::from_nanos((365 * 86_400 * 1_000_000_000_u64).div_ceil(7)));
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    for unit in [Unit::Second, Unit::Day, Unit::Month, Unit::Year] {
        for rule in [
            bucket(999_999_999_999_999, unit, Some(u64::MAX)),
            bucket(1, unit, Some(u64::MAX)),
            bucket(1, unit, None),
            sliding(u64::MAX, unit),
            fixed(u64::MAX, unit),
        ] {
            let mut state = State::default();
            for now in [Moment::default(), at(0), Moment::after(Duration::MAX)] {
                rule.decide(&mut state, u64::from(u32::MAX), u64::from(u32::MAX), now);
                rule.charge(&mut state, u64::MAX, now);
                rule.look(&state, 1, now);
                bucket(999_999_999_999_989, Unit::Year, None).adopt(rule, &mut state.clone(), now);
            }
        }
    }
}

#[test]
fn a_cost_above_the_burst_never_passes_and_names_no_time() {
    for rule in [bucket(10, Unit::Second, None), sliding(10, Unit::Second), fixed(10, Unit::Second)] {
        let look = rule.decide(&mut State::default(), 11, 11, ms(0));
        assert_eq!((look.passes, look.retry_after, look.remaining), (false, None, Some(10)));
        assert_eq!(rule.most(), Some(10));
    }
}

#[test]
fn refused_costs_take_nothing() {
    for rule in [bucket(100, Unit::Minute, None), sliding(100, Unit::Minute), fixed(100, Unit::Minute)] {
        let mut state = State::default();
        let passes = [30, 30, 30, 30, 10, 1].map(|cost| rule.decide(&mut state, cost, cost, ms(0)).passes);
        assert_eq!(passes, [true, true, true, false, true, false]);
    }
}

#[test]
fn a_cost_of_nothing_only_looks() {
    for rule in [bucket(1, Unit::Minute, None), sliding(1, Unit::Minute), fixed(1, Unit::Minute)] {
        let mut state = State::default();
        rule.charge(&mut state, 0, ms(0));
        assert_eq!(state, State::New);
    }
}

#[test]
fn around_the_edge_of_a_minute_a_sliding_window_passes_the_amount_once() {
    let edge = |rule: Rule| {
        let (mut state, minute) = (State::default(), Moment::after(Duration::from_secs(1_790_000_040)));
        let second = |s| minute + Duration::from_secs(s);
        passed(rule, &mut state, 60, second(59)) + passed(rule, &mut state, 60, second(61))
    };
    assert_eq!(edge(sliding(60, Unit::Minute)), 60);
    assert_eq!(edge(bucket(60, Unit::Minute, None)), 62);
    assert_eq!(edge(fixed(60, Unit::Minute)), 120);
}

#[test]
fn a_fixed_window_ends_with_the_unit_of_time() {
    let (rule, mut state) = (fixed(1, Unit::Day), State::default());
    let midnight = Moment::after(Duration::from_secs(20_000 * 86_400));
    let evening = midnight + Duration::from_secs(86_400 - 60);
    assert_eq!(passed(rule, &mut state, 2, evening), 1);
    assert_eq!(rule.look(&state, 1, evening).retry_after, Some(Duration::from_secs(60)));
    assert!(rule.look(&state, 1, evening + Duration::from_secs(60)).passes);
}

#[test]
fn a_lone_client_that_waits_as_told_passes_and_never_waits_longer_than_the_unit() {
    for unit in [Unit::Second, Unit::Minute, Unit::Hour, Unit::Day, Unit::Month, Unit::Year] {
        for rule in [bucket(7, unit, None), sliding(7, unit), fixed(7, unit)] {
            let (mut state, mut now) = (State::default(), at(123_456_789));
            for _ in 0..100 {
                let look = rule.decide(&mut state, 1, 1, now);
                if let Some(wait) = look.retry_after {
                    assert!(wait <= unit.duration() && wait > Duration::ZERO, "{rule:?}: {wait:?}");
                    now = now + wait;
                    assert!(rule.look(&state, 1, now).passes, "{rule:?}");
                }
            }
        }
    }
}

#[test]
fn a_burst_whose_parts_need_more_than_a_word_is_counted_to_the_unit() {
    let burst = 1_000_000_000_001;
    let (rule, mut state) = (bucket(7, Unit::Year, Some(burst)), State::default());
    for (cost, left) in [(1, burst), (burst / 2, burst - 1), (burst / 2, burst / 2), (1, 0)] {
        let look = rule.decide(&mut state, cost, cost, ms(0));
        assert_eq!((look.remaining, look.passes), (Some(left), cost <= left));
    }
    let year = at(0) + Unit::Year.duration();
    assert_eq!(rule.look(&state, 1, year).remaining, Some(7));
    assert_eq!(rule.look(&state, 8, ms(0)).retry_after.map(|wait| ms(0) + wait > year), Some(true));
}

#[test]
fn bans_and_no_limits_need_no_state() {
    let ban = Rule::new(Algorithm::TokenBucket, per(0, Unit::Hour), None);
    let open = Rule::new(Algorithm::FixedWindow, Rate::Unlimited, None);
    let mut state = State::default();
    assert_eq!(ban.decide(&mut state, 1, 1, ms(0)), Look::BANNED);
    assert_eq!(open.decide(&mut state, 1_000_000, 1_000_000, ms(0)), Look::UNLIMITED);
    assert_eq!(state, State::New);
}

#[test]
fn a_raised_limit_helps_at_once_and_a_cut_one_owes_nothing() {
    let [ten, twenty, five] = [10, 20, 5].map(|amount| bucket(amount, Unit::Hour, None));
    let mut state = State::default();
    assert_eq!(passed(ten, &mut state, 50, ms(0)), 10);
    twenty.adopt(ten, &mut state, ms(1000));
    assert_eq!(passed(twenty, &mut state, 12, ms(1000)), 10);
    five.adopt(twenty, &mut state, ms(2000));
    let look = five.look(&state, 1, ms(2000));
    assert_eq!((look.passes, look.remaining), (false, Some(0)));
    assert!(look.retry_after.unwrap() <= Duration::from_secs(3600));
}

#[test]
fn what_was_used_stays_used_under_another_algorithm_or_unit() {
    let rules = [
        bucket(10, Unit::Hour, None),
        bucket(10, Unit::Day, None),
        sliding(10, Unit::Hour),
        sliding(10, Unit::Day),
        fixed(10, Unit::Hour),
        fixed(10, Unit::Month),
    ];
    for old in rules {
        for new in rules {
            let mut state = State::default();
            passed(old, &mut state, 7, ms(0));
            new.adopt(old, &mut state, ms(0));
            assert_eq!(passed(new, &mut state, 10, ms(0)), 3, "{old:?} to {new:?}");
        }
    }
}

#[test]
fn a_log_is_bounded_whatever_is_charged() {
    let (rule, mut state) = (sliding(1_000_000, Unit::Minute), State::default());
    for i in 0..200_000_u64 {
        rule.decide(&mut state, 1, 1, ms(i));
        let State::Log(log) = &state else { panic!("{state:?}") };
        assert!(log.entries() <= MOST_ENTRIES, "{} entries", log.entries());
    }
}

fn any_rule() -> impl Strategy<Value = (Rule, Unit, u64, u64)> {
    let unit = prop::sample::select(vec![Unit::Second, Unit::Minute, Unit::Hour, Unit::Year]);
    (unit, 1..50_u64, 1..80_u64, 0..3_u8).prop_map(|(unit, amount, burst, kind)| match kind {
        0 => (bucket(amount, unit, Some(burst)), unit, amount, burst),
        1 => (sliding(amount, unit), unit, amount, amount),
        _ => (fixed(amount, unit), unit, amount, amount),
    })
}

/// Steps of time in thousandths of the unit, forward and sometimes back, each with a cost.
fn requests() -> impl Strategy<Value = Vec<(i64, u64)>> {
    let step = prop_oneof![4 => Just(0_i64), 4 => 0..40_i64, 1 => 0..1500_i64, 1 => -300..0_i64];
    prop::collection::vec((step, 1..6_u64), 1..300)
}

/// What passed: when, and how much.
fn run(rule: Rule, unit: Unit, requests: &[(i64, u64)]) -> Vec<(u64, u64)> {
    let step = u64::try_from(unit.duration().as_nanos()).unwrap() / 1000;
    let (mut state, mut now, mut passed) = (State::default(), 10_000 * step, Vec::new());
    for (thousandths, cost) in requests {
        now = now.saturating_add_signed(thousandths * i64::try_from(step).unwrap());
        if rule.decide(&mut state, *cost, *cost, at(0) + Duration::from_nanos(now)).passes {
            passed.push((now, *cost));
        }
    }
    passed
}

proptest! {
    #[test]
    fn never_more_passes_than_the_rate_gives_beyond_the_burst(
        (rule, unit, amount, burst) in any_rule(), requests in requests(),
    ) {
        let forward: Vec<_> = requests.into_iter().map(|(step, cost)| (step.max(0), cost)).collect();
        let passed = run(rule, unit, &forward);
        let length = unit.duration().as_nanos();
        for (i, (start, _)) in passed.iter().enumerate() {
            let mut sum = 0_u128;
            for (end, cost) in &passed[i..] {
                sum += u128::from(*cost);
                let elapsed = u128::from(end - start);
                let most = match rule {
                    Rule::TokenBucket(_) => u128::from(amount) * elapsed / length + u128::from(burst),
                    Rule::SlidingWindow(_) if elapsed < length => u128::from(amount),
                    Rule::FixedWindow(_) => u128::from(amount) * (elapsed / length + 2),
                    _ => continue,
                };
                prop_assert!(sum <= most, "{sum} of {most} in {elapsed} ns");
            }
        }
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_away(
        (rule, unit, amount, burst) in any_rule(), requests in requests(),
    ) {
        let times = requests.iter().scan(0, |now, (step, _)| { *now += step; Some(*now) });
        let (least, most) = times.fold((0, 0), |(least, most), now| (now.min(least), now.max(most)));
        let elapsed = u64::try_from(most - least).unwrap();
        let passed: u64 = run(rule, unit, &requests).iter().map(|(_, cost)| cost).sum();
        let bound = match rule {
            Rule::TokenBucket(_) => amount * elapsed / 1000 + burst,
            _ => amount * (elapsed / 1000 + 2),
        };
        prop_assert!(passed <= bound, "{passed} of {bound}");
    }

    #[test]
    fn a_look_changes_nothing_and_a_refusal_takes_nothing(
        (rule, unit, _, _) in any_rule(), requests in requests(), cost in 1..200_u64,
    ) {
        let step = unit.duration() / 1000;
        let (mut state, mut now) = (State::default(), at(0));
        for (thousandths, own) in requests {
            now = now + step * u32::try_from(thousandths.max(0)).unwrap();
            rule.decide(&mut state, own, own, now);
            let before = rule.look(&state, 1, now);
            if !rule.look(&state, cost, now).passes {
                rule.decide(&mut state, cost, cost, now);
            }
            prop_assert_eq!(rule.look(&state, 1, now), before);
            prop_assert!(before.remaining <= rule.most());
        }
    }

    #[test]
    fn to_decide_is_to_look_and_then_to_charge(
        (rule, unit, _, _) in any_rule(), requests in requests(), charges in 0..3_u64,
    ) {
        let step = unit.duration() / 1000;
        let (mut decided, mut charged, mut now) = (State::default(), State::default(), at(0));
        for (thousandths, cost) in requests {
            now = now + step * u32::try_from(thousandths.max(0)).unwrap();
            let look = rule.look(&charged, cost, now);
            if look.passes {
                rule.charge(&mut charged, cost * charges, now);
            }
            prop_assert_eq!(rule.decide(&mut decided, cost, cost * charges, now), look);
            prop_assert_eq!(rule.used(&decided, now), rule.used(&charged, now));
        }
    }

    #[test]
    fn forgetting_a_bucket_that_is_as_new_changes_nothing(
        (rule, unit, _, _) in any_rule(), requests in requests(),
    ) {
        let step = unit.duration() / 1000;
        let (mut kept, mut swept, mut now) = (State::default(), State::default(), at(0));
        for (thousandths, cost) in requests {
            now = now + step * u32::try_from(thousandths.max(0)).unwrap();
            if rule.is_as_new(&swept, now) {
                swept = State::default();
            }
            prop_assert_eq!(rule.decide(&mut kept, cost, cost, now), rule.decide(&mut swept, cost, cost, now));
        }
    }
}

#[test]
fn what_is_given_back_counts_as_if_it_had_not_been_charged() {
    for rule in [bucket(60, Unit::Minute, None), sliding(60, Unit::Minute), fixed(60, Unit::Minute)] {
        let mut state = State::default();
        assert_eq!(rule.give_back(&mut state, 5, ms(0)), 0, "{rule:?}");
        rule.charge(&mut state, 20, ms(0));
        rule.charge(&mut state, 30, ms(10));
        assert_eq!(rule.give_back(&mut state, 35, ms(10)), 35, "{rule:?}");
        assert_eq!(rule.look(&state, 1, ms(10)).remaining, Some(45), "{rule:?}");
        assert_eq!(passed(rule, &mut state, 100, ms(10)), 45, "{rule:?}");
    }
}

#[test]
fn nothing_is_given_back_beyond_what_still_counts() {
    for rule in [bucket(60, Unit::Minute, None), sliding(60, Unit::Minute), fixed(60, Unit::Minute)] {
        let mut state = State::default();
        rule.charge(&mut state, 50, ms(0));
        assert_eq!(rule.give_back(&mut state, u64::MAX, ms(0)), 50, "{rule:?}");
        rule.charge(&mut state, 50, ms(0));
        assert_eq!(rule.give_back(&mut state, 50, ms(120_000)), 0, "{rule:?}");
        assert_eq!(passed(rule, &mut state, 100, ms(120_000)), 60, "{rule:?}");
    }
    assert_eq!(Rule::Ban.give_back(&mut State::default(), 5, ms(0)), 0);
    assert_eq!(Rule::Unlimited.give_back(&mut State::default(), 5, ms(0)), 0);
}
