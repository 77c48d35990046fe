//! The schema allows every good file, and refuses what it can of the bad ones.

use std::fs;
use std::path::PathBuf;

use regex::Regex;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::Number;

use super::*;

/// What is wrong with a value, if something is; only with the words that the schema uses.
fn fault(schema: &Json, value: &Json, path: &str) -> Option<String> {
    let rules = schema.as_object().unwrap();
    rules.iter().find_map(|(rule, wanted)| {
        let holds = holds(rule, wanted, value);
        let inner = inner_fault(rules, rule, wanted, value, path);
        inner.or_else(|| (!holds).then(|| format!("{path}: {value} against {rule} {wanted}")))
    })
}

/// Whether a rule about the value itself holds.
fn holds(rule: &str, wanted: &Json, value: &Json) -> bool {
    let characters = value.as_str().map(|text| text.chars().count() as u64);
    match rule {
        "type" => types(wanted).iter().any(|name| is_of(name, value)),
        "enum" => wanted.as_array().unwrap().contains(value),
        "pattern" => {
            value.as_str().is_none_or(|text| Regex::new(wanted.as_str().unwrap()).unwrap().is_match(text))
        }
        "minLength" => characters.is_none_or(|count| count >= wanted.as_u64().unwrap()),
        "maxLength" => characters.is_none_or(|count| count <= wanted.as_u64().unwrap()),
        "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
        "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().unwrap()),
        "uniqueItems" => value
            .as_array()
            .is_none_or(|all| all.iter().enumerate().all(|(at, one)| !all[..at].contains(one))),
        "required" => value.as_object().is_none_or(|map| {
            wanted.as_array().unwrap().iter().all(|key| map.contains_key(key.as_str().unwrap()))
        }),
        "anyOf" => wanted.as_array().unwrap().iter().any(|schema| fault(schema, value, "").is_none()),
        "$schema"
        | "title"
        | "description"
        | "properties"
        | "additionalProperties"
        | "propertyNames"
        | "items" => true,
        other => panic!("a rule that this test does not know: {other}"),
    }
}

/// What is wrong with what the value holds.
fn inner_fault(
    rules: &Map<String, Json>,
    rule: &str,
    wanted: &Json,
    value: &Json,
    path: &str,
) -> Option<String> {
    let map = value.as_object().into_iter().flatten();
    let known = |key: &str| rules.get("properties").is_some_and(|properties| properties.get(key).is_some());
    match rule {
        "properties" => map
            .filter(|(key, _)| known(key))
            .find_map(|(key, value)| fault(&wanted[key], value, &format!("{path}.{key}"))),
        "additionalProperties" => map.filter(|(key, _)| !known(key)).find_map(|(key, value)| match wanted {
            Json::Bool(false) => Some(format!("{path}: no key {key}")),
            schema => fault(schema, value, &format!("{path}.{key}")),
        }),
        "propertyNames" => {
            map.map(|(key, _)| key).find_map(|key| fault(wanted, &Json::from(key.as_str()), path))
        }
        "items" => {
            value.as_array().into_iter().flatten().find_map(|item| fault(wanted, item, &format!("{path}[]")))
        }
        _ => None,
    }
}

fn types(wanted: &Json) -> Vec<&str> {
    let many = wanted.as_array().map(|all| all.iter().filter_map(Json::as_str).collect());
    many.unwrap_or_else(|| vec![wanted.as_str().unwrap()])
}

fn is_of(name: &str, value: &Json) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("a type that this test does not know: {other}"),
    }
}

/// A file as editors see it: by the core schema of YAML 1.2.
fn as_editors_see_it(text: &str) -> Option<Json> {
    let mut open: Vec<(bool, Vec<Json>)> = vec![(false, Vec::new())];
    for event in Parser::new_from_str(text) {
        match event.ok()?.0 {
            Event::SequenceStart(..) => open.push((false, Vec::new())),
            Event::MappingStart(..) => open.push((true, Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => {
                let (is_map, items) = open.pop()?;
                let pairs = || items.chunks(2).map(|pair| (key_text(&pair[0]), pair[1].clone())).collect();
                let closed = if is_map { Json::Object(pairs()) } else { Json::Array(items) };
                open.last_mut()?.1.push(closed);
            }
            Event::Scalar(text, style, ..) => open.last_mut()?.1.push(scalar(&text, style)),
            Event::Alias(_) => return None,
            _ => {}
        }
    }
    open.pop()?.1.pop()
}

fn key_text(key: &Json) -> String {
    key.as_str().map_or_else(|| key.to_string(), str::to_owned)
}

fn scalar(text: &str, style: ScalarStyle) -> Json {
    let number = Regex::new(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$").unwrap();
    match text {
        _ if style != ScalarStyle::Plain => text.into(),
        "" | "~" | "null" => Json::Null,
        "true" | "false" => Json::Bool(text == "true"),
        _ => match text.parse::<i64>() {
            Ok(whole) => whole.into(),
            Err(_) if number.is_match(text) => {
                text.parse().ok().and_then(Number::from_f64).map_or(text.into(), Json::Number)
            }
            Err(_) => text.into(),
        },
    }
}

fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/configs").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let yaml = paths.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    yaml.filter_map(|path| Some((path.clone(), fs::read_to_string(path).ok()?))).collect()
}

#[test]
fn every_good_file_fits_the_schema() {
    let schema = schema();
    let good = files("good");
    assert!(good.len() > 10);
    for (path, text) in good {
        let text = text.trim_start_matches('\u{feff}');
        let value = as_editors_see_it(text).unwrap_or_else(|| panic!("{}", path.display()));
        assert_eq!(fault(&schema, &value, ""), None, "{}", path.display());
    }
}

#[test]
fn what_an_editor_can_find_in_bad_files_it_finds() {
    let schema = schema();
    let wrong = |name: &str, (path, text): &(PathBuf, String)| {
        let is_it = path.file_stem().is_some_and(|stem| stem == name);
        is_it && as_editors_see_it(text).is_some_and(|value| fault(&schema, &value, "").is_some())
    };
    let bad = files("bad");
    for name in [
        "unknown-key",
        "mode-unknown",
        "rate-missing",
        "rate-per-week",
        "cost-zero",
        "per-is-text",
        "name-with-spaces",
        "limits-is-text",
        "match-value-null",
        "surge-guard-too-large",
        "on-silence-misspelt-keys",
        "exactly-in-words",
        "override-without-match-or-rate",
        "per-too-many-keys",
        "hold-unknown-unit",
        "scope-unknown",
        "order-in-words",
    ] {
        assert!(bad.iter().any(|file| wrong(name, file)), "{name}");
    }
}

#[test]
fn every_key_has_a_description_for_editors_to_show() {
    let schema = schema();
    let limit = &schema["properties"]["limits"]["items"]["properties"];
    assert_eq!(limit.as_object().unwrap().len(), headworks_core::limits::format::LIMIT.len());
    for (key, property) in limit.as_object().unwrap() {
        let about = property["description"].as_str().unwrap();
        assert!(about.len() > 20 && about.ends_with('.'), "{key}: {about}");
    }
}
