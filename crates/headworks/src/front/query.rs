//! Queries: from the text after `?` to the attributes and the cost of a request. Pure.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The most attributes of one request, `key` among them: a decision looks at each, and duplicates are found in pairs.
pub(super) const MAX_ATTRIBUTES: usize = 32;
/// The longest name of an attribute; names are written by programmers and stay short.
pub(super) const MAX_NAME_BYTES: usize = 128;
/// The longest value; every distinct one may cost a bucket that holds it, on each tier.
pub(super) const MAX_VALUE_BYTES: usize = 1024;
/// The highest cost of one request: more is a mistake, and would weigh on its limit for minutes.
pub(super) const MAX_COST: u32 = 1_000_000;

/// What a request asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query<'q> {
    /// Name and value, decoded; no name comes twice.
    attributes: Vec<(Cow<'q, str>, Cow<'q, str>)>,
    /// What the request costs, if it says.
    pub(super) cost: Option<u32>,
}

/// What is wrong with a query, and what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueryError {
    #[error("`key` is missing: ask /allow?key=K, where K names the caller or the thing to limit")]
    NoKey,
    #[error("`key` is empty: give it a value, as in /allow?key=K")]
    EmptyKey,
    #[error("an attribute has no name: write name=value")]
    NoName,
    #[error("`{0}` is given twice: give each attribute once")]
    Twice(String),
    #[error("a % that two hexadecimal digits do not follow: write a plain % as %25")]
    BrokenEscape,
    #[error("a name or value is not UTF-8 once decoded: percent-encode the bytes of UTF-8 text")]
    NotUtf8,
    #[error("more than {MAX_ATTRIBUTES} attributes: send those that limits match on")]
    TooMany,
    #[error("the name of an attribute is longer than {MAX_NAME_BYTES} bytes: shorten it")]
    LongName,
    #[error("the value of `{0}` is longer than {MAX_VALUE_BYTES} bytes: shorten it, or send a hash of it")]
    LongValue(String),
    #[error(
        "`n` is no whole number from 0 to {MAX_COST}: it is the cost of the request, 1 for an ordinary one, and 0 only looks"
    )]
    BadCost,
}

impl<'q> Query<'q> {
    /// Reads the text after `?`, of a request that has no other attributes.
    pub(super) fn parse(text: &'q str) -> Result<Self, QueryError> {
        let query = Self::read(text)?;
        match query.attributes.iter().find(|(name, _)| name == "key") {
            None => Err(QueryError::NoKey),
            Some((_, value)) if value.is_empty() => Err(QueryError::EmptyKey),
            Some(_) => Ok(query),
        }
    }

    /// The same of a request that may have others: it need not name a key.
    pub(super) fn read(text: &'q str) -> Result<Self, QueryError> {
        let mut query = Query { attributes: Vec::with_capacity(4), cost: None };
        for parameter in text.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            query.add(decode(name)?, decode(value)?)?;
        }
        Ok(query)
    }

    /// Adds an attribute that the query does not name.
    pub(super) fn complete(&mut self, name: &'q str, value: String) -> Result<(), QueryError> {
        if self.attributes.iter().any(|(other, _)| other == name) {
            return Ok(());
        }
        self.add(Cow::Borrowed(name), Cow::Owned(value))
    }

    fn add(&mut self, name: Cow<'q, str>, value: Cow<'q, str>) -> Result<(), QueryError> {
        if name == "n" {
            let first = self.cost.replace(cost(&value)?).is_none();
            return if first { Ok(()) } else { Err(QueryError::Twice(name.into_owned())) };
        }
        if name.is_empty() {
            return Err(QueryError::NoName);
        }
        if name.len() > MAX_NAME_BYTES {
            return Err(QueryError::LongName);
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(QueryError::LongValue(name.into_owned()));
        }
        if self.attributes.iter().any(|(other, _)| *other == name) {
            return Err(QueryError::Twice(name.into_owned()));
        }
        if self.attributes.len() == MAX_ATTRIBUTES {
            return Err(QueryError::TooMany);
        }
        self.attributes.push((name, value));
        Ok(())
    }

    /// Name and value of each attribute, in the order given.
    pub(super) fn pairs(&self) -> Vec<(&str, &str)> {
        self.attributes.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

/// Digits only: what else Rust takes for a number (`+5`) is a slip in a query.
fn cost(text: &str) -> Result<u32, QueryError> {
    let number = if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None };
    number.filter(|n| *n <= MAX_COST).ok_or(QueryError::BadCost)
}

/// Decodes one name or value: `+` is a space, then escapes become bytes. Borrows where nothing is encoded.
fn decode(text: &str) -> Result<Cow<'_, str>, QueryError> {
    if !text.bytes().any(|b| matches!(b, b'%' | b'+')) {
        return Ok(Cow::Borrowed(text));
    }
    if !has_whole_escapes(text) {
        return Err(QueryError::BrokenEscape);
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().map_err(|_| QueryError::NotUtf8)?;
    Ok(Cow::Owned(decoded.into_owned()))
}

/// The decoder would leave a broken escape as it stands; a request that means something else than it says is refused.
fn has_whole_escapes(text: &str) -> bool {
    let is_hex = |b: Option<&u8>| b.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    let mut escapes = bytes.iter().enumerate().filter(|(_, b)| **b == b'%');
    escapes.all(|(at, _)| is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let query = Query::parse(text).unwrap();
        query.pairs().into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    fn error(text: &str) -> QueryError {
        Query::parse(text).unwrap_err()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn every_parameter_but_n_is_an_attribute() {
        assert_eq!(pairs("key=K&n=3&service=checkout"), [pair("key", "K"), pair("service", "checkout")]);
        assert_eq!(Query::parse("key=K&n=3").unwrap().cost, Some(3));
        assert_eq!(Query::parse("key=K").unwrap().cost, None);
    }

    #[test]
    fn decodes_exactly_once_and_takes_plus_for_a_space() {
        assert_eq!(pairs("key=a%20b+c")[0].1, "a b c");
        assert_eq!(pairs("key=a%2Bb")[0].1, "a+b");
        assert_eq!(pairs("key=%2541")[0].1, "%41");
        assert_eq!(pairs("key=%E6%9D%B1%e4%ba%ac")[0].1, "東京");
        assert_eq!(pairs("key=a&caf%C3%A9=x")[1], pair("café", "x"));
        assert_eq!(pairs("key=a%26b%3Dc=d")[0].1, "a&b=c=d");
    }

    #[test]
    fn keeps_what_looks_alike_apart() {
        assert_eq!(pairs("key=admin%E2%80%8B")[0].1, "admin\u{200b}");
        assert_eq!(pairs("key=cafe%CC%81")[0].1, "cafe\u{301}");
        assert_eq!(pairs("key=Admin")[0].1, "Admin");
        assert_eq!(pairs("key=x%00%0D%0A")[0].1, "x\0\r\n");
    }

    #[test]
    fn refuses_bytes_that_are_not_utf8() {
        assert_eq!(error("key=%FF"), QueryError::NotUtf8);
        assert_eq!(error("key=%C3"), QueryError::NotUtf8);
        assert_eq!(error("key=a&%FF=b"), QueryError::NotUtf8);
    }

    #[test]
    fn refuses_broken_escapes() {
        for text in ["key=%", "key=%2", "key=%zz", "key=100%", "key=a&%=1", "key=%+1", "key=%2+"] {
            assert_eq!(error(text), QueryError::BrokenEscape, "{text}");
        }
    }

    #[test]
    fn wants_a_key_that_says_something() {
        assert_eq!(error(""), QueryError::NoKey);
        assert_eq!(error("Key=a"), QueryError::NoKey);
        assert_eq!(error("key"), QueryError::EmptyKey);
        assert_eq!(error("key=&a=b"), QueryError::EmptyKey);
        assert_eq!(error("key=a&=b"), QueryError::NoName);
    }

    #[test]
    fn passes_over_empty_parameters() {
        assert_eq!(pairs("&key=a&&b=&"), [pair("key", "a"), pair("b", "")]);
    }

    #[test]
    fn refuses_what_is_given_twice_however_it_is_written() {
        assert_eq!(error("key=a&key=a"), QueryError::Twice("key".to_owned()));
        assert_eq!(error("key=a&b=1&%62=2"), QueryError::Twice("b".to_owned()));
        assert_eq!(error("key=a&n=1&n=1"), QueryError::Twice("n".to_owned()));
    }

    #[test]
    fn takes_costs_up_to_a_million_and_0_to_look() {
        assert_eq!(Query::parse("key=a&n=0").unwrap().cost, Some(0));
        assert_eq!(Query::parse("key=a&n=1000000").unwrap().cost, Some(1_000_000));
        for n in ["1000001", "-1", "+1", "%2B1", "1.5", "1e3", "", "ten", "99999999999999999999", "%31%20"] {
            assert_eq!(error(&format!("key=a&n={n}")), QueryError::BadCost, "{n}");
        }
    }

    #[test]
    fn holds_attributes_to_their_bounds() {
        let with = |count: usize| (1..count).fold("key=a".to_owned(), |text, i| format!("{text}&a{i}=v"));
        assert_eq!(pairs(&with(MAX_ATTRIBUTES)).len(), 32);
        assert_eq!(error(&with(MAX_ATTRIBUTES + 1)), QueryError::TooMany);
        assert!(Query::parse(&format!("key=a&{}=v", "x".repeat(MAX_NAME_BYTES))).is_ok());
        assert_eq!(error(&format!("key=a&{}=v", "x".repeat(MAX_NAME_BYTES + 1))), QueryError::LongName);
        assert!(Query::parse(&format!("key={}", "x".repeat(MAX_VALUE_BYTES))).is_ok());
        let long = format!("key={}", "x".repeat(MAX_VALUE_BYTES + 1));
        assert_eq!(error(&long), QueryError::LongValue("key".to_owned()));
    }

    #[test]
    fn counts_bytes_after_decoding() {
        assert!(Query::parse(&format!("key={}", "%41".repeat(MAX_VALUE_BYTES))).is_ok());
    }
}
