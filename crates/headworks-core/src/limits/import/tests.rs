//! What requests meet after an import, for each rule of the other limiters.

use super::*;
use crate::attributes::Attributes;
use crate::limits::{parse, print};
use crate::matching::Encounter;
use crate::units::Unit;

const HOLDING: Holding = Holding { exact: None, agents: 10 };

/// A request by its domain and entries, and the limits that it should meet, with the values of their buckets.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

fn met(limits: &LimitSet, domain: &str, entries: &[(&str, &str)]) -> Vec<String> {
    let all: Vec<(&str, &str)> = [("domain", domain)].iter().chain(entries).copied().collect();
    let meets = |limit: &std::sync::Arc<Limit>| {
        let Encounter::Counted(values) = limit.encounter(Attributes::new(&all)) else { return None };
        let of_bucket =
            limit.overridden().map(|overridden| overridden.of_values(values.as_slice()).0.clone());
        let mode = of_bucket.map_or(limit.mode, |limit| limit.mode);
        (mode != Mode::Off).then(|| format!("{} {:?}", limit.name, values.as_slice()).replace(" []", ""))
    };
    let mut met: Vec<String> = limits.limits().iter().filter_map(meets).collect();
    met.sort();
    met
}

/// The same limits, once more read from the file that they print as: an import is of no use otherwise.
#[track_caller]
fn printed(imported: &Imported) -> LimitSet {
    let text = print(&imported.limits);
    let again = parse(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    assert_eq!(again, imported.limits, "{text}");
    again
}

#[track_caller]
fn from_envoy(text: &str) -> (LimitSet, Vec<String>) {
    let imported =
        envoy_ratelimit(&[text.as_bytes()], false, HOLDING).unwrap_or_else(|(_, faults)| panic!("{faults}"));
    let notes = imported.notes.iter().map(|(_, note)| note.to_string()).collect();
    (printed(&imported), notes)
}

#[track_caller]
fn check(limits: &LimitSet, cases: &[Case<'_>]) {
    for (domain, entries, wanted) in cases {
        assert_eq!(met(limits, domain, entries), *wanted, "{domain} {entries:?}");
    }
}

const SHOP: &str = "
domain: shop
descriptors:
  - key: service
    value: checkout
    rate_limit: {unit: second, requests_per_unit: 500}
    descriptors:
      - key: caller
        rate_limit: {unit: minute, requests_per_unit: 60}
      - key: caller
        value: batch
        rate_limit: {unit: Hour, requests_per_unit: 0}
  - key: service
    value: open
  - key: service
    value: batch-*
    rate_limit: {unit: second, requests_per_unit: 1000}
  - key: service
    value: batch-a*
    rate_limit: {unit: second, requests_per_unit: 2000}
  - key: service
    rate_limit: {unit: second, requests_per_unit: 100}
";

#[test]
fn the_very_value_goes_before_a_star_and_that_before_any_value() {
    let (limits, notes) = from_envoy(SHOP);
    assert_eq!(notes, [""; 0]);
    check(
        &limits,
        &[
            ("shop", &[("service", "checkout")], &["shop/service:checkout"]),
            ("shop", &[("service", "open")], &[]),
            ("shop", &[("service", "cart")], &[r#"shop/service ["cart"]"#]),
            ("shop", &[("service", "batch-1")], &[r#"shop/service:batch-_ ["batch-1"]"#]),
            // The first in the file, not the longest.
            ("shop", &[("service", "batch-a1")], &[r#"shop/service:batch-_ ["batch-a1"]"#]),
            ("else", &[("service", "checkout")], &[]),
        ],
    );
}

#[test]
fn a_request_has_as_many_entries_as_its_rule_and_in_its_order() {
    let (limits, _) = from_envoy(SHOP);
    let caller = "shop/service:checkout/caller";
    check(
        &limits,
        &[
            ("shop", &[("service", "checkout"), ("caller", "web")], &[&format!(r#"{caller} ["web"]"#)]),
            ("shop", &[("service", "checkout"), ("caller", "batch")], &[&format!("{caller}:batch")]),
            // There is no way back up, so the rule for any service does not take it.
            ("shop", &[("service", "cart"), ("caller", "web")], &[]),
            ("shop", &[("caller", "web"), ("service", "checkout")], &[]),
            ("shop", &[("service", "checkout"), ("caller", "web"), ("path", "/")], &[]),
            ("shop", &[], &[]),
        ],
    );
    assert_eq!(
        limits.get("shop/service:checkout/caller:batch").unwrap().rate,
        Rate::Per { amount: 0, unit: Unit::Hour }
    );
}

#[test]
fn values_further_down_are_taken_out_by_what_stands_above_as_well() {
    let (limits, _) = from_envoy(
        "
domain: d
descriptors:
  - key: a
    value: x
    descriptors: [{key: b, value: y, rate_limit: {unit: second, requests_per_unit: 1000}}]
  - key: a
    descriptors:
      - {key: b, value: y, rate_limit: {unit: second, requests_per_unit: 2000}}
      - {key: b, rate_limit: {unit: second, requests_per_unit: 3000}}
",
    );
    check(
        &limits,
        &[
            ("d", &[("a", "x"), ("b", "y")], &["d/a:x/b:y"]),
            ("d", &[("a", "x"), ("b", "z")], &[]),
            ("d", &[("a", "w"), ("b", "y")], &[r#"d/a/b:y ["w"]"#]),
            ("d", &[("a", "w"), ("b", "z")], &[r#"d/a/b ["w", "z"]"#]),
        ],
    );
}

#[test]
fn every_other_key_is_carried_over_or_listed() {
    let (limits, notes) = from_envoy(
        "
domain: d
descriptors:
  - key: quiet
    shadow_mode: true
    rate_limit: {unit: second, requests_per_unit: 1000}
  - key: quota
    quota_mode: true
    rate_limit: {unit: second, requests_per_unit: 1000}
  - key: metrics
    detailed_metric: true
    value_to_metric: true
    metadata: {any: {thing: 1}}
    rate_limit: {name: its own name, unit: day, requests_per_unit: 5}
  - key: shared
    value: a-*
    share_threshold: true
    rate_limit: {unit: second, requests_per_unit: 1000}
  - key: free
    rate_limit: {unlimited: true}
  - key: weekly
    rate_limit: {unit: week, requests_per_unit: 7}
  - key: monthly
    rate_limit: {unit: MONTH, requests_per_unit: 7}
  - key: yearly
    rate_limit: {unit: year, requests_per_unit: 7}
  - key: instead
    rate_limit: {name: instead, replaces: [{name: its own name}], unit: second, requests_per_unit: 1000}
  - key: twice
    descriptors: [{key: twice, rate_limit: {unit: second, requests_per_unit: 1000}}]
",
    );
    let told: Vec<&str> =
        notes.iter().map(|note| note.split_once("]: ").map_or("", |(_, rest)| rest)).collect();
    let starts = |start: &str| told.iter().any(|note| note.starts_with(start));
    for start in [
        "carried over in shadow: `quota_mode`",
        "`detailed_metric` is not carried over",
        "`value_to_metric` is not carried over",
        "`metadata` is not carried over",
        "not carried over: `twice` stands in its path twice",
        "`replaces` of `its own name` is not carried over",
    ] {
        assert!(starts(start) || notes.iter().any(|note| note.contains(start)), "{start}: {notes:#?}");
    }
    assert!(notes.iter().any(|note| note.contains("limits have no week")), "{notes:#?}");
    assert_eq!(notes.len(), 7, "{notes:#?}");
    let limit = |name: &str| limits.get(name).unwrap_or_else(|| panic!("no {name} in {limits:#?}"));
    assert_eq!((limit("d/quiet").mode, limit("d/quota").mode), (Mode::Shadow, Mode::Shadow));
    assert_eq!(limit("its_own_name").algorithm(), Algorithm::FixedWindow);
    assert_eq!(limit("d/free").rate, Rate::Unlimited);
    assert!(limit("d/monthly").exact().is_some() && limit("d/quiet").exact().is_none());
    check(
        &limits,
        &[
            ("d", &[("shared", "a-1")], &["d/shared:a-_"]),
            ("d", &[("shared", "b-1")], &[]),
            ("d", &[("metrics", "x")], &[r#"its_own_name ["x"]"#]),
        ],
    );
}

#[track_caller]
fn refused(text: &str) -> String {
    let refused = envoy_ratelimit(&[text.as_bytes()], false, HOLDING).map(|imported| imported.limits);
    refused.expect_err("it is faulty").1.to_string()
}

#[test]
fn what_their_own_reader_refuses_is_refused() {
    let rate = "rate_limit: {unit: second, requests_per_unit: 1}";
    for (text, wanted) in [
        ("domain: ''\ndescriptors: []".to_owned(), "is empty"),
        ("descriptors: []".to_owned(), "`domain` is missing"),
        (format!("domain: d\ndescriptors: [{{key: '', {rate}}}]"), "is empty"),
        (format!("domain: d\ndescriptors: [{{value: x, {rate}}}]"), "`key` is missing"),
        (
            format!("domain: d\ndescriptors: [{{key: a, value: b, {rate}}}, {{key: a_b, {rate}}}]"),
            "`a_b` stands here twice",
        ),
        (
            "domain: d\ndescriptors: [{key: a, rate_limit: {unit: fortnight, requests_per_unit: 1}}]"
                .to_owned(),
            "is no unit",
        ),
        (
            "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, unlimited: true}}]".to_owned(),
            "no meaning",
        ),
        (
            "domain: d\ndescriptors: [{key: a, rate_limit: {requests_per_unit: 1}}]".to_owned(),
            "`unit` is missing",
        ),
        (
            "domain: d\ndescriptors: [{key: a, rate_limit: {name: n, replaces: [{name: n}], unit: day}}]"
                .to_owned(),
            "itself",
        ),
        (
            "domain: d\ndescriptors: [{key: a, rate_limit: {replaces: [{name: ''}], unit: day}}]".to_owned(),
            "is empty",
        ),
        (format!("domain: d\ndescriptors: [{{key: a, share_threshold: true, {rate}}}]"), "without `*`"),
        (format!("domain: d\ndescriptors: {{key: a, {rate}}}"), "must be a list"),
        (format!("domain: d\ndescriptors: [{{key: a, ratelimit: 1, {rate}}}]"), "did you mean `rate_limit`"),
        (String::new(), "empty"),
    ] {
        let faults = refused(&text);
        assert!(faults.contains(wanted), "{text}: {faults}");
    }
}

#[test]
fn files_of_one_domain_are_merged_only_when_somebody_says_so() {
    let file = |key: &str| {
        format!(
            "domain: d\ndescriptors: [{{key: {key}, rate_limit: {{unit: second, requests_per_unit: 1000}}}}]"
        )
    };
    let (a, b) = (file("a"), file("b"));
    let both = |merge| envoy_ratelimit(&[a.as_bytes(), b.as_bytes()], merge, HOLDING);
    let (place, faults) = both(false).expect_err("one domain for each file");
    assert!(place == 1 && faults.to_string().contains("earlier file"), "{faults}");
    assert_eq!(both(true).unwrap_or_else(|(_, faults)| panic!("{faults}")).limits.limits().len(), 2);
    let twice = envoy_ratelimit(&[a.as_bytes(), a.as_bytes()], true, HOLDING).expect_err("`a` twice");
    assert!(twice.1.to_string().contains("`a` is in an earlier file"), "{}", twice.1);
}

#[track_caller]
fn from_limitador(text: &str) -> (LimitSet, Vec<String>) {
    let imported = limitador(&[text.as_bytes()], HOLDING).unwrap_or_else(|(_, faults)| panic!("{faults}"));
    let notes = imported.notes.iter().map(|(_, note)| note.to_string()).collect();
    (printed(&imported), notes)
}

#[test]
fn conditions_choose_requests_and_variables_counters() {
    let (limits, notes) = from_limitador(
        r#"
- id: posts
  namespace: api
  max_value: 5
  seconds: 60
  conditions: ["descriptors[0]['req.method'] == 'POST'"]
  variables: ["descriptors[0]['user_id']"]
- namespace: api
  max_value: 20000
  seconds: 10
  conditions:
  variables:
- {name: old, namespace: api, max_value: 3, seconds: 3600, conditions: ["'GET' == req.method"], variables: ["descriptors[0].user_id"]}
- {namespace: api, max_value: 1, seconds: 7}
- {namespace: api, max_value: 1, seconds: 60, conditions: ["descriptors[0]['a'] != 'b'"]}
- {namespace: api, max_value: 1, seconds: 60, conditions: ["descriptors[1]['a'] == 'b'"]}
- {namespace: api, max_value: 1, seconds: 60, variables: ["size(descriptors)"]}
"#,
    );
    assert_eq!(notes.len(), 4, "{notes:#?}");
    assert!(notes.iter().all(|note| note.contains("not carried over")), "{notes:#?}");
    check(
        &limits,
        &[
            ("api", &[("req.method", "POST"), ("user_id", "u")], &["api", r#"posts ["u"]"#]),
            ("api", &[("req.method", "GET"), ("user_id", "u")], &["api", r#"old ["u"]"#]),
            ("api", &[("req.method", "POST")], &["api"]),
            ("web", &[("req.method", "POST"), ("user_id", "u")], &[]),
        ],
    );
    let rate = |name: &str| limits.get(name).unwrap().rate;
    assert_eq!(rate("posts"), Rate::Per { amount: 5, unit: Unit::Minute });
    assert_eq!(rate("api"), Rate::Per { amount: 2000, unit: Unit::Second });
    assert!(limits.get("api").unwrap().exact().is_none(), "much is held by a drop ratio");
    assert_eq!(limits.get("posts").unwrap().algorithm(), Algorithm::FixedWindow);
}

#[test]
fn a_window_of_no_unit_holds_as_many_at_once() {
    let (limits, _) = from_limitador("[{namespace: api, max_value: 5, seconds: 30}]");
    let limit = &limits.limits()[0];
    assert_eq!((limit.rate, limit.burst), (Rate::Per { amount: 10, unit: Unit::Minute }, Some(5)));
    assert_eq!(limit.algorithm(), Algorithm::TokenBucket);
}

#[test]
fn limits_that_differ_in_nothing_but_the_amount_are_one() {
    let text =
        "[{namespace: api, max_value: 5, seconds: 30}, {name: b, namespace: api, max_value: 6, seconds: 30}]";
    let (_, faults) =
        limitador(&[text.as_bytes()], HOLDING).map(|imported| imported.limits).expect_err("twice");
    assert!(faults.to_string().contains("the same limit as the one on line 1"), "{faults}");
    for (text, wanted) in [
        ("[{namespace: '', max_value: 5, seconds: 30}]", "is empty"),
        ("[{namespace: a, max_value: -5, seconds: 30}]", "max_value"),
        ("[{namespace: a, maxvalue: 5, seconds: 30}]", "did you mean `max_value`"),
        ("namespace: a", "must be a list"),
    ] {
        let (_, faults) =
            limitador(&[text.as_bytes()], HOLDING).map(|imported| imported.limits).expect_err(text);
        assert!(faults.to_string().contains(wanted), "{text}: {faults}");
    }
}
