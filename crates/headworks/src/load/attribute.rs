//! An attribute of the requests, as a flag gives it.

use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What RFC 3986 calls unreserved stays as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(super) name: String,
    pub(super) value: String,
}

/// Text that is no attribute.
#[derive(Debug, thiserror::Error)]
#[error("write NAME=VALUE, such as service=checkout")]
pub(crate) struct NoAttribute;

impl FromStr for Attribute {
    type Err = NoAttribute;

    fn from_str(text: &str) -> Result<Self, NoAttribute> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err(NoAttribute),
        }
    }
}

impl Attribute {
    /// Name and value.
    pub(crate) fn pair(&self) -> (&str, &str) {
        (&self.name, &self.value)
    }

    /// As a parameter of a query.
    pub(super) fn encoded(&self) -> String {
        let [name, value] = [&self.name, &self.value].map(|text| utf8_percent_encode(text, ENCODED));
        format!("{name}={value}")
    }
}
