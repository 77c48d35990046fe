//! What holds for every limits file and for every set of limits.

use std::time::Duration;

use headworks_core::limits::{
    Algorithm, Enforcement, Exact, Limit, LimitSet, Missing, Mode, OnSilence, Override, Rollout, Scope,
    SilencePolicy, StoreFailure, SurgeGuard, parse, parse_bytes, print,
};
use headworks_core::overrides::ties;
use headworks_core::units::{Rate, Unit};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;

/// Text that readers of YAML stumble over, and any other text.
fn nasty() -> impl Strategy<Value = String> {
    let known = select(vec![
        "NO",
        "~",
        "null",
        "true",
        "007",
        "1.10",
        "12:30",
        "<<",
        "#",
        "a #b",
        " a",
        "a ",
        "\n",
        "a\nb",
        "\r\n",
        "\t",
        "\"",
        "'",
        "\\",
        "a: b",
        "- a",
        "{",
        "[",
        "&a",
        "!a",
        "%a",
        "@",
        "`",
        "---",
        "...",
        "?",
        ":",
        "|",
        ">",
        "=",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\u{a0}",
        "\0",
        "\u{7f}",
        "\u{ffff}",
        "東京",
        "cafe\u{301}",
        "\u{1f980}",
    ]);
    let any = vec(any::<char>(), 1..20).prop_map(|chars| chars.into_iter().collect());
    prop_oneof![known.prop_map(str::to_owned), any, "[ -~]{1,30}", "[ab*]{1,6}"]
}

fn rate() -> impl Strategy<Value = Rate> {
    let amount = prop_oneof![Just(0), 1..1000_u64, Just(1_000_000_000_000_000)];
    let unit = select(vec![Unit::Second, Unit::Minute, Unit::Hour, Unit::Day]);
    prop_oneof![Just(Rate::Unlimited), (amount, unit).prop_map(|(amount, unit)| Rate::Per { amount, unit })]
}

/// A rate with what a limit of this rate may have beside it.
fn rate_and_bounds() -> impl Strategy<Value = (Rate, Option<u64>, SurgeGuard)> {
    let guard = prop_oneof![Just(SurgeGuard::Off), (100..=10_000_u32).prop_map(SurgeGuard::Hundredths)];
    (rate(), proptest::option::of(1..=1000_u64), guard).prop_map(|(rate, burst, guard)| match rate {
        Rate::Unlimited | Rate::Per { amount: 0, .. } => (rate, None, SurgeGuard::default()),
        Rate::Per { unit: Unit::Second, .. } => (rate, None, guard),
        Rate::Per { amount, .. } => (rate, burst.map(|burst| burst.min(amount)), SurgeGuard::default()),
    })
}

fn on_silence() -> impl Strategy<Value = OnSilence> {
    let hold = prop_oneof![1000..=86_400_000_u64, (1..=86_400_u64).prop_map(|s| s * 1000), Just(3_600_000)];
    let policy = select(vec![SilencePolicy::Hold, SilencePolicy::Open, SilencePolicy::Closed]);
    (policy, proptest::option::of(hold.prop_map(Duration::from_millis)))
        .prop_map(|(policy, hold)| OnSilence { policy, hold: hold.filter(|_| policy != SilencePolicy::Open) })
}

fn mode() -> impl Strategy<Value = Mode> {
    select(vec![Mode::Enforce, Mode::Shadow, Mode::Off])
}

/// Overrides for values of the first key, without those that might tie.
fn distinct(
    per: &[String],
    others: impl Iterator<Item = (String, Rate, Option<u64>, Option<Mode>)>,
) -> Vec<Override> {
    let Some(key) = per.first() else { return Vec::new() };
    let made = others.map(|(value, rate, burst, mode)| Override {
        matches: vec![(key.clone(), value.into())],
        rate,
        burst,
        mode,
    });
    let mut overrides: Vec<Override> = Vec::new();
    for other in made {
        overrides.push(other);
        if !ties(&overrides, per).is_empty() {
            overrides.pop();
        }
    }
    overrides
}

fn rollout() -> impl Strategy<Value = Rollout> {
    (btree_set("[a-z0-9._-]{1,9}", 1..4), mode()).prop_map(|(zones, mode)| Rollout {
        zones: zones.into_iter().collect(),
        rate: None,
        mode: Some(mode),
    })
}

prop_compose! {
    fn limit()(
        matches in btree_map(nasty(), nasty(), 0..4),
        exactly in any::<bool>(),
        others in btree_map(nasty(), (rate_and_bounds(), proptest::option::of(mode())), 0..3),
        per in btree_set(nasty(), 0..4),
        (rate, burst, surge_guard) in rate_and_bounds(),
        cost in 1..=1_000_000_u32,
        mode in mode(),
        order in any::<i32>(),
        on_silence in on_silence(),
        max_buckets in 1..=1_000_000_u32,
        max_rate_per_agent in proptest::option::of(rate()),
        missing in select(vec![Missing::Skip, Missing::Empty, Missing::Drop]),
        rollout in proptest::option::of(rollout()),
        scope in select(vec![Scope::Global, Scope::Region, Scope::Zone]),
    ) -> Limit {
        let has_one_value = |key: &String| matches.get(key).is_some_and(|value| !value.contains('*'));
        let per: Vec<String> = per.into_iter().filter(|key| !has_one_value(key)).collect();
        let (max_buckets, missing) = if per.is_empty() { (10_000, Missing::Skip) } else { (max_buckets, missing) };
        let exactly = exactly && !(matches.is_empty() && per.is_empty());
        let missing = if exactly { Missing::Skip } else { missing };
        let matches = matches.into_iter().map(|(key, value)| (key, value.into())).collect();
        let overrides = distinct(&per, others.into_iter().map(|(value, ((rate, burst, _), mode))| (value, rate, burst, mode)));
        let bounds = |rate: &Rate| matches!(rate, Rate::Per { amount: 1.., .. });
        let max_rate_per_agent = max_rate_per_agent.filter(bounds);
        Limit {
            name: "".into(), matches, per, rate, cost, mode, order, on_silence, max_buckets, missing, burst,
            surge_guard, max_rate_per_agent, scope, enforcement: Enforcement::DropRatio, overrides, exactly,
            rollout,
        }
    }
}

/// What a limit becomes when it is exact: other fields have an effect.
fn exact_limit() -> impl Strategy<Value = Limit> {
    let algorithms = vec![Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];
    let exact = (select(algorithms), select(vec![StoreFailure::Open, StoreFailure::Closed]))
        .prop_map(|(algorithm, on_store_failure)| Exact { algorithm, on_store_failure });
    let others = btree_map(nasty(), (rate_of_exact(), 1..=1_000_000_u64, proptest::option::of(mode())), 0..3);
    (limit(), exact, rate_of_exact(), 1..=1_000_000_u64, others).prop_map(
        |(limit, exact, rate, burst, others)| {
            let burst_of = |rate: &Rate, burst| {
                let has_one = exact.algorithm == Algorithm::TokenBucket
                    && matches!(rate, Rate::Per { amount: 1.., .. });
                has_one.then_some(burst)
            };
            let others = others.into_iter();
            let others =
                others.map(|(value, (rate, burst, mode))| (value, rate, burst_of(&rate, burst), mode));
            Limit {
                scope: Scope::Global,
                overrides: distinct(&limit.per, others),
                burst: burst_of(&rate, burst),
                rate,
                cost: 1,
                enforcement: Enforcement::Exact(exact),
                on_silence: OnSilence::default(),
                surge_guard: SurgeGuard::default(),
                max_rate_per_agent: None,
                ..limit
            }
        },
    )
}

fn rate_of_exact() -> impl Strategy<Value = Rate> {
    let slow = (1..1000_u64, select(vec![Unit::Month, Unit::Year]));
    prop_oneof![rate(), slow.prop_map(|(amount, unit)| Rate::Per { amount, unit })]
}

fn set() -> impl Strategy<Value = LimitSet> {
    let named = btree_map("[a-zA-Z0-9_.:/-]{1,12}", prop_oneof![limit(), exact_limit()], 0..5);
    named.prop_map(|limits| {
        LimitSet::new(limits.into_iter().map(|(name, limit)| Limit { name: name.into(), ..limit }).collect())
    })
}

proptest! {
    #[test]
    fn a_printed_set_reads_back_as_the_same_set(set in set()) {
        let printed = print(&set);
        match parse(&printed) {
            Ok(again) => prop_assert_eq!(again, set),
            Err(faults) => prop_assert!(false, "{}\n{}", faults, printed),
        }
    }

    #[test]
    fn carriage_returns_make_no_difference(set in set()) {
        let printed = print(&set);
        prop_assert_eq!(parse(&printed.replace('\n', "\r\n")).map(|set| set.digest()), Ok(set.digest()));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = parse_bytes(&bytes);
    }

    #[test]
    fn no_yaml_makes_the_reader_panic(
        text in "([ \n]|limits|name|rate|match|per|: |- |\\[|\\]|\\{|\\}|, |\"|'|&a|\\*a|!t|!!str|<<|\\? |#|---|%|\\||>|~|5/second|6/day|burst|surge_guard|1.5|off){0,40}",
    ) {
        let _ = parse(&text);
    }

    #[test]
    fn a_refused_text_is_refused_with_at_least_one_fault(text in "[a-z:\\[\\]{} \n-]{0,60}") {
        if let Err(faults) = parse(&text) {
            prop_assert!(!faults.listed().is_empty());
            prop_assert!(faults.listed().iter().all(|fault| fault.line > 0 && fault.column > 0));
        }
    }
}
