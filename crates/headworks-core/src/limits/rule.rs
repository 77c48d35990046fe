//! One limit from its mapping.

use std::collections::HashMap;

use super::fault::{FaultLog, quoted};
use super::fields::Field;
use super::overrides::{exact_burst, overrides};
use super::words::{ALGORITHMS, ENFORCEMENTS, MISSING, MODES, POLICIES, STORE_FAILURES, Words, choice};
use super::yaml::{Entry, Kind};
use super::{Enforcement, Exact, Limit, OnSilence, SilencePolicy, SurgeGuard, values};
use crate::exact::Overrides;
use crate::units::{Rate, Unit};

/// What a request costs when neither it nor its limit says.
pub(super) const COST: u32 = 1;
/// Buckets tracked for a limit that does not say.
pub(super) const MAX_BUCKETS: u32 = 10_000;

const KEYS: [&str; 18] = [
    "name",
    "match",
    "per",
    "rate",
    "burst",
    "cost",
    "mode",
    "scope",
    "order",
    "surge_guard",
    "max_rate_per_agent",
    "on_silence",
    "max_buckets",
    "missing",
    "enforcement",
    "algorithm",
    "on_store_failure",
    "overrides",
];
/// Keys that the format has, and that this version does not read.
const PLANNED_KEYS: [&str; 1] = ["exactly"];
/// Keys that only exact limits have.
const KEYS_OF_EXACT: [&str; 3] = ["algorithm", "on_store_failure", "overrides"];
/// Keys that say how the control plane holds a limit, and mean nothing where it does not.
const KEYS_OF_DROP_RATIO: [&str; 3] = ["surge_guard", "on_silence", "max_rate_per_agent"];
/// Keys that tell how buckets are kept apart, and mean nothing where there is only one.
const KEYS_OF_PER: [&str; 2] = ["max_buckets", "missing"];

/// The line on which each name was given first.
pub(super) type Names = HashMap<String, usize>;

/// The limit that a mapping describes; defaults stand in for what is faulty.
pub(super) fn limit(field: &Field<'_>, names: &mut Names, log: &mut FaultLog) -> Option<Limit> {
    field.map(log, "a mapping that starts with `name:`")?;
    field.refuse_other_keys(log, &KEYS, &PLANNED_KEYS);
    refuse_other_scopes(field, log);
    refuse_keys_without_effect(field, log);
    let is_exact = word(field, log, "enforcement", ENFORCEMENTS).unwrap_or_default();
    refuse_keys_of_the_other_kind(field, is_exact, log);
    let rate = rate(field, is_exact, log);
    let per = per(field, log);
    let exact = is_exact.then(|| exact(field, log));
    let limit = Limit {
        name: name(field, names, log).into(),
        matches: matches(field, log),
        rate: rate.unwrap_or(Rate::Unlimited),
        cost: number(field, log, "cost", values::up_to_a_million).unwrap_or(COST),
        mode: word(field, log, "mode", MODES).unwrap_or_default(),
        order: number(field, log, "order", values::order).unwrap_or_default(),
        on_silence: field.get("on_silence").map(|field| on_silence(&field, log)).unwrap_or_default(),
        max_buckets: number(field, log, "max_buckets", values::up_to_a_million).unwrap_or(MAX_BUCKETS),
        missing: word(field, log, "missing", MISSING).unwrap_or_default(),
        burst: match exact {
            Some(exact) => exact_burst(field, rate, exact.algorithm, log),
            None => burst(field, rate, log),
        },
        surge_guard: if is_exact { SurgeGuard::default() } else { surge_guard(field, rate, log) },
        max_rate_per_agent: max_rate_per_agent(field, log),
        overrides: exact.map(|exact| overrides(field, &per, exact.algorithm, log)).unwrap_or_default(),
        enforcement: exact.map_or(Enforcement::DropRatio, Enforcement::Exact),
        per,
    };
    refuse_a_cost_that_never_passes(field, &limit, log);
    Some(limit)
}

/// An exact limit passes no request that costs more than its bucket holds.
fn refuse_a_cost_that_never_passes(field: &Field<'_>, limit: &Limit, log: &mut FaultLog) {
    let (Some(cost), Some(_)) = (field.get("cost"), limit.exact()) else { return };
    let most = Overrides::of(limit, 0).least_that_passes_at_once();
    if let Some(most) = most.filter(|most| u64::from(limit.cost) > *most) {
        cost.fault(
            log,
            format!("{} is more than the {most} that ever pass at once: write at most {most}", limit.cost),
        );
    }
}

fn number<T>(
    limit: &Field<'_>,
    log: &mut FaultLog,
    key: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    limit.get(key)?.read(log, "a number", read)
}

fn word<T: Copy>(limit: &Field<'_>, log: &mut FaultLog, key: &str, words: &Words<T>) -> Option<T> {
    limit.get(key)?.read(log, "a word", |text| choice(text, words))
}

fn name(limit: &Field<'_>, names: &mut Names, log: &mut FaultLog) -> String {
    let Some(field) = limit.need(log, "name", "write one, which metrics and refusals will show") else {
        return String::new();
    };
    let name = field.read(log, "text", values::name).unwrap_or_default();
    if let Some(first) = names.get(name) {
        let line = field.node.at.line;
        let twice = format!("{} names two limits, on line {first} and on line {line}", quoted(name));
        field.fault(log, format!("{twice}: rename or remove one"));
    } else if !name.is_empty() {
        names.insert(name.to_owned(), field.node.at.line);
    }
    name.to_owned()
}

fn rate(limit: &Field<'_>, is_exact: bool, log: &mut FaultLog) -> Option<Rate> {
    let field = limit.need(log, "rate", "write one like `rate: 400/second`")?;
    let rate = field.read(log, "a rate like `400/second`", values::rate)?;
    if let (false, Rate::Per { unit: unit @ (Unit::Month | Unit::Year), .. }) = (is_exact, rate) {
        let unit = unit.name();
        field.fault(
            log,
            format!(
                "a rate per {unit} needs an exact count: add `enforcement: exact`, or write a rate per day"
            ),
        );
    }
    Some(rate)
}

fn exact(limit: &Field<'_>, log: &mut FaultLog) -> Exact {
    Exact {
        algorithm: word(limit, log, "algorithm", ALGORITHMS).unwrap_or_default(),
        on_store_failure: word(limit, log, "on_store_failure", STORE_FAILURES).unwrap_or_default(),
    }
}

/// Keys of the other kind of limit do nothing, and whoever wrote them expects something.
fn refuse_keys_of_the_other_kind(limit: &Field<'_>, is_exact: bool, log: &mut FaultLog) {
    let (keys, advice) = if is_exact {
        (KEYS_OF_DROP_RATIO, "on an exact limit, which no plan holds: remove it")
    } else {
        (KEYS_OF_EXACT, "without `enforcement: exact`: remove it, or add that")
    };
    for key in keys {
        if let Some(field) = limit.get(key) {
            field.fault(log, format!("`{key}` has no effect {advice}"));
        }
    }
}

/// The most that a budget saves up; a faulty rate leaves open what would be wrong with it.
fn burst(limit: &Field<'_>, rate: Option<Rate>, log: &mut FaultLog) -> Option<u64> {
    let field = limit.get("burst")?;
    let burst = field.read(log, "a number", values::burst)?;
    match burst_fault(burst, rate?) {
        Some(fault) => field.fault(log, fault),
        None => return Some(burst),
    }
    None
}

fn burst_fault(burst: u64, rate: Rate) -> Option<String> {
    let no_effect = |on: &str| Some(format!("`burst` has no effect on {on}"));
    match rate {
        Rate::Unlimited => no_effect("an unlimited limit: remove it"),
        Rate::Per { amount: 0, .. } => no_effect("a ban: remove it"),
        Rate::Per { unit: Unit::Second, .. } => no_effect(
            "a limit per second, which saves nothing up: remove it, or write the rate per minute or longer",
        ),
        Rate::Per { amount, .. } if burst > amount => {
            Some(format!("{burst} is more than the {rate} of the rate: write at most {amount}"))
        }
        Rate::Per { .. } => None,
    }
}

/// How far a node may exceed its share, where limits have shares by the second.
fn surge_guard(limit: &Field<'_>, rate: Option<Rate>, log: &mut FaultLog) -> SurgeGuard {
    let Some(field) = limit.get("surge_guard") else { return SurgeGuard::default() };
    let guard = field.read(log, "a number or `off`", values::surge_guard);
    let without_effect = match rate {
        None | Some(Rate::Per { amount: 1.., unit: Unit::Second }) => return guard.unwrap_or_default(),
        Some(Rate::Unlimited) => "an unlimited limit",
        Some(Rate::Per { amount: 0, .. }) => "a ban",
        Some(Rate::Per { .. }) => "a limit per minute or longer",
    };
    field.fault(log, format!("`surge_guard` has no effect on {without_effect}: remove it"));
    SurgeGuard::default()
}

/// The most that one agent can plausibly be offered.
fn max_rate_per_agent(limit: &Field<'_>, log: &mut FaultLog) -> Option<Rate> {
    let field = limit.get("max_rate_per_agent")?;
    match field.read(log, "a rate like `400/second`", values::rate)? {
        rate @ Rate::Per { amount: 1.., .. } => Some(rate),
        rate => {
            field.fault(
                log,
                format!("`max_rate_per_agent: {rate}` bounds nothing that an agent may do: remove it"),
            );
            None
        }
    }
}

fn matches(limit: &Field<'_>, log: &mut FaultLog) -> Vec<(String, String)> {
    let Some(field) = limit.get("match") else { return Vec::new() };
    let entries = field.map(log, "a mapping like `{service: checkout}`").unwrap_or_default();
    let mut matches: Vec<_> = entries.iter().filter_map(|entry| attribute(&field, entry, log)).collect();
    matches.sort();
    matches
}

fn attribute(matches: &Field<'_>, entry: &Entry<'_>, log: &mut FaultLog) -> Option<(String, String)> {
    let field = matches.value(entry);
    if let Err(message) = values::attribute_key(&entry.key) {
        log.push(entry.key_at, field.path.to_string(), format!("the key {message}"));
    }
    let value = field.read(log, "text", values::attribute_value)?;
    Some((entry.key.to_string(), value.to_owned()))
}

fn per(limit: &Field<'_>, log: &mut FaultLog) -> Vec<String> {
    let Some(field) = limit.get("per") else { return Vec::new() };
    let items = field.list(log, "a list of keys like `[caller]`");
    let mut keys: HashMap<&str, usize> = HashMap::new();
    let mut per = Vec::new();
    for (i, node) in items.iter().enumerate() {
        let item = field.item(i, node);
        let Some(key) = item.read(log, "text", values::attribute_key) else { continue };
        if let Some(first) = keys.insert(key, i) {
            item.fault(log, format!("{} is in `per` twice, also as per[{first}]: remove one", quoted(key)));
        } else if is_matched(limit, key) {
            let one_bucket = "which leaves one bucket only: remove it from one of them";
            item.fault(log, format!("{} is in `match` as well, {one_bucket}", quoted(key)));
        }
        per.push(key.to_owned());
    }
    per
}

fn is_matched(limit: &Field<'_>, key: &str) -> bool {
    limit.get("match").is_some_and(|field| field.get(key).is_some())
}

fn on_silence(field: &Field<'_>, log: &mut FaultLog) -> OnSilence {
    if !matches!(field.node.kind, Kind::Map(_)) {
        let wanted = "a word or a mapping like `{policy: hold, for: 60s}`";
        let policy = field.read(log, wanted, |text| choice(text, POLICIES));
        return OnSilence { policy: policy.unwrap_or_default(), hold: None };
    }
    field.refuse_other_keys(log, &["policy", "for"], &[]);
    let policy = field
        .need(log, "policy", "write `hold`, `open` or `closed`")
        .and_then(|policy| policy.read(log, "a word", |text| choice(text, POLICIES)))
        .unwrap_or_default();
    OnSilence { policy, hold: field.get("for").and_then(|hold| self::hold(&hold, policy, log)) }
}

fn hold(field: &Field<'_>, policy: SilencePolicy, log: &mut FaultLog) -> Option<std::time::Duration> {
    let hold = field.read(log, "a duration like `60s`", values::hold);
    if policy == SilencePolicy::Open {
        field.fault(log, "`for` has no effect with `policy: open`, which opens at once: remove it");
    }
    hold
}

fn refuse_other_scopes(limit: &Field<'_>, log: &mut FaultLog) {
    let Some(field) = limit.get("scope") else { return };
    field.read(log, "a word", |text| match text {
        "global" => Ok(()),
        "region" | "zone" => Err(format!("scope `{text}` is not supported by this version: write `global`")),
        _ => Err(format!("{} is not known: write `global`", quoted(text))),
    });
}

fn refuse_keys_without_effect(limit: &Field<'_>, log: &mut FaultLog) {
    let lists_nothing = |field: &Field<'_>| matches!(&field.node.kind, Kind::List(items) if items.is_empty());
    if limit.get("per").is_some_and(|per| !lists_nothing(&per)) {
        return;
    }
    for key in KEYS_OF_PER {
        if let Some(field) = limit.get(key) {
            field.fault(log, format!("`{key}` has no effect without `per`: remove it, or add `per`"));
        }
    }
}
