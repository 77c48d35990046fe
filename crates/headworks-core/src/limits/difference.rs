//! What differs between two sets of limits, field by field.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::values::{spelled_duration, spelled_guard};
use super::words::{ALGORITHMS, MISSING, MODES, POLICIES, STORE_FAILURES, word};
use super::{Limit, LimitSet, Mode, OnSilence, Override, Rollout};
use crate::pattern::Pattern;

/// What is written where a limit does not say.
const NOTHING: &str = "none";

/// How one limit differs between two sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub limit: Arc<str>,
    /// What became of it.
    pub kind: DifferenceKind,
}

/// What became of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// Only the new set has it.
    Added,
    /// Only the old set has it.
    Removed,
    /// Both have it, and these fields differ.
    Changed(Vec<FieldDifference>),
}

/// One field of a limit, or one of its overrides, that differs. Both are spelled as in limits files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDifference {
    /// The field.
    pub field: String,
    /// What it was.
    pub old: String,
    /// What it is.
    pub new: String,
}

impl Mode {
    /// The mode as limits files write it.
    pub fn name(self) -> &'static str {
        word(self, MODES)
    }
}

/// What differs between two sets: limits that are added or changed in the order of the new pipeline, then those removed.
/// Nothing for sets that are equal.
pub fn difference(old: &LimitSet, new: &LimitSet) -> Vec<Difference> {
    let added_or_changed = new.limits().iter().filter_map(|limit| {
        let kind = match old.get(&limit.name) {
            None => DifferenceKind::Added,
            Some(before) if before == limit => return None,
            Some(before) => DifferenceKind::Changed(changed_fields(before, limit)),
        };
        Some(Difference { limit: limit.name.clone(), kind })
    });
    let removed = old.limits().iter().filter(|limit| new.get(&limit.name).is_none());
    let removed =
        removed.map(|limit| Difference { limit: limit.name.clone(), kind: DifferenceKind::Removed });
    added_or_changed.chain(removed).collect()
}

fn changed_fields(old: &Limit, new: &Limit) -> Vec<FieldDifference> {
    let fields = fields(old).into_iter().zip(fields(new));
    let fields = fields.map(|((field, old), (_, new))| (field.to_owned(), old, new));
    let (before, after) = (overrides(old), overrides(new));
    let matches = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    let spelled = |all: &BTreeMap<String, String>, key: &str| {
        all.get(key).cloned().unwrap_or_else(|| NOTHING.to_owned())
    };
    let overrides =
        matches.map(|key| (format!("override {key}"), spelled(&before, key), spelled(&after, key)));
    let differing = fields.chain(overrides).filter(|(_, old, new)| old != new);
    differing.map(|(field, old, new)| FieldDifference { field, old, new }).collect()
}

/// Every field but the name and the overrides, always in this order. Taken apart whole, so that none that is added later can be
/// forgotten here.
fn fields(limit: &Limit) -> Vec<(&'static str, String)> {
    let Limit {
        name: _,
        matches,
        exactly,
        per,
        rate,
        cost,
        mode,
        order,
        on_silence,
        max_buckets,
        missing,
        burst,
        surge_guard,
        max_rate_per_agent,
        scope,
        enforcement: _,
        overrides: _,
        rollout,
    } = limit;
    let exact = limit.exact();
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| NOTHING.to_owned());
    vec![
        ("match", pairs(matches)),
        ("exactly", exactly.to_string()),
        ("per", format!("[{}]", per.join(", "))),
        ("rate", rate.to_string()),
        ("burst", or_nothing(burst.map(|burst| burst.to_string()))),
        ("cost", cost.to_string()),
        ("mode", mode.name().to_owned()),
        ("scope", scope.name().to_owned()),
        ("order", order.to_string()),
        ("surge_guard", spelled_guard(*surge_guard)),
        ("max_rate_per_agent", or_nothing(max_rate_per_agent.map(|rate| rate.to_string()))),
        ("on_silence", spelled_silence(*on_silence)),
        ("max_buckets", max_buckets.to_string()),
        ("missing", word(*missing, MISSING).to_owned()),
        ("enforcement", if exact.is_some() { "exact" } else { "drop_ratio" }.to_owned()),
        ("algorithm", or_nothing(exact.map(|exact| word(exact.algorithm, ALGORITHMS).to_owned()))),
        (
            "on_store_failure",
            or_nothing(exact.map(|exact| word(exact.on_store_failure, STORE_FAILURES).to_owned())),
        ),
        ("rollout", or_nothing(rollout.as_ref().map(spelled_rollout))),
    ]
}

fn spelled_rollout(rollout: &Rollout) -> String {
    let rate = rollout.rate.map(|rate| rate.to_string());
    let mode = rollout.mode.map(|mode| mode.name().to_owned());
    let elsewhere: Vec<String> = rate.into_iter().chain(mode).collect();
    format!("in {}, elsewhere {}", rollout.zones.join(" "), elsewhere.join(" "))
}

fn spelled_silence(on_silence: OnSilence) -> String {
    let policy = word(on_silence.policy, POLICIES);
    let hold = on_silence.hold.map(|hold| format!(" for {}", spelled_duration(hold)));
    format!("{policy}{}", hold.unwrap_or_default())
}

fn overrides(limit: &Limit) -> BTreeMap<String, String> {
    limit.overrides.iter().map(|other| (pairs(&other.matches), spelled(other))).collect()
}

fn spelled(other: &Override) -> String {
    let burst = other.burst.map(|burst| format!(", burst {burst}")).unwrap_or_default();
    let mode = other.mode.map(|mode| format!(", {}", mode.name())).unwrap_or_default();
    format!("{}{burst}{mode}", other.rate)
}

fn pairs(pairs: &[(String, Pattern)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}: {}", value.as_str())).collect();
    format!("{{{}}}", pairs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::parse;

    fn set(limits: &str) -> LimitSet {
        parse(&format!("limits: [{limits}]")).unwrap()
    }

    #[test]
    fn limits_are_added_changed_and_removed() {
        let old = set("{name: a, rate: 1/second}, {name: b, rate: 1/second}, {name: c, rate: 1/second}");
        let new =
            set("{name: b, rate: 2/minute, mode: shadow}, {name: c, rate: 1/second}, {name: d, rate: 9/day}");
        let found = difference(&old, &new);
        let kinds: Vec<_> = found.iter().map(|found| (&*found.limit, &found.kind)).collect();
        let field = |field: &str, old: &str, new: &str| FieldDifference {
            field: field.into(),
            old: old.into(),
            new: new.into(),
        };
        let changed = DifferenceKind::Changed(vec![
            field("rate", "1/second", "2/minute"),
            field("mode", "enforce", "shadow"),
        ]);
        assert_eq!(kinds, [("b", &changed), ("d", &DifferenceKind::Added), ("a", &DifferenceKind::Removed)]);
        assert_eq!(difference(&new, &new), []);
    }

    #[test]
    fn every_field_that_can_differ_is_told() {
        let old = "name: a, per: [k], rate: 5/minute";
        let exact = "name: a, per: [k], rate: 5/minute, enforcement: exact";
        for (old, more) in [
            (old, "match: {s: x}"),
            (old, "burst: 2"),
            (old, "cost: 3"),
            (old, "mode: off"),
            (old, "order: 4"),
            (old, "max_rate_per_agent: 7/second"),
            (old, "on_silence: {policy: open}"),
            (old, "on_silence: {policy: hold, for: 5s}"),
            (old, "max_buckets: 8"),
            (old, "missing: drop"),
            (old, "exactly: true"),
            (old, "enforcement: exact"),
            (old, "overrides: [{match: {k: x}, rate: 1/minute}]"),
            (exact, "algorithm: fixed_window"),
            (exact, "on_store_failure: closed"),
        ] {
            let (old, new) = (set(&format!("{{{old}}}")), set(&format!("{{{old}, {more}}}")));
            let DifferenceKind::Changed(fields) = &difference(&old, &new)[0].kind else { panic!("{more}") };
            assert!(!fields.is_empty(), "{more}");
        }
    }

    #[test]
    fn an_override_is_told_by_what_it_matches() {
        let of = |more: &str| set(&format!("{{name: a, per: [k], rate: 5/second, overrides: [{more}]}}"));
        let old = of("{match: {k: \"b-*\"}, rate: 1/second}, {match: {k: c}, rate: 1/second}");
        let new = of("{match: {k: \"b-*\"}, rate: 2/second, mode: shadow}");
        let DifferenceKind::Changed(fields) = &difference(&old, &new)[0].kind else { panic!() };
        let told: Vec<String> =
            fields.iter().map(|field| format!("{}: {} → {}", field.field, field.old, field.new)).collect();
        assert_eq!(
            told,
            ["override {k: b-*}: 1/second → 2/second, shadow", "override {k: c}: 1/second → none"]
        );
    }
}
