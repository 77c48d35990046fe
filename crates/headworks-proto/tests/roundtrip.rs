//! What holds for every message: it arrives as it was sent, and no bytes do harm.
#![allow(clippy::unwrap_used, missing_docs, reason = "in a test a panic is the report")]

use std::sync::Arc;
use std::time::Duration;

use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::limits::{
    Algorithm, Digest, Enforcement, Exact, Limit, LimitSet, Missing, Mode, OnSilence, Override, Rollout,
    Scope, SilencePolicy, StoreFailure, SurgeGuard,
};
use headworks_core::message::{
    BucketNumber, BucketRef, Forgotten, Hello, Incarnation, News, Plan, PlanEntry, Report, ReportEntry, Tier,
    View,
};
use headworks_core::switch::Switch;
use headworks_core::units::{Headroom, Rate, Unit};
use headworks_proto::{
    FromChild, MAX_REPORT_BYTES, PlanEncoder, decode_child, decode_plan, goodbye_message, hello_message,
    plan_message, report_message, wire,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use prost::Message;

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,24}"
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![0..10_000_000_u64, any::<u64>()].prop_map(Duration::from_micros)
}

/// Headrooms travel as 32-bit floats.
fn headroom() -> impl Strategy<Value = Headroom> {
    let value = prop_oneof![Just(0.0), Just(f32::INFINITY), 0.0..2.0_f32, 0.0..f32::MAX];
    value.prop_map(|value| Headroom::new(f64::from(value)).unwrap())
}

fn key() -> impl Strategy<Value = BucketKey> {
    let values = prop_oneof![4 => vec(text(), 0..4).prop_map(Values::Of), 1 => Just(Values::Rest)];
    (text(), vec(text(), 0..3), values).prop_map(|(name, scope, values)| BucketKey {
        limit: format!("l{name}").into(),
        scope,
        values,
    })
}

fn switch() -> impl Strategy<Value = Switch> {
    (any::<u64>(), any::<bool>()).prop_map(|(version, shadow_all)| Switch { version, shadow_all })
}

fn hello() -> impl Strategy<Value = Hello> {
    let tier = select(vec![Tier::Agent, Tier::Aggregator, Tier::Controller]);
    let parent = option::of(text().prop_map(|parent| format!("p{parent}")));
    let limits = option::of(any::<[u8; 16]>().prop_map(Digest));
    (text(), 1..=u64::MAX, tier, [text(), text(), text()], parent, limits, switch()).prop_map(
        |(node, incarnation, tier, [zone, region, version], previous_parent, limits, switch)| Hello {
            node: format!("n{node}"),
            incarnation: Incarnation(incarnation),
            tier,
            zone,
            region,
            version,
            previous_incarnation: previous_parent.as_ref().map(|_| Incarnation(7)),
            previous_parent,
            limits,
            switch,
        },
    )
}

fn counts() -> impl Strategy<Value = Counts> {
    let offered = prop_oneof![Just(0), 0..1_000_u64, 0..=1_u64 << 62];
    offered.prop_flat_map(|offered| (Just(offered), 0..=offered, 0..=offered, 0..=offered)).prop_map(
        |(offered, dropped, would_drop, refused_later)| Counts {
            offered,
            dropped,
            would_drop,
            refused_later,
        },
    )
}

/// News of a bucket in which `offered` was counted: a window travels in whole microseconds, none is shorter than ten
/// milliseconds, and no rate is above a million million.
fn news(offered: u64) -> impl Strategy<Value = Option<News>> {
    let micros = prop_oneof![10_000..10_000_000_u64, 10_000..=u64::MAX];
    let news = (0..=offered.min(1_000_000_000), micros.prop_map(Duration::from_micros), any::<bool>());
    option::of(news.prop_map(|(units, window, solid)| News { units, window, solid }))
}

fn tokens() -> impl Strategy<Value = Option<f64>> {
    option::of(prop_oneof![Just(0.0), -1e6..1e6, -f64::MAX..f64::MAX])
}

fn entry(bucket: impl Strategy<Value = BucketRef>) -> impl Strategy<Value = ReportEntry> {
    let demand = option::of(prop_oneof![Just(0.0), 0.0..1e9, 0.0..=1e12]);
    let counts = counts().prop_flat_map(|counts| (Just(counts), news(counts.offered)));
    (bucket, counts, demand, option::of(headroom()), tokens(), any::<u32>()).prop_map(
        |(bucket, (counts, news), demand, in_force, tokens, life)| ReportEntry {
            bucket,
            counts,
            demand,
            news,
            in_force,
            tokens,
            life,
        },
    )
}

/// Named buckets come before numbered ones: the wire keeps order within each, not between them.
fn report() -> impl Strategy<Value = Report> {
    let named = vec(entry(key().prop_map(BucketRef::Named)), 0..6);
    let numbered = vec(entry(any::<u32>().prop_map(|number| BucketRef::Number(BucketNumber(number)))), 0..6);
    let forgotten = (any::<u32>(), any::<u32>())
        .prop_map(|(number, life)| Forgotten { bucket: BucketNumber(number), life });
    let forgotten = vec(forgotten, 0..4);
    (any::<u64>(), duration(), any::<bool>(), any::<u32>(), named, numbered, forgotten, switch()).prop_map(
        |(sequence, elapsed, full, agents, named, numbered, forgotten, switch)| Report {
            sequence,
            elapsed,
            full,
            agents,
            entries: [named, numbered].concat(),
            forgotten,
            switch: Some(switch).filter(|switch| *switch != Switch::default()),
        },
    )
}

fn rate() -> impl Strategy<Value = Rate> {
    let amount = prop_oneof![Just(0), any::<u64>()];
    let unit = select(vec![Unit::Second, Unit::Minute, Unit::Hour, Unit::Day]);
    prop_oneof![Just(Rate::Unlimited), (amount, unit).prop_map(|(amount, unit)| Rate::Per { amount, unit })]
}

fn own_mode() -> impl Strategy<Value = Option<Mode>> {
    option::of(select(vec![Mode::Enforce, Mode::Shadow, Mode::Off]))
}

fn bound() -> impl Strategy<Value = Rate> {
    (1..=u64::MAX).prop_map(|amount| Rate::Per { amount, unit: Unit::Second })
}

fn surge_guard() -> impl Strategy<Value = SurgeGuard> {
    prop_oneof![
        Just(SurgeGuard::Off),
        Just(SurgeGuard::default()),
        (100..=10_000_u32).prop_map(SurgeGuard::Hundredths)
    ]
}

fn exact() -> impl Strategy<Value = Exact> {
    let algorithms = vec![Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::FixedWindow];
    (select(algorithms), select(vec![StoreFailure::Open, StoreFailure::Closed]))
        .prop_map(|(algorithm, on_store_failure)| Exact { algorithm, on_store_failure })
}

fn text_of_some_length() -> impl Strategy<Value = String> {
    text().prop_filter("empty", |text| !text.is_empty())
}

prop_compose! {
    fn limit()(
        matches in btree_map(text(), text(), 0..3),
        per in vec("\\PC{1,24}", 0..4),
        rate in rate(),
        cost in 1..=u32::MAX,
        mode in select(vec![Mode::Enforce, Mode::Shadow, Mode::Off]),
        order in any::<i32>(),
        policy in select(vec![SilencePolicy::Hold, SilencePolicy::Open, SilencePolicy::Closed]),
        hold in option::of(duration()),
        max_buckets in 1..=u32::MAX,
        missing in select(vec![Missing::Skip, Missing::Empty, Missing::Drop]),
        burst in option::of(1..=u64::MAX),
        surge_guard in surge_guard(),
        max_rate_per_agent in option::of(bound()),
        exact in option::of(exact()),
        (slow, exactly, chosen) in (any::<bool>(), any::<bool>(), option::of((text_of_some_length(), rate(), option::of(1..=u64::MAX), own_mode()))),
        elsewhere in option::of((vec("[a-z]{1,5}", 1..3), own_mode())),
        scope in select(vec![Scope::Global, Scope::Region, Scope::Zone]),
    ) -> Limit {
        let rate = match rate {
            Rate::Per { amount, .. } if slow && exact.is_some() => Rate::Per { amount, unit: Unit::Year },
            rate => rate,
        };
        let overrides = chosen.into_iter().filter_map(|(value, rate, burst, own_mode)| {
            Some(Override { matches: vec![(per.first()?.clone(), value.into())], rate, burst, mode: own_mode })
        });
        Limit {
            overrides: overrides.collect(),
            rollout: elsewhere.map(|(zones, mode)| Rollout { zones: zones.into(), rate: None, mode }),
            scope: if exact.is_some() { Scope::Global } else { scope },
            enforcement: exact.map_or(Enforcement::DropRatio, Enforcement::Exact),
            name: "named by its place".into(),
            matches: matches.into_iter().map(|(key, value)| (key, value.into())).collect(),
            exactly,
            per,
            rate,
            cost,
            mode,
            order,
            on_silence: OnSilence { policy, hold },
            max_buckets,
            missing,
            burst,
            surge_guard,
            max_rate_per_agent,
        }
    }
}

fn limits() -> impl Strategy<Value = Arc<LimitSet>> {
    vec(limit(), 0..5).prop_map(|limits| {
        let named = |(place, limit)| Limit { name: format!("limit-{place}").into(), ..limit };
        Arc::new(LimitSet::new(limits.into_iter().enumerate().map(named).collect()))
    })
}

fn section() -> impl Strategy<Value = Vec<PlanEntry>> {
    let entry = (any::<u32>().prop_map(BucketNumber), headroom(), tokens());
    vec(entry.prop_map(|(bucket, headroom, tokens)| PlanEntry { bucket, headroom, tokens }), 0..6)
}

prop_compose! {
    fn view()(aggregators in any::<u32>(), agents in any::<u32>(), demand in 0.0..f64::MAX) -> View {
        View { aggregators, agents, demand }
    }
}

prop_compose! {
    fn plan()(
        incarnation in (1..=u64::MAX).prop_map(Incarnation),
        sequence in any::<u64>(),
        heard in any::<u64>(),
        [age, ttl, interval, spacing] in [duration(), duration(), duration(), duration()],
        view in view(),
        digest in any::<[u8; 16]>().prop_map(Digest),
        generation in any::<u64>(),
        limits in option::of(limits()),
        names in vec((any::<u32>().prop_map(BucketNumber), key()), 0..4),
        shared in section(),
        private in section(),
        switch in switch(),
        forgets in any::<bool>(),
        untracked in vec(key(), 0..3),
    ) -> Plan {
        Plan {
            incarnation, sequence, heard, age, ttl, interval, spacing, view, digest, generation, limits, names,
            shared: shared.into(), private: private.into(), switch, forgets, untracked,
        }
    }
}

/// A message as it comes out at the other side.
fn sent<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}

fn whole(report: Report) -> FromChild {
    FromChild::Report { report, refused: 0 }
}

proptest! {
    #[test]
    fn a_hello_arrives_as_it_was_sent(hello in hello()) {
        prop_assert_eq!(decode_child(sent(&hello_message(&hello))), Ok(FromChild::Hello(hello)));
    }

    #[test]
    fn a_report_arrives_as_it_was_sent(report in report()) {
        prop_assert_eq!(decode_child(sent(&report_message(&report))), Ok(whole(report)));
    }

    #[test]
    fn a_plan_arrives_as_it_was_sent(plan in plan()) {
        prop_assert_eq!(decode_plan(sent(&plan_message(&plan))), Ok((plan, 0)));
    }

    #[test]
    fn a_plan_that_was_encoded_in_parts_arrives_as_a_whole_one(plan in plan()) {
        let mut encoder = PlanEncoder::default();
        for plan in [plan.clone(), Plan { heard: 7, ..plan }] {
            let mut bytes = Vec::new();
            encoder.encode(&plan).write_to(&mut bytes);
            let arrived = wire::ParentMessage::decode(bytes.as_slice()).unwrap();
            prop_assert_eq!(decode_plan(arrived), Ok((plan, 0)));
        }
    }

    #[test]
    fn limits_that_arrive_have_the_digest_of_those_that_were_sent(plan in plan(), limits in limits()) {
        let plan = Plan { limits: Some(limits.clone()), ..plan };
        let (arrived, _) = decode_plan(sent(&plan_message(&plan))).unwrap();
        prop_assert_eq!(arrived.limits.unwrap().digest(), limits.digest());
    }
}

#[test]
fn a_goodbye_arrives_as_it_was_sent() {
    assert_eq!(decode_child(sent(&goodbye_message())), Ok(FromChild::Goodbye));
}

/// Reads bytes as both kinds of message; what can be read must be sound, and stay as it is from then on.
fn survive(bytes: &[u8]) {
    if let Ok(Ok(said)) = wire::ChildMessage::decode(bytes).map(decode_child) {
        survive_child(said);
    }
    if let Ok(Ok((plan, _))) = wire::ParentMessage::decode(bytes).map(decode_plan) {
        let entries = || plan.shared.iter().chain(plan.private.iter());
        assert!(entries().all(|entry| entry.headroom.value() >= 0.0));
        assert!(entries().all(|entry| entry.tokens.is_none_or(f64::is_finite)));
        assert!(plan.view.demand >= 0.0 && plan.view.demand.is_finite());
        assert_eq!(decode_plan(sent(&plan_message(&plan))), Ok((plan, 0)));
    }
}

fn survive_child(said: FromChild) {
    match said {
        FromChild::Hello(hello) => {
            assert_eq!(decode_child(sent(&hello_message(&hello))), Ok(FromChild::Hello(hello)));
        }
        FromChild::Report { report, .. } => {
            for ReportEntry { counts, demand, news, in_force, tokens, .. } in &report.entries {
                assert!(counts.dropped <= counts.offered && counts.would_drop <= counts.offered);
                assert!(counts.refused_later <= counts.offered);
                assert!(news.is_none_or(|news| news.units <= counts.offered && !news.window.is_zero()));
                assert!(tokens.is_none_or(f64::is_finite));
                assert!(demand.is_none_or(|demand| demand >= 0.0 && demand.is_finite()));
                assert!(in_force.is_none_or(|headroom| headroom.value() >= 0.0));
            }
            assert_eq!(decode_child(sent(&report_message(&report))), Ok(whole(report)));
        }
        FromChild::Goodbye => {}
    }
}

fn sound_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        hello().prop_map(|hello| hello_message(&hello).encode_to_vec()),
        report().prop_map(|report| report_message(&report).encode_to_vec()),
        plan().prop_map(|plan| plan_message(&plan).encode_to_vec()),
    ]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_u64, any::<u64>()]
}

/// Columns that fit `buckets` most of the time, and hold anything.
fn columns(buckets: usize) -> impl Strategy<Value = wire::Entries> {
    let length = || prop_oneof![8 => Just(buckets), 1 => Just(0), 1 => 0..8_usize];
    let counts = || length().prop_flat_map(|length| vec(count(), length));
    let floats = || length().prop_flat_map(|length| vec(any::<f64>(), length));
    let in_force = length().prop_flat_map(|length| vec(any::<f32>(), length));
    let solid = length().prop_flat_map(|length| vec(any::<bool>(), length));
    let counted = [counts(), counts(), counts(), counts()];
    let lives = length().prop_flat_map(|length| vec(any::<u32>(), length));
    (counted, floats(), in_force, [counts(), counts()], floats(), solid, lives).prop_map(
        |(
            [offered, dropped, would_drop, refused_later],
            demand,
            in_force,
            news,
            tokens,
            news_solid,
            lives,
        )| {
            let [news_units, news_micros] = news;
            wire::Entries {
                offered,
                dropped,
                would_drop,
                demand,
                in_force,
                refused_later,
                news_units,
                news_micros,
                tokens,
                news_solid,
                lives,
            }
        },
    )
}

fn wire_key() -> impl Strategy<Value = wire::BucketKey> {
    (text(), vec(text(), 0..3), vec(text(), 0..18), any::<bool>())
        .prop_map(|(limit, scope, values, rest)| wire::BucketKey { limit, scope, values, rest })
}

fn wire_report() -> impl Strategy<Value = wire::Report> {
    let named = vec(wire_key(), 0..5);
    let numbers = vec(any::<u32>(), 0..5);
    (named, numbers).prop_flat_map(|(named, numbers)| {
        let columns = (columns(named.len()), columns(numbers.len()));
        columns.prop_map(move |(named_counts, numbered_counts)| wire::Report {
            named: named.clone(),
            named_counts: Some(named_counts),
            numbers: numbers.clone(),
            numbered_counts: Some(numbered_counts),
            ..wire::Report::default()
        })
    })
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..256)) {
        survive(&bytes);
    }

    #[test]
    fn sound_bytes_with_some_of_them_damaged_are_survived(
        mut bytes in sound_bytes(),
        damage in vec((any::<Index>(), any::<u8>()), 1..4),
        end in option::of(any::<Index>()),
    ) {
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(end.map_or(bytes.len(), |end| end.index(bytes.len())));
        survive(&bytes);
    }

    #[test]
    fn every_entry_of_a_report_is_taken_or_counted_as_refused(report in wire_report()) {
        let buckets = report.named.len() + report.numbers.len();
        let message = wire::ChildMessage { message: Some(wire::child_message::Message::Report(report)) };
        survive(&message.encode_to_vec());
        if let Ok(FromChild::Report { report, refused }) = decode_child(message) {
            prop_assert_eq!(report.entries.len() + refused as usize, buckets);
        }
    }
}

#[test]
fn a_report_of_a_hundred_thousand_numbered_buckets_fits() {
    let entry = |number| ReportEntry {
        bucket: BucketRef::Number(BucketNumber(number)),
        counts: Counts { offered: 1 << 34, dropped: 1 << 33, would_drop: 0, refused_later: 1 << 33 },
        demand: Some(123.4),
        news: None,
        in_force: Headroom::new(0.5),
        tokens: Some(-0.1),
        life: 0,
    };
    let report = Report {
        sequence: 1,
        elapsed: Duration::from_secs(1),
        full: true,
        agents: 1_000,
        entries: (0..100_000).map(entry).collect(),
        forgotten: Vec::new(),
        switch: None,
    };
    assert!(report_message(&report).encoded_len() <= MAX_REPORT_BYTES);
}
