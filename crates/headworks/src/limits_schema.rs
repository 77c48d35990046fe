//! `headworks limits schema`: a JSON Schema of limits files, for editors to complete and check them by.
//!
//! It is made of the table that the parser reads. Values are text as written in the parser's eyes; in an editor's, `5` is a number and
//! `true` a truth value, so the schema allows these too where such text is allowed.

use headworks_core::limits::format::{FILE, Key, Value};
use serde_json::{Map, Value as Json, json};

/// Prints the schema.
pub(crate) fn run() {
    println!("{:#}", schema());
}

/// The schema of a limits file, in the draft of 2020-12.
fn schema() -> Json {
    let mut schema = mapping(FILE);
    let about = "A limits file of Headworks. `headworks limits check` tells more faults than this can.";
    let head = [
        ("$schema", "https://json-schema.org/draft/2020-12/schema"),
        ("title", "Headworks limits"),
        ("description", about),
    ];
    schema.extend(head.map(|(key, text)| (key.to_owned(), Json::from(text))));
    Json::Object(schema)
}

fn mapping(keys: &[Key]) -> Map<String, Json> {
    let properties: Map<String, Json> = keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    object(schema)
}

fn object(json: Json) -> Map<String, Json> {
    if let Json::Object(map) = json { map } else { Map::new() }
}

fn property(key: &Key) -> Json {
    let mut property = object(value(&key.value));
    property.insert("description".to_owned(), key.about.into());
    Json::Object(property)
}

fn value(value: &Value) -> Json {
    match value {
        Value::Text { most, only } => text(*most, *only),
        Value::Word(words) => word(&words()),
        Value::Number(range) => json!({"anyOf": [
            {"type": "integer", "minimum": range.start(), "maximum": range.end()},
            {"type": "string", "pattern": "^-?(0|[1-9][0-9]*)$"},
        ]}),
        Value::Guard(range) => json!({"anyOf": [
            {"type": "number", "minimum": range.start() / 100, "maximum": range.end() / 100},
            {"type": "string", "pattern": r"^([1-9][0-9]*(\.[0-9]{1,2})?|off)$"},
        ]}),
        Value::Rate { units, .. } => json!({"type": "string", "pattern": rate(&units())}),
        Value::Duration(units) => {
            json!({"type": "string", "pattern": format!("^(0|[1-9][0-9]*)({})$", units().join("|"))})
        }
        Value::Patterns { key, value } => json!({
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": key},
            "additionalProperties": text(*value, None),
        }),
        Value::Attributes { count, most } => {
            json!({"type": "array", "maxItems": count, "uniqueItems": true, "items": text(*most, None)})
        }
        Value::WordOrMap(keys, by) => {
            let words = keys.iter().filter(|key| key.name == *by).map(|key| self::value(&key.value));
            json!({"anyOf": words.chain([Json::Object(mapping(keys))]).collect::<Vec<_>>()})
        }
        Value::Map(keys) => Json::Object(mapping(keys)),
        Value::List(keys) => json!({"type": "array", "items": mapping(keys)}),
    }
}

/// Lengths are those of bytes for the parser, and at most as many characters.
fn text(most: usize, only: Option<&str>) -> Json {
    let mut schema = json!({"type": ["string", "number", "boolean"], "minLength": 1, "maxLength": most});
    if let Some(only) = only {
        // A minus stands last, or it would mean a range.
        let others = only.replace('-', "");
        schema["pattern"] = format!("^[A-Za-z0-9{others}-]*$").into();
    }
    schema
}

/// Where the words are truth values, an editor sees no text.
fn word(words: &[&str]) -> Json {
    let truths = ["true", "false"].into_iter().filter(|truth| words.contains(truth));
    let all =
        words.iter().map(|word| Json::from(*word)).chain(truths.map(|truth| Json::from(truth == "true")));
    json!({"enum": all.collect::<Vec<_>>()})
}

/// Words in any case, which schemas have no flag for.
fn rate(units: &[&str]) -> String {
    let units: Vec<String> = units.iter().map(|unit| in_any_case(unit)).collect();
    format!("^({}|(0|[1-9][0-9]{{0,15}})/({}))$", in_any_case("unlimited"), units.join("|"))
}

fn in_any_case(word: &str) -> String {
    word.chars().map(|c| format!("[{}{c}]", c.to_ascii_uppercase())).collect()
}

#[cfg(test)]
mod tests;
