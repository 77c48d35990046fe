//! The table of the format: what it allows is read, and what it does not is refused, key by key and word by word.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use headworks_core::limits::format::{FILE, Key, LIMIT, ON_SILENCE, OVERRIDE, Value};
use headworks_core::limits::parse;

/// What else a limit must say, so that the key has an effect.
fn beside(key: &str) -> &'static str {
    match key {
        "burst" => "name: a, enforcement: exact, rate: 5/second",
        "algorithm" | "on_store_failure" => "name: a, rate: 5/second, enforcement: exact",
        "max_buckets" | "missing" | "overrides" => "name: a, rate: 5/second, per: [k]",
        "exactly" => "name: a, rate: 5/second, match: {k: v}",
        "name" => "rate: 5/second",
        "rate" => "name: a, enforcement: exact",
        "max_rate_per_agent" => "name: a, rate: 5/second",
        _ => "name: a, rate: 5/second",
    }
}

/// Faults at this path, or in what is below it.
fn faults_at(path: &str, text: &str) -> Vec<String> {
    let faults = parse(text).err();
    let at = |fault: &&headworks_core::limits::Fault| fault.path.starts_with(path);
    faults.iter().flat_map(|faults| faults.listed()).filter(at).map(ToString::to_string).collect()
}

type Write<'w> = &'w dyn Fn(&str) -> String;

/// Feeds values that the table allows, and others, into the text that `write` makes of each.
fn feed(path: &str, key: &Key, write: Write<'_>) {
    for good in allowed(key) {
        let text = write(&good);
        assert_eq!(faults_at(path, &text), [""; 0], "{text}");
        assert!(parse(&text).is_ok(), "{:?}\n{text}", parse(&text));
    }
    for bad in refused(&key.value) {
        let text = write(&bad);
        assert!(!faults_at(path, &text).is_empty(), "{text}");
    }
}

fn allowed(key: &Key) -> Vec<String> {
    match &key.value {
        Value::Text { most, only } => {
            let others: Vec<String> = only.unwrap_or_default().chars().map(|c| format!("'a{c}b'")).collect();
            ["a".to_owned(), "x".repeat(*most)].into_iter().chain(others).collect()
        }
        Value::Word(words) => words().into_iter().map(str::to_owned).collect(),
        Value::Number(range) => vec![range.start().to_string(), range.end().to_string()],
        Value::Guard(range) => vec!["off".into(), hundredths(*range.start()), hundredths(*range.end())],
        Value::Rate { amounts, units } => {
            // A bound has to bound something, and a limit per month or year has to be exact.
            let is_bound = key.name == "max_rate_per_agent";
            let least = if is_bound { 1 } else { *amounts.start() };
            let all = units().into_iter().flat_map(|unit| {
                [format!("{least}/{unit}"), format!("{}/{}", amounts.end(), unit.to_uppercase())]
            });
            all.chain((!is_bound).then(|| "unlimited".to_owned())).collect()
        }
        Value::Duration(units) => {
            units().into_iter().map(|unit| format!("{}{unit}", if unit == "ms" { 1000 } else { 1 })).collect()
        }
        Value::Patterns { key, value } => {
            vec![format!("{{k: \"{}\"}}", "*".repeat(*value)), format!("{{k: v, {}: v}}", "k".repeat(*key))]
        }
        Value::Attributes { count, most } => {
            let keys: Vec<String> = (0..*count).map(|n| format!("k{n}")).collect();
            vec![format!("[{}]", keys.join(", ")), format!("[{}]", "k".repeat(*most))]
        }
        Value::WordOrMap(..) | Value::Map(_) | Value::List(_) => Vec::new(),
    }
}

fn hundredths(number: u32) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

fn refused(value: &Value) -> Vec<String> {
    let mut bad = match value {
        Value::Text { most, only } => {
            let odd = only.map(|_| "'a b'".to_owned());
            ["''".to_owned(), "x".repeat(most + 1)].into_iter().chain(odd).collect()
        }
        Value::Word(words) => words().iter().map(|word| format!("{word}x")).collect(),
        Value::Number(range) => {
            vec![(range.start() - 1).to_string(), (range.end() + 1).to_string(), "1.5".into()]
        }
        Value::Guard(range) => vec![hundredths(range.start() - 1), hundredths(range.end() + 1), "on".into()],
        Value::Rate { amounts, .. } => {
            vec![format!("{}/second", amounts.end() + 1), "5/week".into(), "5".into(), "unlimted".into()]
        }
        Value::Duration(_) => vec!["5".into(), "5d".into(), "25h".into()],
        Value::Patterns { key, value } => vec![
            format!("{{k: {}}}", "v".repeat(value + 1)),
            format!("{{{}: v}}", "k".repeat(key + 1)),
            "text".into(),
        ],
        Value::Attributes { count, most } => {
            let keys: Vec<String> = (0..=*count).map(|n| format!("k{n}")).collect();
            vec![format!("[{}]", keys.join(", ")), format!("[{}]", "k".repeat(most + 1)), "text".into()]
        }
        Value::WordOrMap(..) | Value::Map(_) | Value::List(_) => vec!["{no_such_key: 1}".into()],
    };
    bad.push("~".into());
    bad
}

#[test]
fn every_key_of_a_limit_takes_what_the_table_says_and_nothing_else() {
    for key in LIMIT {
        let write = |value: &str| format!("limits: [{{{}, {}: {value}}}]", beside(key.name), key.name);
        feed(&format!("limits[0].{}", key.name), key, &write);
    }
}

#[test]
fn every_key_of_an_override_takes_what_the_table_says_and_nothing_else() {
    for key in OVERRIDE {
        let beside = if key.name == "rate" {
            "match: {k: v}"
        } else if key.name == "match" {
            "rate: 5/second"
        } else {
            "match: {k: v}, rate: 5/second"
        };
        let long = "k".repeat(128);
        let write = |value: &str| {
            format!(
                "limits: [{{name: a, per: [k, {long}], rate: 5/second, enforcement: exact, overrides: [{{{beside}, {}: {value}}}]}}]",
                key.name
            )
        };
        feed(&format!("limits[0].overrides[0].{}", key.name), key, &write);
    }
}

#[test]
fn what_holds_in_silence_takes_what_the_table_says_and_nothing_else() {
    for key in ON_SILENCE {
        let beside = if key.name == "policy" { "" } else { "policy: hold, " };
        let write = |value: &str| {
            format!("limits: [{{name: a, rate: 5/second, on_silence: {{{beside}{}: {value}}}}}]", key.name)
        };
        feed(&format!("limits[0].on_silence.{}", key.name), key, &write);
    }
    let Some(Value::Word(words)) = ON_SILENCE.iter().find(|key| key.name == "policy").map(|key| &key.value)
    else {
        panic!("no policies")
    };
    for word in words() {
        assert!(
            parse(&format!("limits: [{{name: a, rate: 5/second, on_silence: {word}}}]")).is_ok(),
            "{word}"
        );
    }
}

#[test]
fn a_mapping_without_a_key_that_it_must_have_is_refused() {
    for key in LIMIT.iter().filter(|key| key.required) {
        let others = ["name: a", "rate: 5/second"].into_iter().filter(|other| !other.starts_with(key.name));
        let text = format!("limits: [{{{}}}]", others.collect::<Vec<_>>().join(", "));
        assert!(parse(&text).is_err(), "{text}");
    }
    assert!(parse("{}").is_err() && FILE.iter().any(|key| key.name == "limits" && key.required));
}
