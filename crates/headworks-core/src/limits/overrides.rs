//! Overrides: other rates for some of a limit's buckets, and what may be wrong with them.

use super::fault::{FaultLog, quoted};
use super::fields::Field;
use super::format;
use super::rule::{burst, rate};
use super::words::{MODES, choice};
use super::{Exact, Mode, Override, values};
use crate::overrides::ties;
use crate::pattern::Pattern;
use crate::units::Rate;

/// Overrides of one limit; more belong into a store of their own, not into a file.
pub const MAX_OVERRIDES: usize = 10_000;

/// The overrides of a limit with these `per` keys.
pub(super) fn overrides(
    limit: &Field<'_>,
    per: &[String],
    exact: Option<Exact>,
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
        read.extend(one(&field.item(i, node), per, exact, log));
    }
    // Places in the list are told only where each override was read.
    if read.len() == items.len() {
        for (first, second) in ties(&read, per) {
            let item = field.item(second, &items[second]);
            let tie = format!("is as specific as overrides[{first}], and both may concern one bucket");
            item.fault(log, format!("{tie}: make one more specific, or remove it"));
        }
    }
    read
}

fn one(field: &Field<'_>, per: &[String], exact: Option<Exact>, log: &mut FaultLog) -> Option<Override> {
    field.map(log, "a mapping like `{match: {key: tenant-a}, rate: 100/second}`")?;
    field.refuse_other_keys(log, format::OVERRIDE);
    let matches = matches(field, per, log);
    let mode = field.get("mode").and_then(|mode| mode.read(log, "a word", |text| choice(text, MODES)));
    // What is off passes without being counted, whatever its rate.
    let rate = match (mode, field.get("rate")) {
        (Some(Mode::Off), None) => Some(Rate::Unlimited),
        _ => rate(field, exact.is_some(), log),
    };
    let burst = burst(field, rate, exact, log);
    Some(Override { matches: matches?, rate: rate?, burst, mode })
}

fn matches(field: &Field<'_>, per: &[String], log: &mut FaultLog) -> Option<Vec<(String, Pattern)>> {
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
        matches.push((entry.key.to_string(), Pattern::new(text)));
    }
    matches.sort();
    Some(matches)
}
