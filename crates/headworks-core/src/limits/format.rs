//! The format of limits files as a table: every key, and what its value may be. The parser knows no other keys, and takes words and
//! ranges from here or from where this takes them, so that what is made of the table says what the parser does.

use std::ops::RangeInclusive;

use super::values::{
    HUNDREDTHS, MAX_KEY, MAX_NAME, MAX_VALUE, MOST, NAME_CHARACTERS, ORDERS, UP_TO_A_MILLION,
};
use super::words::{
    ALGORITHMS, DURATION_UNITS, ENFORCEMENTS, MISSING, MODES, POLICIES, SCOPES, STORE_FAILURES, TRUTHS,
    UNITS, Words,
};
use crate::matching::MAX_PER_KEYS;

/// A key of a mapping.
#[derive(Debug)]
pub struct Key {
    /// The key itself.
    pub name: &'static str,
    /// What it is for, in a sentence.
    pub about: &'static str,
    /// What its value may be.
    pub value: Value,
    /// Whether the mapping must have it.
    pub required: bool,
}

/// What a value may be.
#[derive(Debug)]
pub enum Value {
    /// Text from one byte to so many. Only of these characters beside letters and digits, if any are given.
    Text {
        /// Most bytes.
        most: usize,
        /// Characters allowed besides letters and digits; `None` allows all.
        only: Option<&'static str>,
    },
    /// One of some words.
    Word(fn() -> Vec<&'static str>),
    /// A whole number.
    Number(RangeInclusive<i64>),
    /// A number with at most two decimals, from and to these hundredths, or `off`.
    Guard(RangeInclusive<u32>),
    /// An amount for each unit of time, such as `400/second`, in any case; or `unlimited`.
    Rate {
        /// Amounts.
        amounts: RangeInclusive<i64>,
        /// Units of time.
        units: fn() -> Vec<&'static str>,
    },
    /// A whole number and its unit, such as `60s`.
    Duration(fn() -> Vec<&'static str>),
    /// A mapping of attributes to values, in which `*` stands for any text.
    Patterns {
        /// Most bytes of a key.
        key: usize,
        /// Most bytes of a value.
        value: usize,
    },
    /// A list of attributes.
    Attributes {
        /// Most of them.
        count: usize,
        /// Most bytes of each.
        most: usize,
    },
    /// A mapping, or a word alone that stands for one in which this key has it.
    WordOrMap(&'static [Key], &'static str),
    /// A mapping.
    Map(&'static [Key]),
    /// A list of mappings.
    List(&'static [Key]),
}

fn spelled<T>(words: &Words<T>) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

const fn key(name: &'static str, value: Value, about: &'static str) -> Key {
    Key { name, about, value, required: false }
}

const fn required(name: &'static str, value: Value, about: &'static str) -> Key {
    Key { name, about, value, required: true }
}

const RATE: Value = Value::Rate { amounts: 0..=MOST, units: || spelled(UNITS) };
/// Most zones that a rollout names.
pub const MAX_ZONES: usize = 1000;
const PATTERNS: Value = Value::Patterns { key: MAX_KEY, value: MAX_VALUE };
const MODE: Value = Value::Word(|| spelled(MODES));

/// The document.
pub const FILE: &[Key] = &[
    required(
        "limits",
        Value::List(LIMIT),
        "The limits, in any order; `[]` for none. A request meets every limit whose `match` holds.",
    ),
    key(
        "confirm",
        Value::Text { most: 32, only: Some("") },
        "The digest of these limits, as `headworks limits check` prints it: they are meant as they stand, and no controller holds \
         them back for what they newly drop.",
    ),
];

/// A limit.
pub const LIMIT: &[Key] = &[
    required(
        "name",
        Value::Text { most: MAX_NAME, only: Some(NAME_CHARACTERS) },
        "Unique; what metrics and refusals call the limit.",
    ),
    key(
        "match",
        PATTERNS,
        "Attributes that a request must have, and their values, in which `*` stands for any text. None: every request.",
    ),
    key(
        "exactly",
        Value::Word(|| spelled(TRUTHS)),
        "Whether a request must have the keys of `match`, then those of `per`, in this order, and no others.",
    ),
    key(
        "per",
        Value::Attributes { count: MAX_PER_KEYS, most: MAX_KEY },
        "The keys whose values tell buckets apart: each distinct value has the rate for itself.",
    ),
    required(
        "rate",
        RATE,
        "How much passes: an amount per second, minute, hour or day (exact limits also per month, year), or `unlimited`; `0/second` bans.",
    ),
    key(
        "burst",
        Value::Number(1..=MOST),
        "Most that a limit per minute or longer saves up, or that passes of an exact one at once.",
    ),
    key("cost", Value::Number(UP_TO_A_MILLION), "What a request costs that does not say; by default 1."),
    key("mode", MODE, "enforce (the default); shadow counts what it would drop, and drops nothing; off."),
    key("scope", Value::Word(|| spelled(SCOPES)), "Over what the limit is held."),
    key(
        "order",
        Value::Number(ORDERS),
        "Place among limits that are otherwise equal in rank; lower is earlier.",
    ),
    key(
        "surge_guard",
        Value::Guard(HUNDREDTHS),
        "How far a host may pass its share of a limit per second until a surge is known, as a multiple; by default 1.5.",
    ),
    key(
        "max_rate_per_agent",
        RATE,
        "What one host can plausibly be asked; what it reports beyond does not count.",
    ),
    key(
        "on_silence",
        Value::WordOrMap(ON_SILENCE, "policy"),
        "What holds while nothing is heard from the control plane.",
    ),
    key(
        "max_buckets",
        Value::Number(UP_TO_A_MILLION),
        "Distinct values that are tracked; all others share one bucket. By default 10000.",
    ),
    key(
        "missing",
        Value::Word(|| spelled(MISSING)),
        "What becomes of a request without a key of `per`: skip this limit (the default), count as an empty value, or drop.",
    ),
    key(
        "enforcement",
        Value::Word(|| spelled(ENFORCEMENTS)),
        "drop_ratio (the default) is right on average over many requests; exact counts them one by one.",
    ),
    key(
        "algorithm",
        Value::Word(|| spelled(ALGORITHMS)),
        "How an exact limit counts; by default token_bucket.",
    ),
    key(
        "on_store_failure",
        Value::Word(|| spelled(STORE_FAILURES)),
        "What becomes of requests while the store of an exact limit does not answer: open (the default) lets them pass.",
    ),
    key(
        "overrides",
        Value::List(OVERRIDE),
        "Other rates for some buckets. The most specific holds: one without `*`, then the one with most literal text.",
    ),
    key("rollout", Value::Map(ROLLOUT), "Lets some zones try the limit, or a change of it, first."),
];

/// Zones that try a limit first.
pub const ROLLOUT: &[Key] = &[
    required(
        "zones",
        Value::Attributes { count: MAX_ZONES, most: MAX_NAME },
        "The zones in which the limit holds as it stands.",
    ),
    required(
        "elsewhere",
        Value::WordOrMap(ELSEWHERE, "mode"),
        "What holds in other zones: what differs from the limit, or its mode alone.",
    ),
];

/// What holds where a limit is not tried.
pub const ELSEWHERE: &[Key] = &[
    key("rate", RATE, "How much passes; for limits per second and exact ones."),
    key("mode", MODE, "enforce, shadow, or off."),
];

/// An override of a limit.
pub const OVERRIDE: &[Key] = &[
    required(
        "match",
        PATTERNS,
        "Keys of `per`, and their values, in which `*` stands for any text; all must hold.",
    ),
    key("rate", RATE, "How much passes of each of these buckets; needed unless the mode is off."),
    key("burst", Value::Number(1..=MOST), "The same as for a limit; by default what one of this rate has."),
    key(
        "mode",
        MODE,
        "The same as for a limit; by default the limit's. off: the limit does not concern these buckets.",
    ),
];

/// What holds while nothing is heard.
pub const ON_SILENCE: &[Key] = &[
    required(
        "policy",
        Value::Word(|| spelled(POLICIES)),
        "hold keeps the last ratio for a time and then lets pass; open lets pass at once; closed refuses in the end.",
    ),
    key("for", Value::Duration(|| spelled(DURATION_UNITS)), "How long the last ratio stays, from 1s to 24h."),
];
