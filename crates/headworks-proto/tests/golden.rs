//! Golden bytes: what this release says, byte for byte, and what it must go on understanding.
#![allow(clippy::unwrap_used, missing_docs, reason = "in a test a panic is the report")]

mod committed;

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Kept, KeptBucket};
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::limits::{
    Algorithm, Digest, Enforcement, Exact, Limit, LimitSet, Missing, Mode, OnSilence, Override, Scope,
    SilencePolicy, StoreFailure, SurgeGuard,
};
use headworks_core::message::{
    BucketNumber, BucketRef, Forgotten, Hello, Incarnation, News, Plan, PlanEntry, Report, ReportEntry, Tier,
    View,
};
use headworks_core::switch::Switch;
use headworks_core::units::{Headroom, Rate, Unit};
use headworks_proto::{
    DESCRIPTORS, FromChild, WireError, decode_child, decode_kept, decode_plan, goodbye_message,
    hello_message, kept_message, plan_message, report_message, wire,
};
use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use prost_types::{DescriptorProto, FileDescriptorSet};

fn hello() -> Hello {
    Hello {
        node: "agent-7".into(),
        incarnation: Incarnation(0x0123_4567_89ab_cdef),
        tier: Tier::Agent,
        zone: "eu-1a".into(),
        region: "eu-1".into(),
        version: "0.1.0".into(),
        previous_parent: Some("aggregator-2".into()),
        previous_incarnation: None,
        limits: Some(Digest(*b"0123456789abcdef")),
        switch: Switch::default(),
    }
}

fn key(limit: &str, scope: &[&str], values: &[&str]) -> BucketKey {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    BucketKey { limit: limit.into(), scope: texts(scope), values: Values::Of(texts(values)) }
}

fn rest(limit: &str) -> BucketKey {
    BucketKey { limit: limit.into(), scope: Vec::new(), values: Values::Rest }
}

fn counted(bucket: BucketRef, offered: u64, dropped: u64, would_drop: u64) -> ReportEntry {
    let counts = Counts { offered, dropped, would_drop, refused_later: 0 };
    ReportEntry { bucket, counts, demand: None, news: None, in_force: None, tokens: None, life: 0 }
}

fn named(key: BucketKey) -> BucketRef {
    BucketRef::Named(key)
}

fn numbered(number: u32) -> BucketRef {
    BucketRef::Number(BucketNumber(number))
}

fn full_report() -> Report {
    let of_host = counted(named(key("per-host", &["eu-1"], &["a.example", "GET"])), 1_000, 10, 0);
    let of_rest = counted(named(rest("per-host")), 7, 0, 7);
    let of_three = counted(numbered(3), 5_000_000_000, 300, 1);
    let of_four = counted(numbered(300), 0, 0, 0);
    Report {
        sequence: 42,
        elapsed: Duration::from_micros(86_400_000_001),
        full: true,
        agents: 250,
        entries: vec![
            ReportEntry { demand: Some(12.5), in_force: Headroom::new(0.75), ..of_host },
            ReportEntry { demand: Some(0.0), in_force: Some(Headroom::OPEN), ..of_rest },
            ReportEntry { demand: Some(1e9), in_force: Some(Headroom::SHUT), ..of_three },
            of_four,
        ],
        forgotten: Vec::new(),
        switch: None,
    }
}

fn early_report() -> Report {
    Report {
        sequence: 43,
        elapsed: Duration::from_micros(86_400_250_000),
        full: false,
        agents: 1,
        entries: vec![counted(numbered(3), 5_000_100_000, 300, 0)],
        forgotten: Vec::new(),
        switch: None,
    }
}

/// A bucket with news, a budget in debt with both, and one that has neither.
fn report_of_news() -> Report {
    let news = |units, micros| Some(News { units, window: Duration::from_micros(micros), solid: units > 0 });
    let budget = |entry: ReportEntry, refused_later| ReportEntry {
        counts: Counts { refused_later, ..entry.counts },
        ..entry
    };
    let of_host = counted(named(key("per-host", &["eu-1"], &["a.example", "GET"])), 90, 0, 0);
    let of_three = budget(counted(numbered(3), 5_000_000_000, 300, 1), 4_000_000);
    Report {
        sequence: 44,
        elapsed: Duration::from_micros(86_400_300_000),
        full: false,
        agents: 1,
        entries: vec![
            ReportEntry { demand: Some(450.0), news: news(90, 200_000), ..of_host },
            ReportEntry {
                news: news(0, 10_000),
                in_force: Headroom::new(0.5),
                tokens: Some(-7.25),
                ..of_three
            },
            counted(numbered(300), 12, 0, 0),
        ],
        forgotten: Vec::new(),
        switch: None,
    }
}

fn per_second(amount: u64) -> Rate {
    Rate::Per { amount, unit: Unit::Second }
}

fn limit(name: &str, rate: Rate) -> Limit {
    Limit {
        name: name.into(),
        matches: Vec::new(),
        exactly: false,
        per: Vec::new(),
        rate,
        cost: 1,
        mode: Mode::Enforce,
        order: 0,
        on_silence: OnSilence::default(),
        max_buckets: 10_000,
        missing: Missing::Skip,
        burst: None,
        surge_guard: SurgeGuard::default(),
        max_rate_per_agent: None,
        enforcement: Enforcement::DropRatio,
        scope: Scope::Global,
        overrides: Vec::new(),
        rollout: None,
    }
}

fn limits() -> LimitSet {
    let silence = |policy, hold| OnSilence { policy, hold };
    let attribute = |key: &str, value: &str| (key.to_owned(), value.into());
    LimitSet::new(vec![
        Limit {
            matches: vec![attribute("method", "GET"), attribute("path", "/")],
            per: vec!["host".into(), "method".into()],
            cost: 5,
            order: -3,
            on_silence: silence(SilencePolicy::Closed, Some(Duration::from_secs(30))),
            max_buckets: 300,
            missing: Missing::Drop,
            surge_guard: SurgeGuard::Hundredths(225),
            max_rate_per_agent: Some(Rate::Per { amount: 40, unit: Unit::Second }),
            ..limit("per-host", per_second(1_000))
        },
        Limit {
            mode: Mode::Shadow,
            on_silence: silence(SilencePolicy::Open, None),
            missing: Missing::Empty,
            surge_guard: SurgeGuard::Off,
            ..limit("tried", per_second(20))
        },
        Limit {
            mode: Mode::Off,
            order: 9,
            on_silence: silence(SilencePolicy::Hold, Some(Duration::ZERO)),
            ..limit("off", per_second(1))
        },
        Limit { burst: Some(300), ..limit("exported", Rate::Per { amount: 1_000, unit: Unit::Hour }) },
        limit("counted", Rate::Unlimited),
        Limit { matches: vec![attribute("user", "mallory")], ..limit("banned", per_second(0)) },
        Limit {
            per: vec!["tenant".into()],
            mode: Mode::Shadow,
            burst: Some(20),
            enforcement: Enforcement::Exact(Exact {
                algorithm: Algorithm::TokenBucket,
                on_store_failure: StoreFailure::Closed,
            }),
            overrides: vec![
                Override {
                    matches: vec![attribute("tenant", "batch-*")],
                    rate: Rate::Per { amount: 5, unit: Unit::Month },
                    burst: Some(2),
                    mode: None,
                },
                Override {
                    matches: vec![attribute("tenant", "trial")],
                    rate: per_second(7),
                    burst: None,
                    mode: Some(Mode::Off),
                },
            ],
            ..limit("exact", Rate::Per { amount: 9, unit: Unit::Year })
        },
    ])
}

fn plan() -> Plan {
    let limits = limits();
    let entry = |number, headroom| PlanEntry {
        bucket: BucketNumber(number),
        headroom: Headroom::new(headroom).unwrap(),
        tokens: None,
    };
    Plan {
        incarnation: Incarnation(0xfedc_ba98_7654_3210),
        sequence: 9,
        heard: 0,
        age: Duration::from_millis(150),
        ttl: Duration::from_secs(5),
        interval: Duration::from_secs(1),
        spacing: Duration::from_millis(100),
        view: View { aggregators: 3, agents: 250, demand: 123_456.5 },
        // Not the digest of the limits: how one is computed may change, and how it travels may not.
        digest: Digest(*b"fedcba9876543210"),
        generation: 4,
        limits: Some(Arc::new(limits)),
        names: vec![
            (BucketNumber(1), BucketKey::whole("tried".into())),
            (BucketNumber(3), key("per-host", &["eu-1"], &["a.example", "GET"])),
            (BucketNumber(300), rest("per-host")),
        ],
        shared: [entry(1, 0.25), entry(2, 0.0)].into(),
        private: [entry(3, 1.5), entry(300, f64::INFINITY)].into(),
        switch: Switch::default(),
        forgets: false,
        untracked: Vec::new(),
    }
}

/// A plan that answers a report, for budgets: two that have tokens, one of them in debt, and a limit per second.
fn plan_of_budgets() -> Plan {
    let entry = |number, headroom, tokens| PlanEntry {
        bucket: BucketNumber(number),
        headroom: Headroom::new(headroom).unwrap(),
        tokens,
    };
    Plan {
        sequence: 10,
        heard: 44,
        limits: None,
        names: Vec::new(),
        shared: [entry(1, 0.25, None), entry(2, f64::INFINITY, Some(17.0))].into(),
        private: [entry(3, 0.0, Some(-7.25))].into(),
        ..plan()
    }
}

/// A plan with limits that older nodes would misread.
fn plan_of_needs() -> Plan {
    let attribute = |key: &str, value: &str| (key.to_owned(), value.into());
    let other = Override {
        matches: vec![attribute("tenant", "batch-*")],
        rate: Rate::Per { amount: 50, unit: Unit::Hour },
        burst: Some(5),
        mode: Some(Mode::Shadow),
    };
    let exact = Exact { algorithm: Algorithm::FixedWindow, on_store_failure: StoreFailure::Open };
    let limits = LimitSet::new(vec![
        Limit { matches: vec![attribute("path", "/api/*")], ..limit("pattern", per_second(3)) },
        Limit {
            per: vec!["tenant".into()],
            mode: Mode::Shadow,
            overrides: vec![other],
            ..limit("others", per_second(4))
        },
        Limit {
            matches: vec![attribute("tenant", "t1"), attribute("path", "*")],
            exactly: true,
            enforcement: Enforcement::Exact(exact),
            ..limit("imported", per_second(5))
        },
    ]);
    let limits = Some(Arc::new(limits));
    Plan { limits, names: Vec::new(), shared: [].into(), private: [].into(), ..plan() }
}

const THROWN: Switch = Switch { version: 300, shadow_all: true };

/// The hello of an aggregator that knows the switch.
fn hello_of_switch() -> Hello {
    Hello { tier: Tier::Aggregator, switch: THROWN, ..hello() }
}

/// What an aggregator tells a controller that does not know it.
fn report_of_switch() -> Report {
    Report { entries: Vec::new(), agents: 250, switch: Some(THROWN), ..early_report() }
}

/// A child that forgot two buckets, and has one of them again.
fn report_of_forgotten() -> Report {
    let gone = |number, life| Forgotten { bucket: BucketNumber(number), life };
    let again = ReportEntry { life: 301, ..counted(named(rest("per-host")), 5, 0, 0) };
    Report {
        entries: vec![again, counted(numbered(3), 5_000_100_000, 300, 0)],
        forgotten: vec![gone(300, 0), gone(7, 300)],
        ..early_report()
    }
}

/// A plan with limits that hold for each zone and region.
fn plan_of_scopes() -> Plan {
    let limits = LimitSet::new(vec![
        Limit { scope: Scope::Zone, mode: Mode::Shadow, ..limit("zone", per_second(20)) },
        Limit { scope: Scope::Region, ..limit("region", per_second(50)) },
    ]);
    let (names, shared, private) = Default::default();
    Plan { limits: Some(Arc::new(limits)), names, shared, private, ..plan() }
}

/// A plan for a child that named more buckets than its limit may have.
fn plan_of_untracked() -> Plan {
    let (names, shared, private) = Default::default();
    let untracked = vec![key("per-host", &[], &["b.example"]), key("per-host", &["eu-1"], &["", "GET"])];
    Plan { forgets: true, untracked, limits: None, names, shared, private, ..plan() }
}

/// A plan after the switch was thrown, and thrown back.
fn plan_of_switch() -> Plan {
    let switch = Switch { version: 301, shadow_all: false };
    Plan { switch, limits: None, names: Vec::new(), shared: [].into(), private: [].into(), ..plan() }
}

/// Sixteen bytes a line, so that a diff shows where.
fn hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    bytes.chunks(16).map(|bytes| line(bytes) + "\n").collect()
}

fn unhex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// The committed bytes of a message, which must be the ones it has now.
fn golden(name: &str, message: &impl Message) -> Vec<u8> {
    let made = hex(&message.encode_to_vec());
    let committed = committed::text(&format!("golden/{name}.hex"), &made);
    assert_eq!(
        committed, made,
        "{name} has other bytes than tests/golden/{name}.hex, which the last release sends. A field that was \
         added and is set here is fine; anything else, releases in the field will misread. \
         If it is meant: UPDATE_SNAPSHOTS=1 cargo test -p headworks-proto, and commit the file."
    );
    unhex(&committed)
}

/// The committed bytes, whatever this release would send.
fn committed_bytes(name: &str) -> Vec<u8> {
    unhex(&committed::read(&format!("golden/{name}.hex")))
}

fn child_says(bytes: &[u8]) -> Result<FromChild, WireError> {
    decode_child(wire::ChildMessage::decode(bytes).unwrap())
}

fn parent_says(bytes: &[u8]) -> Result<(Plan, u32), WireError> {
    decode_plan(wire::ParentMessage::decode(bytes).unwrap())
}

fn told(report: Report) -> FromChild {
    FromChild::Report { report, refused: 0 }
}

/// Every message of a child that has golden bytes.
fn children() -> [(&'static str, wire::ChildMessage, FromChild); 8] {
    [
        ("hello", hello_message(&hello()), FromChild::Hello(hello())),
        ("report_full", report_message(&full_report()), told(full_report())),
        ("report_early", report_message(&early_report()), told(early_report())),
        ("report_news", report_message(&report_of_news()), told(report_of_news())),
        ("goodbye", goodbye_message(), FromChild::Goodbye),
        ("hello_switch", hello_message(&hello_of_switch()), FromChild::Hello(hello_of_switch())),
        ("report_switch", report_message(&report_of_switch()), told(report_of_switch())),
        ("report_forgotten", report_message(&report_of_forgotten()), told(report_of_forgotten())),
    ]
}

#[test]
fn what_a_child_says_has_its_golden_bytes() {
    for (name, message, value) in children() {
        assert_eq!(child_says(&golden(name, &message)), Ok(value), "{name}");
    }
}

#[test]
fn a_plan_has_its_golden_bytes() {
    assert_eq!(parent_says(&golden("plan", &plan_message(&plan()))), Ok((plan(), 0)));
    let budgets = plan_of_budgets();
    assert_eq!(parent_says(&golden("plan_budgets", &plan_message(&budgets))), Ok((budgets, 0)));
    let needs = plan_of_needs();
    assert_eq!(parent_says(&golden("plan_needs", &plan_message(&needs))), Ok((needs, 0)));
    let switch = plan_of_switch();
    assert_eq!(parent_says(&golden("plan_switch", &plan_message(&switch))), Ok((switch, 0)));
    let scopes = plan_of_scopes();
    assert_eq!(parent_says(&golden("plan_scopes", &plan_message(&scopes))), Ok((scopes, 0)));
    let untracked = plan_of_untracked();
    assert_eq!(parent_says(&golden("plan_untracked", &plan_message(&untracked))), Ok((untracked, 0)));
}

#[test]
fn what_an_agent_keeps_has_its_golden_bytes() {
    let kept = Kept {
        age: Some(Duration::from_micros(1_500_000)),
        view: View { aggregators: 2, agents: 40, demand: 800.0 },
        generation: 3,
        limits: Arc::new(LimitSet::new(Vec::new())),
        buckets: vec![
            KeptBucket { key: rest("checkout"), headroom: Headroom::new(0.5).unwrap(), demand: 20.0 },
            KeptBucket { key: key("exports", &[], &["web"]), headroom: Headroom::SHUT, demand: 0.0 },
        ],
    };
    let bytes = golden("kept", &kept_message(&kept, 1_700_000_000_000));
    let message = wire::Kept::decode(bytes.as_slice()).unwrap();
    assert_eq!(message.saved_unix_millis, 1_700_000_000_000);
    assert_eq!(decode_kept(message), Ok((kept, 0)));
}

/// These bytes were made before there were news, tokens, refusals by later limits and the switch.
#[test]
fn what_an_earlier_release_says_is_understood_as_without_what_was_added() {
    for name in ["report_full", "report_early"] {
        let Ok(FromChild::Report { report, refused: 0 }) = child_says(&committed_bytes(name)) else {
            panic!("{name} is no report any more")
        };
        let added = |entry: &ReportEntry| (entry.news, entry.tokens, entry.counts.refused_later);
        assert!(report.entries.iter().all(|entry| added(entry) == (None, None, 0)), "{name}: {report:?}");
        assert_eq!(report.switch, None, "{name}");
    }
    let (plan, refused) = parent_says(&committed_bytes("plan")).unwrap();
    assert_eq!((plan.heard, refused, plan.switch), (0, 0, Switch::default()));
    assert!(plan.shared.iter().chain(plan.private.iter()).all(|entry| entry.tokens.is_none()), "{plan:?}");
}

/// A node of an earlier release drops the field that it does not know.
#[test]
fn an_earlier_release_refuses_limits_that_it_would_misread() {
    let mut message = plan_message(&plan_of_needs());
    let Some(wire::parent_message::Message::Plan(plan)) = &mut message.message else { panic!("no plan") };
    let limits = &mut plan.limits.as_mut().unwrap().limits;
    limits.iter_mut().for_each(|limit| limit.needs = None);
    let (plan, refused) = decode_plan(message).unwrap();
    assert_eq!((plan.limits.unwrap().limits().len(), refused), (0, 3));
}

#[test]
fn what_a_later_release_adds_to_a_childs_message_is_ignored() {
    for (name, message, value) in children() {
        let bytes = golden(name, &message);
        let strewn = strew("ChildMessage", &bytes);
        assert!(strewn.len() > bytes.len());
        assert_eq!(child_says(&strewn), Ok(value), "{name}");
    }
}

#[test]
fn what_a_later_release_adds_to_a_plan_is_ignored() {
    let bytes = golden("plan", &plan_message(&plan()));
    let strewn = strew("ParentMessage", &bytes);
    let messages = 1 + 1 + 1 + 3 + 3 + 2 + 1 + 6 * 3 + 3;
    assert!(strewn.len() >= bytes.len() + messages * added().len());
    assert_eq!(parent_says(&strewn), Ok((plan(), 0)));
}

#[test]
fn a_message_of_a_kind_that_a_later_release_adds_is_an_error_by_itself() {
    assert_eq!(child_says(&added()), Err(WireError::NoMessage));
    assert_eq!(parent_says(&added()), Err(WireError::NoMessage));
}

/// Fields that no message of this release has, one of each kind of encoding.
fn added() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(1_000, WireType::Varint, &mut bytes);
    encode_varint(300, &mut bytes);
    encode_key(1_001, WireType::SixtyFourBit, &mut bytes);
    bytes.extend(f64::NAN.to_le_bytes());
    encode_key(1_002, WireType::LengthDelimited, &mut bytes);
    encode_varint(3, &mut bytes);
    bytes.extend(b"new");
    encode_key(1_003, WireType::ThirtyTwoBit, &mut bytes);
    bytes.extend([0xff; 4]);
    bytes
}

/// The message's bytes with fields added to it and to every message inside it.
fn strew(message: &str, bytes: &[u8]) -> Vec<u8> {
    let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    strew_in(&set.file[0].message_type, message, bytes)
}

fn strew_in(messages: &[DescriptorProto], name: &str, mut bytes: &[u8]) -> Vec<u8> {
    let message = messages.iter().find(|message| message.name() == name).unwrap();
    let mut strewn = Vec::new();
    while bytes.has_remaining() {
        let (number, kind) = decode_key(&mut bytes).unwrap();
        encode_key(number, kind, &mut strewn);
        if kind != WireType::LengthDelimited {
            copy_scalar(kind, &mut bytes, &mut strewn);
            continue;
        }
        let length = usize::try_from(decode_varint(&mut bytes).unwrap()).unwrap();
        let (content, after) = bytes.split_at(length);
        bytes = after;
        let field =
            message.field.iter().find(|field| field.number() == i32::try_from(number).unwrap()).unwrap();
        let content = match field.type_name().rsplit('.').next().unwrap() {
            inner if messages.iter().any(|message| message.name() == inner) => {
                strew_in(messages, inner, content)
            }
            _ => content.to_vec(),
        };
        encode_varint(content.len() as u64, &mut strewn);
        strewn.extend(content);
    }
    strewn.extend(added());
    strewn
}

fn copy_scalar(kind: WireType, from: &mut &[u8], to: &mut Vec<u8>) {
    match kind {
        WireType::Varint => encode_varint(decode_varint(from).unwrap(), to),
        WireType::SixtyFourBit => to.extend(from.get_u64_le().to_le_bytes()),
        WireType::ThirtyTwoBit => to.extend(from.get_u32_le().to_le_bytes()),
        _ => unreachable!("proto3 has no groups"),
    }
}
