//! What an event says: its message and its fields, each cut to a length and made legible.

use std::fmt::{self, Debug};

use serde_json::{Map, Value as Json};
use tracing::Event;
use tracing::field::{Field, Visit};

use crate::legible;

/// Most bytes of a value that are shown.
const LONGEST_VALUE: usize = 256;
/// Most bytes of what an event says of itself: the faults of a limits file are told here.
const LONGEST_MESSAGE: usize = 1024;

/// One value, as it was given.
enum Value {
    /// In quotes, where lines of text show it.
    Text(String),
    /// As it shows itself.
    Shown(String),
    Number(Json),
}

/// What an event says.
#[derive(Default)]
pub(super) struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let mut fields = Self::default();
        event.record(&mut fields);
        fields
    }

    /// A message alone.
    pub(super) fn saying(message: &str) -> Self {
        Self { message: legible::cut(message, LONGEST_MESSAGE), others: Vec::new() }
    }

    /// The same for JSON.
    pub(super) fn into_json(self) -> Map<String, Json> {
        let value = |value| match value {
            Value::Text(text) => Json::from(legible::cut(&text, LONGEST_VALUE)),
            Value::Shown(text) => Json::from(text),
            Value::Number(number) => number,
        };
        let message = [("message".to_owned(), Json::from(self.message))];
        let others = self.others.into_iter().map(|(name, given)| (name.to_owned(), value(given)));
        message.into_iter().chain(others).collect()
    }
}

/// As lines of text show them: the message, and then `name=value`.
impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for (name, value) in &self.others {
            match value {
                Value::Text(text) => {
                    write!(f, " {name}={}", legible::cut(&format!("{text:?}"), LONGEST_VALUE))
                }
                Value::Shown(text) => write!(f, " {name}={text}"),
                Value::Number(number) => write!(f, " {name}={number}"),
            }?;
        }
        Ok(())
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let shown = format!("{value:?}");
        match field.name() {
            "message" => self.message = legible::cut(&shown, LONGEST_MESSAGE),
            name => self.others.push((name, Value::Shown(legible::cut(&shown, LONGEST_VALUE)))),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = legible::cut(value, LONGEST_MESSAGE),
            name => self.others.push((name, Value::Text(value.to_owned()))),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.others.push((field.name(), Value::Number(value.into())));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.others.push((field.name(), Value::Number(value.into())));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.others.push((field.name(), Value::Number(value.into())));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.others.push((field.name(), Value::Number(value.into())));
    }
}
