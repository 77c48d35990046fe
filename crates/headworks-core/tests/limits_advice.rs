//! What a limits file is warned of, though it has no fault.

use headworks_core::limits::review;

/// The warnings of a file that is meant for so many agents, a line each.
fn warnings(text: &str, agents: u32) -> Vec<String> {
    let (_, warnings) = review(text.as_bytes(), agents).unwrap_or_else(|faults| panic!("{faults}"));
    warnings.iter().flat_map(|warnings| warnings.listed()).map(ToString::to_string).collect()
}

fn of_one(limit: &str, agents: u32) -> Vec<String> {
    warnings(&format!("limits:\n  - {{name: a, {limit}}}\n"), agents)
}

#[test]
fn a_small_drop_ratio_is_told_with_its_place_and_what_would_be_right() {
    let warnings = of_one("per: [tenant], rate: 10/minute", 50);
    assert_eq!(
        warnings,
        [
            "2:36: limits[0].rate: 10/minute is little for a drop ratio over 50 agents, which is right on average: of 10 \
          requests in a minute it may be off by 50; `enforcement: exact` counts them one by one"
        ]
    );
}

#[test]
fn what_is_small_depends_on_the_agents_and_on_the_unit() {
    for (limit, agents, is_small) in [
        ("rate: 1/second", 1, true),
        ("rate: 1/second", 10, true),
        ("rate: 5/second", 10, false),
        ("rate: 5/second", 1_000, true),
        ("rate: 500/second", 10, false),
        ("rate: 500/second", 50, false),
        ("rate: 500/second", 100_000, false),
        ("rate: 60/minute", 10, true),
        ("rate: 600/minute", 10, false),
        ("rate: 600/minute", 100, true),
        ("rate: 1000/hour", 50, false),
        ("rate: 100/day", 50, true),
        ("rate: 6/hour", 1, true),
        ("rate: 20/hour", 1, false),
    ] {
        assert_eq!(of_one(limit, agents).len(), usize::from(is_small), "{limit} over {agents} agents");
    }
}

#[test]
fn what_holds_elsewhere_is_advised_on_too() {
    let warnings = of_one("rate: 500/second, rollout: {zones: [a], elsewhere: {rate: 1/second}}", 10);
    assert!(
        warnings.len() == 1 && warnings[0].contains("elsewhere.rate: 1/second is little"),
        "{warnings:?}"
    );
}

#[test]
fn dear_requests_are_fewer() {
    assert!(of_one("rate: 500/second", 10).is_empty());
    assert_eq!(of_one("rate: 500/second, cost: 500", 10).len(), 1);
}

#[test]
fn what_drops_nothing_or_all_has_nothing_to_be_off_by() {
    for limit in [
        "rate: unlimited",
        "rate: 0/second",
        "rate: 1/minute, mode: off",
        "rate: 1/minute, enforcement: exact",
        "rate: unlimited, enforcement: exact",
    ] {
        assert!(of_one(limit, 50).is_empty(), "{limit}");
    }
}

#[test]
fn an_exact_limit_that_is_too_much_for_one_bucket_is_told() {
    assert!(of_one("rate: 50000/second, enforcement: exact", 1).is_empty());
    let text = "limits:\n  - name: a\n    per: [key]\n    rate: 50001/second\n    enforcement: exact\n    overrides:\n      - {match: {key: a}, rate: 5/second}\n      - {match: {key: b}, rate: 6000001/minute}\n";
    let [own, other] = &warnings(text, 1)[..] else { panic!("{:?}", warnings(text, 1)) };
    assert!(own.starts_with("4:11: limits[0].rate: 50001/second is much for an exact count"), "{own}");
    assert!(other.starts_with("8:33: limits[0].overrides[1].rate: 6000001/minute is much"), "{other}");
}

#[test]
fn a_faulty_file_is_told_its_faults_only() {
    let faults =
        review(b"limits:\n  - {name: a, rate: 1/minute}\n  - {name: a, rate: 1/minute}\n", 50).unwrap_err();
    assert_eq!(faults.listed().len(), 1, "{faults}");
}

#[test]
fn a_warning_changes_nothing_about_the_limits() {
    let text = "limits:\n  - {name: a, rate: 1/minute}\n";
    let (reviewed, _) = review(text.as_bytes(), 50).unwrap();
    assert_eq!(Ok(reviewed), headworks_core::limits::parse(text));
}
