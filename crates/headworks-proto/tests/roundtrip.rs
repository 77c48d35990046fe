//! What holds for every message: it arrives as it was sent, and no bytes do harm.
#![allow(clippy::unwrap_used, missing_docs, reason = "in a test a panic is the report")]

use std::sync::Arc;
use std::time::Duration;

use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::limits::{Digest, Limit, LimitSet, Missing, Mode, OnSilence, SilencePolicy};
use headworks_core::message::{
    BucketNumber, BucketRef, Hello, Incarnation, Plan, PlanEntry, Report, ReportEntry, Tier, View,
};
use headworks_core::units::{Headroom, Rate, Unit};
use headworks_proto::{
    FromChild, MAX_REPORT_BYTES, WireError, decode_child, decode_plan, goodbye_message, hello_message,
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

fn hello() -> impl Strategy<Value = Hello> {
    let tier = select(vec![Tier::Agent, Tier::Aggregator, Tier::Controller]);
    let parent = option::of(text().prop_map(|parent| format!("p{parent}")));
    let limits = option::of(any::<[u8; 16]>().prop_map(Digest));
    (text(), 1..=u64::MAX, tier, [text(), text(), text()], parent, limits).prop_map(
        |(node, incarnation, tier, [zone, region, version], previous_parent, limits)| Hello {
            node: format!("n{node}"),
            incarnation: Incarnation(incarnation),
            tier,
            zone,
            region,
            version,
            previous_parent,
            limits,
        },
    )
}

fn counts() -> impl Strategy<Value = Counts> {
    let offered = prop_oneof![Just(0), 0..1_000_u64, 0..=1_u64 << 62];
    offered
        .prop_flat_map(|offered| (Just(offered), 0..=offered, 0..=offered))
        .prop_map(|(offered, dropped, would_drop)| Counts { offered, dropped, would_drop })
}

fn entry(bucket: impl Strategy<Value = BucketRef>) -> impl Strategy<Value = ReportEntry> {
    let demand = option::of(prop_oneof![Just(0.0), 0.0..1e9, 0.0..f64::MAX]);
    (bucket, counts(), demand, option::of(headroom()))
        .prop_map(|(bucket, counts, demand, in_force)| ReportEntry { bucket, counts, demand, in_force })
}

/// Named buckets come before numbered ones: the wire keeps order within each, not between them.
fn report() -> impl Strategy<Value = Report> {
    let named = vec(entry(key().prop_map(BucketRef::Named)), 0..6);
    let numbered = vec(entry(any::<u32>().prop_map(|number| BucketRef::Number(BucketNumber(number)))), 0..6);
    (any::<u64>(), duration(), any::<bool>(), any::<u32>(), named, numbered).prop_map(
        |(sequence, elapsed, full, agents, named, numbered)| Report {
            sequence,
            elapsed,
            full,
            agents,
            entries: [named, numbered].concat(),
        },
    )
}

fn rate() -> impl Strategy<Value = Rate> {
    let amount = prop_oneof![Just(0), any::<u64>()];
    prop_oneof![Just(Rate::Unlimited), amount.prop_map(|amount| Rate::Per { amount, unit: Unit::Second })]
}

prop_compose! {
    fn limit()(
        matches in btree_map(text(), text(), 0..3),
        per in vec(text(), 0..4),
        rate in rate(),
        cost in 1..=u32::MAX,
        mode in select(vec![Mode::Enforce, Mode::Shadow, Mode::Off]),
        order in any::<i32>(),
        policy in select(vec![SilencePolicy::Hold, SilencePolicy::Open, SilencePolicy::Closed]),
        hold in option::of(duration()),
        max_buckets in any::<u32>(),
        missing in select(vec![Missing::Skip, Missing::Empty, Missing::Drop]),
    ) -> Limit {
        Limit {
            name: "named by its place".into(),
            matches: matches.into_iter().collect(),
            per,
            rate,
            cost,
            mode,
            order,
            on_silence: OnSilence { policy, hold },
            max_buckets,
            missing,
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
    let entry = (any::<u32>(), headroom());
    vec(entry.prop_map(|(number, headroom)| PlanEntry { bucket: BucketNumber(number), headroom }), 0..6)
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
        [age, ttl, interval, spacing] in [duration(), duration(), duration(), duration()],
        view in view(),
        digest in any::<[u8; 16]>().prop_map(Digest),
        generation in any::<u64>(),
        limits in option::of(limits()),
        names in vec((any::<u32>().prop_map(BucketNumber), key()), 0..4),
        shared in section(),
        private in section(),
    ) -> Plan {
        Plan {
            incarnation, sequence, age, ttl, interval, spacing, view, digest, generation, limits, names, shared,
            private,
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
        assert!(plan.shared.iter().chain(&plan.private).all(|entry| entry.headroom.value() >= 0.0));
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
            for ReportEntry { counts, demand, in_force, .. } in &report.entries {
                assert!(counts.dropped <= counts.offered && counts.would_drop <= counts.offered);
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
    let demand = length().prop_flat_map(|length| vec(any::<f64>(), length));
    let in_force = length().prop_flat_map(|length| vec(any::<f32>(), length));
    (counts(), counts(), counts(), demand, in_force).prop_map(
        |(offered, dropped, would_drop, demand, in_force)| wire::Entries {
            offered,
            dropped,
            would_drop,
            demand,
            in_force,
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

/// Three numbered buckets with sound counts.
fn three() -> wire::Report {
    wire::Report {
        numbers: vec![1, 2, 3],
        numbered_counts: Some(wire::Entries {
            offered: vec![10, 10, 10],
            dropped: vec![5, 5, 5],
            would_drop: vec![5, 5, 5],
            demand: vec![1.0, 1.0, 1.0],
            in_force: vec![0.5, 0.5, 0.5],
        }),
        ..wire::Report::default()
    }
}

fn decode_report(report: wire::Report) -> Result<(Report, u32), WireError> {
    let message = wire::ChildMessage { message: Some(wire::child_message::Message::Report(report)) };
    match decode_child(sent(&message))? {
        FromChild::Report { report, refused } => Ok((report, refused)),
        other => panic!("not a report: {other:?}"),
    }
}

/// The numbers that remain of [`three`] after `damage` to their columns.
fn remaining(damage: impl FnOnce(&mut wire::Entries)) -> Vec<u32> {
    let mut report = three();
    damage(report.numbered_counts.as_mut().unwrap());
    let (report, refused) = decode_report(report).unwrap();
    assert_eq!(report.entries.len() + refused as usize, 3);
    let number = |entry: &ReportEntry| match entry.bucket {
        BucketRef::Number(number) => number.0,
        BucketRef::Named(_) => panic!("no bucket was named"),
    };
    report.entries.iter().map(number).collect()
}

#[test]
fn sound_entries_all_stay() {
    assert_eq!(remaining(|_| {}), [1, 2, 3]);
    assert_eq!(remaining(|columns| columns.offered[1] = 1 << 62), [1, 2, 3]);
}

#[test]
fn an_entry_that_dropped_more_than_was_offered_is_refused_by_itself() {
    assert_eq!(remaining(|columns| columns.dropped[1] = 11), [1, 3]);
    assert_eq!(remaining(|columns| columns.would_drop[1] = 11), [1, 3]);
    assert_eq!(remaining(|columns| columns.offered = Vec::new()), [0; 0]);
}

#[test]
fn an_entry_with_more_than_anyone_can_count_is_refused_by_itself() {
    assert_eq!(remaining(|columns| columns.offered[1] = (1 << 62) + 1), [1, 3]);
    assert_eq!(remaining(|columns| columns.offered[1] = u64::MAX), [1, 3]);
}

#[test]
fn an_entry_with_a_demand_that_is_no_rate_is_refused_by_itself() {
    for demand in [-1.0, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(remaining(|columns| columns.demand[1] = demand), [1, 3], "{demand}");
    }
}

#[test]
fn an_entry_with_a_headroom_below_zero_is_refused_by_itself() {
    for headroom in [-0.5, f32::NEG_INFINITY] {
        assert_eq!(remaining(|columns| columns.in_force[1] = headroom), [1, 3], "{headroom}");
    }
}

#[test]
fn nan_in_a_column_means_that_the_child_has_none() {
    let mut report = three();
    let columns = report.numbered_counts.as_mut().unwrap();
    columns.demand[1] = f64::NAN;
    columns.in_force[1] = f32::NAN;
    let (report, refused) = decode_report(report).unwrap();
    assert_eq!((refused, report.entries.len()), (0, 3));
    assert_eq!((report.entries[1].demand, report.entries[1].in_force), (None, None));
    assert_eq!(report.entries[2].demand, Some(1.0));
}

fn wire_name(limit: &str, values: &[&str], rest: bool) -> wire::BucketKey {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    wire::BucketKey { limit: limit.into(), scope: Vec::new(), values, rest }
}

/// Keys that no limit gives.
fn senseless_keys() -> Vec<wire::BucketKey> {
    let long = "v".repeat(1_025);
    vec![
        wire_name("", &[], false),
        wire_name(&"l".repeat(129), &[], false),
        wire_name("l", &["value"], true),
        wire_name("l", &[&long], false),
        wire_name("l", &["v"; 17], false),
        wire::BucketKey { scope: vec![long.clone()], ..wire_name("l", &[], false) },
    ]
}

#[test]
fn a_named_bucket_that_no_limit_gives_is_refused_by_itself() {
    for senseless in senseless_keys() {
        let named = vec![wire_name("before", &[], false), senseless.clone(), wire_name("after", &[], true)];
        let counts = wire::Entries { offered: vec![1, 2, 3], ..wire::Entries::default() };
        let report = wire::Report { named, named_counts: Some(counts), ..three() };
        let (report, refused) = decode_report(report).unwrap();
        assert_eq!((refused, report.entries.len()), (1, 5), "{senseless:?}");
        let offered: Vec<u64> = report.entries.iter().map(|entry| entry.counts.offered).collect();
        assert_eq!(offered, [1, 3, 10, 10, 10], "{senseless:?}");
    }
}

#[test]
fn columns_of_unequal_length_are_an_error_that_names_them() {
    let shorten: [fn(&mut wire::Entries); 5] = [
        |columns| columns.offered.truncate(2),
        |columns| columns.dropped.truncate(1),
        |columns| columns.would_drop.push(0),
        |columns| columns.demand.push(0.0),
        |columns| columns.in_force.truncate(2),
    ];
    for shorten in shorten {
        let mut report = three();
        shorten(report.numbered_counts.as_mut().unwrap());
        let error = decode_report(report).unwrap_err();
        assert!(matches!(error, WireError::UnequalColumns { expected: 3, .. }), "{error}");
        assert!(error.to_string().contains("numbered"), "{error}");
    }
    let report = wire::Report { named_counts: three().numbered_counts, ..wire::Report::default() };
    let error = decode_report(report).unwrap_err();
    assert!(error.to_string().contains("named has 3 values for 0 buckets"), "{error}");
}

#[test]
fn a_bucket_without_columns_has_counted_nothing() {
    let (report, refused) = decode_report(wire::Report { numbered_counts: None, ..three() }).unwrap();
    assert_eq!((refused, report.entries.len()), (0, 3));
    assert!(report.entries.iter().all(|entry| entry.counts == Counts::default() && entry.demand.is_none()));
}

fn sound_hello() -> wire::Hello {
    wire::Hello {
        node: "n".into(),
        incarnation: 1,
        tier: wire::Tier::Agent.into(),
        zone: "z".into(),
        ..wire::Hello::default()
    }
}

/// What is wrong with [`sound_hello`] after `damage`.
fn fault(damage: impl FnOnce(&mut wire::Hello)) -> String {
    let mut hello = sound_hello();
    damage(&mut hello);
    let message = wire::ChildMessage { message: Some(wire::child_message::Message::Hello(hello)) };
    decode_child(sent(&message)).map_or_else(|error| error.to_string(), |said| panic!("taken: {said:?}"))
}

#[test]
fn a_hello_that_lacks_what_it_must_have_is_an_error_that_names_it() {
    assert_eq!(fault(|hello| hello.node.clear()), "hello.node is missing");
    assert_eq!(fault(|hello| hello.incarnation = 0), "hello.incarnation is missing");
    assert_eq!(fault(|hello| hello.tier = 0), "hello.tier is missing");
    assert_eq!(fault(|hello| hello.tier = 99), "hello.tier is missing");
    assert_eq!(fault(|hello| hello.limits_digest = vec![1; 15]), "hello.limits_digest has a wrong length");
}

#[test]
fn a_text_of_a_hello_past_its_bound_is_an_error_that_names_it() {
    let long = || "é".repeat(64) + "x";
    let told = |field| format!("{field} has 129 bytes; at most 128 are allowed");
    assert_eq!(fault(|hello| hello.node = long()), told("hello.node"));
    assert_eq!(fault(|hello| hello.zone = long()), told("hello.zone"));
    assert_eq!(fault(|hello| hello.region = long()), told("hello.region"));
    assert_eq!(fault(|hello| hello.version = long()), told("hello.version"));
    assert_eq!(fault(|hello| hello.previous_parent = long()), told("hello.previous_parent"));
}

#[test]
fn a_message_of_no_kind_is_an_error() {
    assert_eq!(decode_child(wire::ChildMessage::default()), Err(WireError::NoMessage));
    assert_eq!(decode_plan(wire::ParentMessage::default()), Err(WireError::NoMessage));
}

fn sound_limit(name: &str) -> wire::Limit {
    wire::Limit {
        name: name.into(),
        rate: Some(wire::Rate { rate: Some(wire::rate::Rate::Amount(10)), unit: wire::Unit::Second.into() }),
        cost: 1,
        mode: wire::Mode::Enforce.into(),
        on_silence: Some(wire::OnSilence { policy: wire::SilencePolicy::Open.into(), hold_micros: None }),
        max_buckets: 1,
        missing: wire::Missing::Skip.into(),
        ..wire::Limit::default()
    }
}

fn sound_plan() -> wire::Plan {
    wire::Plan { incarnation: 1, limits_digest: vec![7; 16], ..wire::Plan::default() }
}

fn decode(plan: wire::Plan) -> Result<(Plan, u32), WireError> {
    decode_plan(sent(&wire::ParentMessage { message: Some(wire::parent_message::Message::Plan(plan)) }))
}

type Damage = fn(&mut wire::Limit);

/// One way each in which a limit makes no sense, or only to a later release.
const SENSELESS: [(&str, Damage); 15] = [
    ("no name", |limit| limit.name.clear()),
    ("a long name", |limit| limit.name = "n".repeat(129)),
    ("the name of another", |limit| limit.name = "before".into()),
    ("too many keys", |limit| limit.per = vec!["key".into(); 17]),
    ("no cost", |limit| limit.cost = 0),
    ("no mode", |limit| limit.mode = 0),
    ("an unknown mode", |limit| limit.mode = 99),
    ("an unknown policy", |limit| limit.on_silence.as_mut().unwrap().policy = 99),
    ("no policy", |limit| limit.on_silence = None),
    ("an unknown word for missing keys", |limit| limit.missing = 99),
    ("no rate", |limit| limit.rate = None),
    ("a rate of an unknown kind", |limit| limit.rate.as_mut().unwrap().rate = None),
    ("an unknown unit", |limit| limit.rate.as_mut().unwrap().unit = 99),
    ("no unit", |limit| limit.rate.as_mut().unwrap().unit = 0),
    ("not unlimited", |limit| {
        limit.rate.as_mut().unwrap().rate = Some(wire::rate::Rate::Unlimited(false));
    }),
];

#[test]
fn a_limit_that_makes_no_sense_is_refused_by_itself() {
    for (what, damage) in SENSELESS {
        let mut senseless = sound_limit("senseless");
        damage(&mut senseless);
        let limits = vec![sound_limit("before"), senseless, sound_limit("later")];
        let limits = Some(wire::LimitSet { limits });
        let (plan, refused) = decode(wire::Plan { limits, ..sound_plan() }).unwrap();
        assert_eq!(refused, 1, "{what}");
        let limits = plan.limits.unwrap();
        let names: Vec<&str> = limits.limits().iter().map(|limit| &*limit.name).collect();
        assert_eq!(names, ["before", "later"], "{what}");
    }
}

#[test]
fn a_headroom_that_no_law_gives_is_refused_by_itself() {
    let section = || wire::Headrooms { numbers: vec![1, 2, 3], headroom: vec![0.0, f32::NAN, f32::INFINITY] };
    let negative = wire::Headrooms { headroom: vec![0.5, -0.5, 1.0], ..section() };
    let plan = wire::Plan { shared: Some(section()), private: Some(negative), ..sound_plan() };
    let (plan, refused) = decode(plan).unwrap();
    assert_eq!(refused, 2);
    for entries in [plan.shared, plan.private] {
        assert_eq!(entries.iter().map(|entry| entry.bucket.0).collect::<Vec<_>>(), [1, 3]);
    }
}

#[test]
fn a_name_that_no_limit_gives_is_refused_by_itself() {
    let name = |number, key| wire::NumberedKey { number, key };
    for senseless in senseless_keys().into_iter().map(Some).chain([None]) {
        let sound = || Some(wire_name("l", &["v"], false));
        let names = vec![name(1, sound()), name(2, senseless.clone()), name(3, sound())];
        let (plan, refused) = decode(wire::Plan { names, ..sound_plan() }).unwrap();
        assert_eq!(refused, 1, "{senseless:?}");
        assert_eq!(plan.names.iter().map(|(number, _)| number.0).collect::<Vec<_>>(), [1, 3]);
    }
}

#[test]
fn a_view_with_a_demand_that_is_no_rate_heard_nothing() {
    for demand in [f64::NAN, f64::INFINITY, -1.0] {
        let view = Some(wire::View { agents: 5, demand, ..wire::View::default() });
        let (plan, _) = decode(wire::Plan { view, ..sound_plan() }).unwrap();
        assert_eq!((plan.view.agents, plan.view.demand), (5, 0.0), "{demand}");
    }
}

#[test]
fn a_plan_that_is_unusable_is_an_error_that_names_the_field() {
    let fault = |plan| decode(plan).unwrap_err().to_string();
    assert_eq!(fault(wire::Plan { incarnation: 0, ..sound_plan() }), "plan.incarnation is missing");
    assert_eq!(fault(wire::Plan { limits_digest: vec![], ..sound_plan() }), "plan.limits_digest is missing");
    let short = wire::Plan { limits_digest: vec![1; 17], ..sound_plan() };
    assert_eq!(fault(short), "plan.limits_digest has a wrong length");
    let section = || Some(wire::Headrooms { numbers: vec![1, 2], headroom: vec![0.5] });
    let told = |column| format!("column {column} has 1 values for 2 buckets");
    assert_eq!(fault(wire::Plan { shared: section(), ..sound_plan() }), told("shared"));
    assert_eq!(fault(wire::Plan { private: section(), ..sound_plan() }), told("private"));
}

#[test]
fn a_report_of_a_hundred_thousand_numbered_buckets_fits() {
    let entry = |number| ReportEntry {
        bucket: BucketRef::Number(BucketNumber(number)),
        counts: Counts { offered: 1 << 34, dropped: 1 << 33, would_drop: 0 },
        demand: Some(123.4),
        in_force: Headroom::new(0.5),
    };
    let report = Report {
        sequence: 1,
        elapsed: Duration::from_secs(1),
        full: true,
        agents: 1_000,
        entries: (0..100_000).map(entry).collect(),
    };
    assert!(report_message(&report).encoded_len() <= MAX_REPORT_BYTES);
}
