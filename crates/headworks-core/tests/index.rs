//! The index of limits: it finds what a walk over all of them finds, and looks at few.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use headworks_core::attributes::Attributes;
use headworks_core::limits::{Limit, LimitSet, parse};
use headworks_core::matching::{Index, Meeting};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

fn index(limits: &[std::sync::Arc<Limit>]) -> Index {
    Index::new(limits.iter().map(|limit| &**limit))
}

fn meets(limit: &Limit, attributes: Attributes<'_>) -> bool {
    limit.meeting(attributes) != Meeting::Unconcerned
}

/// Keys and values are few, so that limits share conditions and requests meet several.
fn key() -> impl Strategy<Value = &'static str> {
    select(vec!["service", "caller", "path", "k", "l", "m"])
}

fn value() -> impl Strategy<Value = &'static str> {
    select(vec!["", "a", "b", "ab", "abc", "abcd", "/api", "/api/v1", "/api/v1/pay", "é", "*"])
}

fn pattern() -> impl Strategy<Value = &'static str> {
    let texts = vec![
        "a",
        "b",
        "ab",
        "/api/v1/pay",
        "a*",
        "ab*",
        "abc*",
        "/api/*",
        "/api/v1/*",
        "*",
        "*b",
        "é*",
        "/*/v1*",
    ];
    select(texts)
}

fn limit() -> impl Strategy<Value = String> {
    let missing = select(vec!["skip", "empty", "drop"]);
    let matches = btree_map(key(), pattern(), 0..3);
    (matches, proptest::option::of(key()), missing, any::<bool>(), -2..2_i32, any::<bool>()).prop_map(
        |(matches, per, missing, exactly, order, is_exact)| {
            let per = per.filter(|key| matches.get(key).is_none_or(|value| value.contains('*')));
            let exactly = exactly && !(matches.is_empty() && per.is_none());
            let pairs: Vec<String> = matches.iter().map(|(k, v)| format!("{k}: {v:?}")).collect();
            let mut text = format!("rate: 5/second, order: {order}, match: {{{}}}", pairs.join(", "));
            if let Some(per) = per {
                text += &format!(", per: [{per}]");
                if !exactly {
                    text += &format!(", missing: {missing}");
                }
            }
            let exact = if is_exact { ", enforcement: exact" } else { "" };
            format!("{text}, exactly: {exactly}{exact}")
        },
    )
}

fn file(limits: &[(usize, String)]) -> LimitSet {
    let lines = limits.iter().map(|(name, limit)| format!("  - {{name: n{name}, {limit}}}\n"));
    let text = format!("limits:\n{}", lines.collect::<String>());
    parse(&text).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

fn request() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    btree_map(key(), value(), 0..5).prop_map(|pairs| pairs.into_iter().collect::<Vec<_>>()).prop_shuffle()
}

proptest! {
    #[test]
    fn the_index_finds_what_a_walk_finds_in_the_same_order(
        limits in vec(limit(), 1..40),
        requests in vec(request(), 1..20),
        turn in 0..40_usize,
    ) {
        let mut limits: Vec<(usize, String)> = limits.into_iter().enumerate().collect();
        let set = file(&limits);
        let all = set.limits();
        let index = index(all);
        let turn = turn.checked_rem(limits.len()).unwrap_or(0);
        limits.rotate_left(turn);
        let turned = file(&limits);
        prop_assert_eq!(turned.digest(), set.digest());
        for request in &requests {
            let attributes = Attributes::new(request);
            let walked: Vec<usize> = (0..all.len()).filter(|place| meets(&all[*place], attributes)).collect();
            let candidates: Vec<usize> = index.candidates(attributes).collect();
            prop_assert!(candidates.is_sorted_by(|a, b| a < b), "{:?}", candidates);
            let found: Vec<usize> = candidates.into_iter().filter(|place| meets(&all[*place], attributes)).collect();
            prop_assert_eq!(&found, &walked, "{:?}", request);
            let of_turned = self::index(turned.limits());
            let turned: Vec<&str> = of_turned.candidates(attributes).map(|place| &*turned.limits()[place])
                .filter(|limit| meets(limit, attributes)).map(|limit| &*limit.name).collect();
            let names: Vec<&str> = found.iter().map(|place| &*all[*place].name).collect();
            prop_assert_eq!(turned, names);
        }
    }
}

/// How many limits are looked at for a request that meets one of so many.
fn looked_at(limits: usize, of: impl Fn(usize) -> String, request: &[(&str, &str)]) -> usize {
    let text: String =
        (0..limits).map(|n| format!("  - {{name: n{n}, rate: 5/second, {}}}\n", of(n))).collect();
    let set = parse(&format!("limits:\n{text}")).unwrap();
    let met: Vec<usize> = index(set.limits()).candidates(Attributes::new(request)).collect();
    let attributes = Attributes::new(request);
    assert!(met.iter().any(|place| meets(&set.limits()[*place], attributes)), "met none of {limits}");
    met.len()
}

#[test]
fn limits_that_do_not_concern_a_request_are_not_looked_at() {
    let request = [("service", "s7"), ("path", "/svc/00007/pay"), ("caller", "web")];
    for limits in [10, 10_000] {
        assert_eq!(looked_at(limits, |n| format!("match: {{service: s{n}, caller: web}}"), &request), 1);
        assert_eq!(
            looked_at(limits, |n| format!("match: {{caller: web, service: s{n}, path: \"/*\"}}"), &request),
            1
        );
        assert_eq!(looked_at(limits, |n| format!("match: {{path: \"/svc/{n:05}/*\"}}"), &request), 1);
        let keys = |n| if n == 7 { "per: [service]".to_owned() } else { format!("per: [k{n}]") };
        assert_eq!(looked_at(limits, keys, &request), 1);
    }
}

#[test]
fn beginnings_of_very_different_lengths_are_found_with_few_looks() {
    let of = |n: usize| format!("match: {{path: \"{n:05}{}*\"}}", "x".repeat(n % 80));
    assert_eq!(looked_at(10_000, of, &[("path", "00007xxxxxxx/pay")]), 1);
}

#[test]
fn a_key_named_twice_makes_no_limit_count_twice() {
    let set = parse("limits: [{name: a, rate: 1/second, match: {k: a}}]").unwrap();
    let many: Vec<_> =
        (0..20).map(|n| format!("{{name: n{n}, rate: 1/second, match: {{k: v{n}}}}}")).collect();
    let many = parse(&format!("limits: [{}]", many.join(", "))).unwrap();
    for set in [set, many] {
        let twice = [("k", "v7"), ("k", "v7"), ("k", "a")];
        let met: Vec<usize> = index(set.limits()).candidates(Attributes::new(&twice)).collect();
        assert_eq!(met.len(), 1);
    }
}
