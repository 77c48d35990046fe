//! Limits files made to exhaust whoever reads them, and files so large that they must be refused or read fast.

use std::fmt::Write as _;

use headworks_core::limits::{Faults, parse, parse_bytes};

/// The faults of a text that must be refused, and soon: a debug build on a busy machine stays well below this.
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the time taken is what is tested")]
fn refused_at_once(text: &str) -> Faults {
    let begun = std::time::Instant::now();
    let faults = parse(text).expect_err("a hostile text is refused");
    let taken = begun.elapsed();
    assert!(taken.as_millis() < 1000, "took {taken:?}: {faults}");
    faults
}

fn says(faults: &Faults, part: &str) -> bool {
    faults.listed().iter().any(|fault| fault.message.contains(part))
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (level, below) in ('b'..='i').zip('a'..) {
        let aliases = vec![format!("*{below}"); 9].join(", ");
        writeln!(bomb, "{level}: &{level} [{aliases}]").unwrap();
    }
    let faults = refused_at_once(&bomb);
    assert!(says(&faults, "anchors are not supported") && says(&faults, "aliases are not supported"));
}

#[test]
fn a_hundred_thousand_aliases_cost_one_line() {
    let aliases = "*a, ".repeat(100_000);
    let faults = parse(&format!("limits: [&a x, {aliases}]")).unwrap_err();
    assert_eq!(faults.listed().len(), 100);
    assert!(faults.more() >= 99_901, "{}", faults.more());
    assert!(faults.to_string().ends_with(&format!("\nand {} more", faults.more())));
}

#[test]
fn deep_nesting_is_refused_without_using_up_the_stack() {
    const DEEP: usize = 10_000;
    let indented =
        |line: &str| -> String { (0..1000).map(|i| format!("{}{line}\n", " ".repeat(i))).collect() };
    for text in [
        "[".repeat(DEEP),
        "{a: ".repeat(DEEP),
        "- ".repeat(DEEP),
        "? ".repeat(DEEP),
        "[a: ".repeat(DEEP),
        indented("a:"),
        indented("-"),
    ] {
        let faults = refused_at_once(&text);
        assert!(says(&faults, "nested more than 16 deep") || says(&faults, "recursion limit"), "{faults}");
    }
}

#[test]
fn odd_repetitions_are_refused_at_once() {
    for unit in
        ["!a ", "&a ", "? ", ": ", "%TAG ! !\n", "\"", "'", "---\n", "|\n", "a: &", "{", "]", "#", "\t", "a:"]
    {
        refused_at_once(&unit.repeat(50_000));
    }
}

#[test]
fn more_values_than_any_file_needs_are_refused_with_the_cap() {
    let faults = parse(&format!("limits: [{}]", "[],".repeat(1_000_001))).unwrap_err();
    assert!(says(&faults, "more than 1000000 "), "{faults}");
}

#[test]
fn a_file_too_large_is_refused_with_the_cap() {
    let faults = refused_at_once(&"#".repeat((16 << 20) + 1));
    assert!(says(&faults, "more than the 16777216 allowed"), "{faults}");
}

#[test]
fn a_hundred_thousand_limits_are_read_and_one_more_is_refused() {
    let file = |count: usize| -> String {
        let limits = (0..count).map(|i| format!("- {{name: n{i}, match: {{a: v{i}}}, rate: 5/second}}\n"));
        format!("limits:\n{}", limits.collect::<String>())
    };
    assert_eq!(parse(&file(100_000)).unwrap().limits().len(), 100_000);
    let faults = parse(&file(100_001)).unwrap_err();
    assert!(says(&faults, "more than 100000 limits"), "{faults}");
}

#[test]
fn a_quarter_of_a_million_rules_are_refused_with_a_cap() {
    let line = |i: usize| format!("- {{name: n{i}, match: {{a: v{i}}}, rate: 5/second}}\n");
    let file = (0..250_000).map(line).collect::<String>();
    let longer = file.replace(", rate", "                                     , rate");
    for (file, cap) in
        [(file, "more than 1000000 keys and values"), (longer, "more than the 16777216 allowed")]
    {
        let faults = parse(&format!("limits:\n{file}")).unwrap_err();
        assert!(says(&faults, cap), "{faults}");
    }
}

#[test]
fn ten_thousand_limits_with_twenty_thousand_overrides_are_read() {
    let limit = |i: usize| {
        let others =
            format!("{{match: {{k: a{i}}}, rate: 6/second}}, {{match: {{k: \"b{i}*\"}}, rate: 7/hour}}");
        format!("- {{name: n{i}, match: {{a: v{i}}}, per: [k], rate: 5/second, overrides: [{others}]}}\n")
    };
    let set = parse(&format!("limits:\n{}", (0..10_000).map(limit).collect::<String>())).unwrap();
    assert_eq!(set.for_all_buckets().count(), 30_000);
}

#[test]
fn what_follows_a_nul_character_is_not_lost() {
    let faults = parse("limits: []\n\0\nbroken").unwrap_err();
    assert_eq!((faults.listed()[0].line, faults.listed()[0].column), (2, 1));
}

#[test]
fn text_that_is_not_utf_8_is_told_where() {
    let faults = parse_bytes(b"limits:\n  - caf\xff").unwrap_err();
    assert_eq!(faults.to_string(), "2:8: not UTF-8: save the file as UTF-8");
}
