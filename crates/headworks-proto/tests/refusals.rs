//! What makes no sense is refused by itself and counted; a message that is unusable is an error that names the field.
#![allow(clippy::unwrap_used, missing_docs, reason = "in a test a panic is the report")]

use headworks_core::bucket::Counts;
use headworks_core::limits::SurgeGuard;
use headworks_core::message::{BucketRef, Plan, Report, ReportEntry};
use headworks_proto::{
    FromChild, MAX_BUCKETS_PER_REPORT, WireError, decode_child, decode_kept, decode_plan, wire,
};
use prost::Message;

/// A message as it comes out at the other side.
fn sent<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
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
            refused_later: vec![5, 5, 5],
            news_units: vec![5, 5, 5],
            news_micros: vec![50_000, 50_000, 50_000],
            tokens: vec![-0.5, 0.5, 0.5],
            news_solid: vec![true, false, true],
            lives: vec![0, 0, 7],
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
    assert_eq!(remaining(|columns| columns.refused_later[1] = 11), [1, 3]);
    assert_eq!(remaining(|columns| columns.offered = Vec::new()), [0; 0]);
}

#[test]
fn an_entry_with_news_of_more_than_was_offered_is_refused_by_itself() {
    assert_eq!(remaining(|columns| columns.news_units[1] = 10), [1, 2, 3]);
    assert_eq!(remaining(|columns| columns.news_units[1] = 11), [1, 3]);
    assert_eq!(remaining(|columns| columns.news_units[1] = u64::MAX), [1, 3]);
}

#[test]
fn an_entry_with_tokens_that_are_no_number_of_units_is_refused_by_itself() {
    for tokens in [f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(remaining(|columns| columns.tokens[1] = tokens), [1, 3], "{tokens}");
    }
}

#[test]
fn rates_that_would_wipe_out_all_others_in_a_sum_are_refused_by_themselves() {
    assert_eq!(remaining(|columns| columns.news_micros[1] = 10_000), [1, 2, 3]);
    assert_eq!(remaining(|columns| columns.news_micros[1] = 9_999), [1, 3]);
    let huge = |columns: &mut wire::Entries| {
        (columns.offered[1], columns.news_units[1]) = (1 << 61, 1 << 60);
    };
    assert_eq!(remaining(huge), [1, 3]);
    let demand = |rate| move |columns: &mut wire::Entries| columns.demand = vec![1.0, rate, 1.0];
    assert_eq!(remaining(demand(1e12)), [1, 2, 3]);
    assert_eq!(remaining(demand(1.1e12)), [1, 3]);
}

#[test]
fn a_window_of_nothing_means_that_there_is_no_news() {
    let mut report = three();
    let columns = report.numbered_counts.as_mut().unwrap();
    (columns.news_units[1], columns.news_micros[1]) = (11, 0);
    let (report, refused) = decode_report(report).unwrap();
    assert_eq!((refused, report.entries.len()), (0, 3));
    let news = report.entries.iter().map(|entry| entry.news.is_some());
    assert_eq!(news.collect::<Vec<_>>(), [true, false, true]);
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
    columns.tokens[1] = f64::NAN;
    let (report, refused) = decode_report(report).unwrap();
    assert_eq!((refused, report.entries.len()), (0, 3));
    let entry = &report.entries[1];
    assert_eq!((entry.demand, entry.in_force, entry.tokens), (None, None, None));
    assert_eq!((report.entries[2].demand, report.entries[2].tokens), (Some(1.0), Some(0.5)));
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
    let shorten: [fn(&mut wire::Entries); 10] = [
        |columns| columns.offered.truncate(2),
        |columns| columns.dropped.truncate(1),
        |columns| columns.would_drop.push(0),
        |columns| columns.demand.push(0.0),
        |columns| columns.in_force.truncate(2),
        |columns| columns.refused_later.truncate(2),
        |columns| columns.news_units.push(0),
        |columns| columns.news_micros.truncate(1),
        |columns| columns.tokens.truncate(2),
        |columns| columns.news_solid.push(true),
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

/// What is left of a report of these many named buckets (all of one name) and numbered ones.
fn taken(named: u32, numbered: u32) -> (usize, usize, u32) {
    let named = (0..named).map(|_| wire_name("l", &[], false)).collect();
    let report = wire::Report { named, numbers: (0..numbered).collect(), ..wire::Report::default() };
    let (report, refused) = decode_report(report).unwrap();
    let is_named = |entry: &&ReportEntry| matches!(entry.bucket, BucketRef::Named(_));
    let named = report.entries.iter().filter(is_named).count();
    (named, report.entries.len() - named, refused)
}

#[test]
fn buckets_past_the_most_of_a_report_are_refused_and_new_ones_give_way() {
    let most = u32::try_from(MAX_BUCKETS_PER_REPORT).unwrap();
    assert_eq!(taken(2, most - 2), (2, MAX_BUCKETS_PER_REPORT - 2, 0));
    assert_eq!(taken(3, most - 2), (2, MAX_BUCKETS_PER_REPORT - 2, 1));
    assert_eq!(taken(3, most + 5), (0, MAX_BUCKETS_PER_REPORT, 8));
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
    assert_eq!(fault(|hello| hello.node.clear()), "hello.node is missing, or of a later release");
    assert_eq!(fault(|hello| hello.incarnation = 0), "hello.incarnation is missing, or of a later release");
    assert_eq!(fault(|hello| hello.tier = 0), "hello.tier is missing, or of a later release");
    assert_eq!(fault(|hello| hello.tier = 99), "hello.tier is missing, or of a later release");
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
fn a_name_in_a_hello_that_could_forge_a_line_is_an_error_that_names_it() {
    let hostile = || "x\"} 1\nevil_total{a=\"b\u{1b}]0;t\u{7}\r\nlevel=error msg=fake".to_owned();
    let told = |field| format!("{field} has a control character; rename the node, or its zone");
    assert_eq!(fault(|hello| hello.node = hostile()), told("hello.node"));
    assert_eq!(fault(|hello| hello.zone = hostile()), told("hello.zone"));
    assert_eq!(fault(|hello| hello.region = hostile()), told("hello.region"));
    assert_eq!(fault(|hello| hello.version = hostile()), told("hello.version"));
    assert_eq!(fault(|hello| hello.previous_parent = hostile()), told("hello.previous_parent"));
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

fn exact() -> wire::Exact {
    wire::Exact {
        mode: wire::Mode::Enforce.into(),
        algorithm: wire::Algorithm::TokenBucket.into(),
        on_store_failure: wire::StoreFailure::Open.into(),
    }
}

fn needs(features: &[i32]) -> wire::Needs {
    wire::Needs { mode: wire::Mode::Enforce.into(), features: features.to_vec() }
}

fn sound_plan() -> wire::Plan {
    wire::Plan { incarnation: 1, limits_digest: vec![7; 16], ..wire::Plan::default() }
}

fn decode(plan: wire::Plan) -> Result<(Plan, u32), WireError> {
    decode_plan(sent(&wire::ParentMessage { message: Some(wire::parent_message::Message::Plan(plan)) }))
}

type Damage = fn(&mut wire::Limit);

/// One way each in which a limit makes no sense, or only to a later release.
const SENSELESS: [(&str, Damage); 33] = [
    ("no name", |limit| limit.name.clear()),
    ("an exact limit without a mode", |limit| limit.exact = Some(wire::Exact { mode: 0, ..exact() })),
    ("an algorithm of a later release", |limit| limit.exact = Some(wire::Exact { algorithm: 99, ..exact() })),
    ("no word on a failing store", |limit| {
        limit.exact = Some(wire::Exact { on_store_failure: 0, ..exact() });
    }),
    ("overrides of a drop ratio", |limit| limit.overrides = vec![wire::Override::default()]),
    ("a pattern that no feature makes one", |limit| {
        limit.r#match = vec![wire::Attribute { key: "tenant".into(), value: "a*".into() }];
    }),
    ("a feature of a later release", |limit| limit.needs = Some(needs(&[1, 99]))),
    ("a feature that is none", |limit| limit.needs = Some(needs(&[0]))),
    ("features without a mode", |limit| limit.needs = Some(wire::Needs { mode: 0, ..needs(&[2]) })),
    ("a rollout that no feature makes one", |limit| {
        limit.rollout =
            Some(wire::Rollout { zones: vec!["a".into()], rate: None, mode: wire::Mode::Off.into() });
    }),
    ("a rollout that is needed and not there", |limit| limit.needs = Some(needs(&[5]))),
    ("an override of no bucket", |limit| {
        limit.exact = Some(exact());
        limit.overrides = vec![wire::Override { rate: limit.rate, ..wire::Override::default() }];
    }),
    ("an override in a mode of a later release", |limit| {
        limit.exact = Some(exact());
        limit.per = vec!["tenant".into()];
        let tenant = wire::Attribute { key: "tenant".into(), value: "a".into() };
        limit.overrides =
            vec![wire::Override { r#match: vec![tenant], rate: limit.rate, mode: 99, ..Default::default() }];
    }),
    ("a drop ratio by the year", |limit| {
        limit.rate = Some(wire::Rate { unit: wire::Unit::Year.into(), ..limit.rate.unwrap_or_default() });
    }),
    ("a long name", |limit| limit.name = "n".repeat(129)),
    ("a name that forges a line", |limit| limit.name = "x\"} 1\nevil_total{a=\"b".into()),
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
    ("a burst of nothing", |limit| limit.burst = Some(0)),
    ("an agent that may be offered nothing", |limit| {
        limit.max_rate_per_agent = Some(wire::Rate { rate: Some(wire::rate::Rate::Amount(0)), unit: 1 });
    }),
    ("a guard below a node's share", |limit| limit.surge_guard_hundredths = Some(99)),
    ("a guard beyond a hundred shares", |limit| limit.surge_guard_hundredths = Some(10_001)),
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
fn a_limit_of_a_parent_without_bursts_and_guards_has_the_defaults() {
    let limits = Some(wire::LimitSet { limits: vec![sound_limit("old")] });
    let (plan, refused) = decode(wire::Plan { limits, ..sound_plan() }).unwrap();
    let limits = plan.limits.unwrap();
    let old = limits.get("old").unwrap();
    assert_eq!((refused, old.burst, old.surge_guard), (0, None, SurgeGuard::default()));
}

#[test]
fn a_headroom_that_no_law_gives_is_refused_by_itself() {
    let section = || wire::Headrooms {
        numbers: vec![1, 2, 3],
        headroom: vec![1.7, f32::NAN, f32::INFINITY],
        tokens: vec![],
    };
    let negative = wire::Headrooms { headroom: vec![0.5, -0.5, 1.0], ..section() };
    let plan = wire::Plan { shared: Some(section()), private: Some(negative), ..sound_plan() };
    let (plan, refused) = decode(plan).unwrap();
    assert_eq!(refused, 2);
    for entries in [plan.shared, plan.private] {
        assert_eq!(entries.iter().map(|entry| entry.bucket.0).collect::<Vec<_>>(), [1, 3]);
    }
}

/// Three entries of a plan whose second one has these tokens.
fn section_with(tokens: f64) -> wire::Headrooms {
    wire::Headrooms { numbers: vec![1, 2, 3], headroom: vec![0.5; 3], tokens: vec![-1.0, tokens, 1.0] }
}

#[test]
fn tokens_of_a_plan_that_are_no_number_of_units_are_refused_with_their_entry() {
    for tokens in [f64::INFINITY, f64::NEG_INFINITY] {
        let section = || Some(section_with(tokens));
        let plan = wire::Plan { shared: section(), private: section(), ..sound_plan() };
        let (plan, refused) = decode(plan).unwrap();
        assert_eq!(refused, 2, "{tokens}");
        for entries in [plan.shared, plan.private] {
            assert_eq!(entries.iter().map(|entry| entry.bucket.0).collect::<Vec<_>>(), [1, 3], "{tokens}");
        }
    }
}

#[test]
fn nan_among_the_tokens_of_a_plan_means_that_the_limit_is_no_budget() {
    let plan = wire::Plan { shared: Some(section_with(f64::NAN)), ..sound_plan() };
    let (plan, refused) = decode(plan).unwrap();
    let tokens: Vec<Option<f64>> = plan.shared.iter().map(|entry| entry.tokens).collect();
    assert_eq!((refused, tokens), (0, vec![Some(-1.0), None, Some(1.0)]));
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
    assert_eq!(
        fault(wire::Plan { incarnation: 0, ..sound_plan() }),
        "plan.incarnation is missing, or of a later release"
    );
    assert_eq!(
        fault(wire::Plan { limits_digest: vec![], ..sound_plan() }),
        "plan.limits_digest is missing, or of a later release"
    );
    let short = wire::Plan { limits_digest: vec![1; 17], ..sound_plan() };
    assert_eq!(fault(short), "plan.limits_digest has a wrong length");
    let section = || Some(wire::Headrooms { numbers: vec![1, 2], headroom: vec![0.5], tokens: vec![] });
    let told = |column| format!("column {column} has 1 values for 2 buckets");
    assert_eq!(fault(wire::Plan { shared: section(), ..sound_plan() }), told("shared"));
    assert_eq!(fault(wire::Plan { private: section(), ..sound_plan() }), told("private"));
    let short = || Some(wire::Headrooms { headroom: vec![0.5; 2], tokens: vec![1.0], ..section().unwrap() });
    assert_eq!(fault(wire::Plan { shared: short(), ..sound_plan() }), told("shared"));
    assert_eq!(fault(wire::Plan { private: short(), ..sound_plan() }), told("private"));
}

#[test]
fn buckets_of_a_kept_state_that_make_no_sense_are_left_out_and_counted() {
    let key = || Some(wire::BucketKey { limit: "checkout".into(), ..wire::BucketKey::default() });
    let bucket = |key, headroom, demand| wire::KeptBucket { key, headroom, demand };
    let message = wire::Kept {
        limits: Some(wire::LimitSet::default()),
        buckets: vec![
            bucket(key(), 0.5, 20.0),
            bucket(None, 0.5, 20.0),
            bucket(key(), f32::NAN, 20.0),
            bucket(key(), -0.5, 20.0),
            bucket(key(), 0.5, f64::INFINITY),
        ],
        ..wire::Kept::default()
    };
    let (kept, refused) = decode_kept(sent(&message)).unwrap();
    assert_eq!((kept.buckets.len(), refused), (1, 4));
    assert_eq!(decode_kept(wire::Kept::default()), Err(WireError::Missing("kept.limits")));
}
