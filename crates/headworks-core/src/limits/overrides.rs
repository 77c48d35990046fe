//! Overrides: other rates for some of a limit's buckets, and what may be wrong with them.

use super::fault::{FaultLog, quoted};
use super::fields::Field;
use super::words::{MODES, choice};
use super::{Algorithm, Override, values};
use crate::exact::Overrides;
use crate::units::Rate;

/// Overrides of one limit; more belong into a store of their own, not into a file.
pub const MAX_OVERRIDES: usize = 10_000;
const KEYS: [&str; 4] = ["match", "rate", "burst", "mode"];

/// The overrides of an exact limit with these `per` keys.
pub(super) fn overrides(
    limit: &Field<'_>,
    per: &[String],
    algorithm: Algorithm,
    log: &mut FaultLog,
) -> Vec<Override> {
    let Some(field) = limit.get("overrides") else { return Vec::new() };
    let items = field.list(log, "a list like `[{match: {key: tenant-a}, rate: 100/second}]`");
    if items.len() > MAX_OVERRIDES {
        field.fault(
            log,
            format!("has {} overrides, more than the {MAX_OVERRIDES} allowed: use patterns", items.len()),
        );
        return Vec::new();
    }
    let mut read: Vec<Override> = Vec::with_capacity(items.len());
    for (i, node) in items.iter().enumerate() {
        read.extend(one(&field.item(i, node), per, algorithm, log));
    }
    // Places in the list are told only where each override was read.
    if read.len() == items.len() {
        for (first, second) in Overrides::ties(&read, per) {
            let item = field.item(second, &items[second]);
            let tie = format!("is as specific as overrides[{first}], and both may concern one bucket");
            item.fault(log, format!("{tie}: make one more specific, or remove it"));
        }
    }
    read
}

fn one(field: &Field<'_>, per: &[String], algorithm: Algorithm, log: &mut FaultLog) -> Option<Override> {
    field.map(log, "a mapping like `{match: {key: tenant-a}, rate: 100/second}`")?;
    field.refuse_other_keys(log, &KEYS, &[]);
    let matches = matches(field, per, log);
    let rate = field
        .need(log, "rate", "write one like `rate: 400/second`")
        .and_then(|rate| rate.read(log, "a rate like `400/second`", values::rate));
    let burst = exact_burst(field, rate, algorithm, log);
    let mode = field.get("mode").and_then(|mode| mode.read(log, "a word", |text| choice(text, MODES)));
    Some(Override { matches: matches?, rate: rate?, burst, mode })
}

fn matches(field: &Field<'_>, per: &[String], log: &mut FaultLog) -> Option<Vec<(String, String)>> {
    let field = field.need(log, "match", "say which buckets, like `match: {key: tenant-a}`")?;
    let entries = field.map(log, "a mapping like `{key: tenant-a}`")?;
    if entries.is_empty() {
        field.fault(log, "is empty: say which buckets, like `{key: tenant-a}`, or change the limit itself");
        return None;
    }
    let mut matches = Vec::new();
    for entry in entries {
        let value = field.value(entry);
        if !per.iter().any(|key| *key == *entry.key) {
            let only = "an override chooses among the buckets of its limit, so that none gets two rates";
            let key = quoted(&entry.key);
            log.push(entry.key_at, value.path.to_string(), format!("{key} is not in `per`: {only}"));
        }
        let text = value.read(log, "text", values::pattern)?;
        matches.push((entry.key.to_string(), text.to_owned()));
    }
    matches.sort();
    Some(matches)
}

/// Most that passes of an exact limit at one moment; a faulty rate leaves open what would be wrong with it.
pub(super) fn exact_burst(
    field: &Field<'_>,
    rate: Option<Rate>,
    algorithm: Algorithm,
    log: &mut FaultLog,
) -> Option<u64> {
    let burst = field.get("burst")?;
    let number = burst.read(log, "a number", values::burst)?;
    let without_effect = match rate? {
        _ if algorithm != Algorithm::TokenBucket => "windows, which hold the amount of the rate",
        Rate::Unlimited => "an unlimited limit",
        Rate::Per { amount: 0, .. } => "a ban",
        Rate::Per { .. } => return Some(number),
    };
    burst.fault(log, format!("`burst` has no effect on {without_effect}: remove it"));
    None
}
