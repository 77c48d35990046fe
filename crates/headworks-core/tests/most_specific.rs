//! Which limit and which rate a request meets: the most specific one, whatever the order of the file.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use headworks_core::attributes::Attributes;
use headworks_core::explain::explain;
use headworks_core::limits::parse;

/// The limits, in both orders.
fn files(limits: &[&str]) -> [String; 2] {
    let lines = |limits: &mut dyn Iterator<Item = &&str>| {
        limits.map(|limit| format!("  - {limit}\n")).collect::<String>()
    };
    [lines(&mut limits.iter()), lines(&mut limits.iter().rev())].map(|lines| format!("limits:\n{lines}"))
}

/// The rates that a request meets, in pipeline order.
fn rates(file: &str, request: &[(&str, &str)]) -> Vec<String> {
    let set = parse(file).unwrap_or_else(|faults| panic!("{faults}\n{file}"));
    let explanation = explain(&set, Attributes::new(request), 0);
    explanation.met.iter().map(|met| met.limit.rate.to_string()).collect()
}

#[test]
fn the_most_specific_holds_at_each_depth_and_for_exactly_these_keys_in_this_order() {
    let limits = [
        "{name: ip, per: [ip], exactly: true, rate: 10/second, overrides: [{match: {ip: 203.0.113.5}, rate: 3/second}]}",
        "{name: t1, match: {tenant: t1}, exactly: true, rate: 100/second}",
        "{name: route, match: {tenant: t1}, per: [route], exactly: true, rate: 20/second, overrides: [{match: {route: /pay}, rate: 2/second}]}",
        "{name: zone, match: {tenant: \"*\"}, per: [tenant, zone], exactly: true, rate: 7/second}",
    ];
    for file in files(&limits) {
        for (request, rates) in [
            (&[("ip", "203.0.113.6")][..], &["10/second"][..]),
            (&[("ip", "203.0.113.5")], &["3/second"]),
            (&[("IP", "203.0.113.6")], &[]),
            (&[("tenant", "t1")], &["100/second"]),
            (&[("tenant", "t2")], &[]),
            (&[("tenant", "t1"), ("route", "/x")], &["20/second"]),
            (&[("tenant", "t1"), ("route", "/pay")], &["2/second"]),
            (&[("route", "/pay"), ("tenant", "t1")], &[]),
            (&[("tenant", "t1"), ("route", "/x"), ("extra", "")], &[]),
            (&[("tenant", "t2"), ("zone", "eu")], &["7/second"]),
            (&[("route", "/pay")], &[]),
        ] {
            assert_eq!(self::rates(&file, request), rates, "{request:?}");
        }
    }
}

#[test]
fn of_overlapping_patterns_the_longer_one_holds_also_below_another_key() {
    let overrides = [
        "{match: {path: \"/api/*\"}, rate: 50/second}",
        "{match: {path: \"/api/v1/*\"}, rate: 10/second}",
        "{match: {path: /api/v1/pay}, rate: 2/second}",
    ];
    for nested in [false, true] {
        for order in [[0, 1, 2], [2, 1, 0]] {
            let overrides = order.map(|place| overrides[place]).join(", ");
            let tenant = if nested { "match: {tenant: t1}, " } else { "" };
            let file = format!(
                "limits: [{{name: a, {tenant}per: [path], rate: 100/second, overrides: [{overrides}]}}]"
            );
            for (path, rate) in [
                ("/api/v1/pay", "2/second"),
                ("/api/v1/list", "10/second"),
                ("/api/x", "50/second"),
                ("/api/", "50/second"),
                ("/api/*", "50/second"),
                ("/apix", "100/second"),
            ] {
                assert_eq!(rates(&file, &[("tenant", "t1"), ("path", path)]), [rate], "{path}");
            }
        }
    }
}

#[test]
fn values_below_a_pattern_share_a_bucket_unless_per_tells_them_apart() {
    let buckets = |per: &str, path: &str| {
        let set = parse(&format!("limits: [{{name: a, match: {{path: \"/api/*\"}}, {per}rate: 5/second}}]"))
            .unwrap();
        explain(&set, Attributes::new(&[("path", path)]), 0).met[0].values.clone()
    };
    assert_eq!(buckets("", "/api/a"), buckets("", "/api/b"));
    assert_ne!(buckets("per: [path], ", "/api/a"), buckets("per: [path], ", "/api/b"));
}

#[test]
fn values_compare_byte_by_byte_in_patterns_and_overrides_too() {
    let file = "limits:
  - {name: admin, match: {user: admin}, rate: 1/second}
  - {name: cafe, match: {shop: \"café*\"}, rate: 2/second}
  - {name: tokyo, match: {city: 東京}, rate: 3/second}
  - {name: country, per: [country], rate: 4/second, overrides: [{match: {country: NO}, rate: 5/second}]}
  - {name: code, per: [code], rate: 6/second, overrides: [{match: {code: 007}, rate: 7/second}]}
";
    for (key, value, rates) in [
        ("user", "admin", &["1/second"][..]),
        ("user", "Admin", &[]),
        ("user", "admin\u{200b}", &[]),
        ("shop", "café du monde", &["2/second"]),
        ("shop", "cafe\u{301}", &[]),
        ("city", "東京", &["3/second"]),
        ("country", "NO", &["5/second"]),
        ("country", "false", &["4/second"]),
        ("code", "007", &["7/second"]),
        ("code", "7", &["6/second"]),
    ] {
        assert_eq!(self::rates(file, &[(key, value)]), rates, "{value}");
    }
    let marked = format!("\u{feff}{}", file.replace('\n', "\r\n"));
    assert_eq!(parse(&marked).unwrap().digest(), parse(file).unwrap().digest());
}
