//! One limit from its mapping.

use std::collections::HashMap;

use super::fault::{FaultLog, quoted};
use super::fields::Field;
use super::format;
use super::overrides::overrides;
use super::rollout::rollout;
use super::words::{
    ALGORITHMS, ENFORCEMENTS, MISSING, MODES, POLICIES, SCOPES, STORE_FAILURES, TRUTHS, Words, choice,
};
use super::yaml::{Entry, Kind};
use super::{
    Algorithm, Enforcement, Exact, Limit, OnSilence, Override, Scope, SilencePolicy, SurgeGuard, values,
};
use crate::exact::Overrides;
use crate::matching::MAX_PER_KEYS;
use crate::pattern::Pattern;
use crate::units::{Rate, Unit};

/// What a request costs when neither it nor its limit says.
pub(super) const COST: u32 = 1;
/// Buckets tracked for a limit that does not say.
pub(super) const MAX_BUCKETS: u32 = 10_000;

/// Keys that only exact limits have.
const KEYS_OF_EXACT: [&str; 2] = ["algorithm", "on_store_failure"];
/// Keys that say how the control plane holds a limit, and mean nothing where it does not.
const KEYS_OF_DROP_RATIO: [&str; 3] = ["surge_guard", "on_silence", "max_rate_per_agent"];
/// Keys that tell how buckets are kept apart, and mean nothing where there is only one.
const KEYS_OF_PER: [&str; 2] = ["max_buckets", "missing"];

/// The line on which each name was given first.
pub(super) type Names = HashMap<String, usize>;

/// The limit that a mapping describes; defaults stand in for what is faulty.
pub(super) fn limit(field: &Field<'_>, names: &mut Names, log: &mut FaultLog) -> Option<Limit> {
    field.map(log, "a mapping that starts with `name:`")?;
    field.refuse_other_keys(log, format::LIMIT);
    refuse_keys_without_effect(field, log);
    let is_exact = word(field, log, "enforcement", ENFORCEMENTS).unwrap_or_default();
    refuse_keys_of_the_other_kind(field, is_exact, log);
    let rate = rate(field, is_exact, log);
    let per = per(field, log);
    let exact = is_exact.then(|| exact(field, log));
    let exactly = exactly(field, log);
    let overrides = overrides(field, &per, exact, log);
    let limit = Limit {
        name: name(field, names, log).into(),
        matches: matches(field, exactly, log),
        exactly,
        rate: rate.unwrap_or(Rate::Unlimited),
        cost: number(field, log, "cost", values::up_to_a_million).unwrap_or(COST),
        mode: word(field, log, "mode", MODES).unwrap_or_default(),
        order: number(field, log, "order", values::order).unwrap_or_default(),
        on_silence: field.get("on_silence").map(|field| on_silence(&field, log)).unwrap_or_default(),
        max_buckets: number(field, log, "max_buckets", values::up_to_a_million).unwrap_or(MAX_BUCKETS),
        missing: word(field, log, "missing", MISSING).unwrap_or_default(),
        burst: burst(field, rate, exact, log),
        surge_guard: if is_exact { SurgeGuard::default() } else { surge_guard(field, rate, &overrides, log) },
        max_rate_per_agent: max_rate_per_agent(field, log),
        overrides,
        rollout: rollout(field, rate, is_exact, log),
        scope: scope(field, is_exact, log),
        enforcement: exact.map_or(Enforcement::DropRatio, Enforcement::Exact),
        per,
    };
    refuse_a_cost_that_never_passes(field, &limit, log);
    Some(limit)
}

/// An exact limit passes no request that costs more than its bucket holds.
fn refuse_a_cost_that_never_passes(field: &Field<'_>, limit: &Limit, log: &mut FaultLog) {
    let (Some(cost), Some(_)) = (field.get("cost"), limit.exact()) else { return };
    // Where it is rolled out, the zones that do not try it may pass less.
    let other = limit.rollout.as_ref().and_then(|rollout| rollout.rate);
    let elsewhere = other.map(|rate| Limit { rate, ..limit.clone() });
    let each = std::iter::once(limit).chain(&elsewhere);
    let most = each.filter_map(|limit| Overrides::of(limit, 0).least_that_passes_at_once()).min();
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

/// How much passes, of a limit or of an override.
pub(super) fn rate(limit: &Field<'_>, is_exact: bool, log: &mut FaultLog) -> Option<Rate> {
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
    let (keys, advice): (&[&str], _) = if is_exact {
        (&KEYS_OF_DROP_RATIO, "on an exact limit, which no plan holds: remove it")
    } else {
        (&KEYS_OF_EXACT, "without `enforcement: exact`: remove it, or add that")
    };
    for key in keys {
        if let Some(field) = limit.get(key) {
            field.fault(log, format!("`{key}` has no effect {advice}"));
        }
    }
}

/// The most that a budget saves up, or that passes of an exact limit at one moment; a faulty rate leaves open what would be
/// wrong with it.
pub(super) fn burst(
    limit: &Field<'_>,
    rate: Option<Rate>,
    exact: Option<Exact>,
    log: &mut FaultLog,
) -> Option<u64> {
    let field = limit.get("burst")?;
    let burst = field.read(log, "a number", values::burst)?;
    let fault = match exact {
        Some(exact) => exact_burst_fault(rate?, exact.algorithm),
        None => burst_fault(burst, rate?),
    };
    match fault {
        Some(fault) => field.fault(log, fault),
        None => return Some(burst),
    }
    None
}

fn exact_burst_fault(rate: Rate, algorithm: Algorithm) -> Option<String> {
    let without_effect = match rate {
        _ if algorithm != Algorithm::TokenBucket => "windows, which hold the amount of the rate",
        Rate::Unlimited => "an unlimited limit",
        Rate::Per { amount: 0, .. } => "a ban",
        Rate::Per { .. } => return None,
    };
    Some(format!("`burst` has no effect on {without_effect}: remove it"))
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
fn surge_guard(
    limit: &Field<'_>,
    rate: Option<Rate>,
    overrides: &[Override],
    log: &mut FaultLog,
) -> SurgeGuard {
    let Some(field) = limit.get("surge_guard") else { return SurgeGuard::default() };
    let guard = field.read(log, "a number or `off`", values::surge_guard);
    if overrides.iter().any(|other| other.rate.is_by_the_second()) {
        return guard.unwrap_or_default();
    }
    let without_effect = match rate {
        None => return guard.unwrap_or_default(),
        Some(rate) if rate.is_by_the_second() => return guard.unwrap_or_default(),
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

/// Whether the request must have just the keys that the limit names.
fn exactly(limit: &Field<'_>, log: &mut FaultLog) -> bool {
    let exactly = word(limit, log, "exactly", TRUTHS).unwrap_or_default();
    if let (true, Some(missing)) = (exactly, limit.get("missing")) {
        missing.fault(
            log,
            "`missing` has no effect with `exactly: true`, which asks for each key: remove one of them",
        );
    }
    let names_a_key = limit.get("match").is_some() || limit.get("per").is_some();
    if let (true, false, Some(field)) = (exactly, names_a_key, limit.get("exactly")) {
        field
            .fault(log, "without `match` and `per` concerns only requests without attributes: name the keys");
    }
    exactly
}

/// What a request must have; sorted, unless its order is asked for.
fn matches(limit: &Field<'_>, exactly: bool, log: &mut FaultLog) -> Vec<(String, Pattern)> {
    let Some(field) = limit.get("match") else { return Vec::new() };
    let entries = field.map(log, "a mapping like `{service: checkout}`").unwrap_or_default();
    let mut matches: Vec<_> = entries.iter().filter_map(|entry| attribute(&field, entry, log)).collect();
    if !exactly {
        matches.sort();
    }
    matches
}

fn attribute(matches: &Field<'_>, entry: &Entry<'_>, log: &mut FaultLog) -> Option<(String, Pattern)> {
    let field = matches.value(entry);
    if let Err(message) = values::attribute_key(&entry.key) {
        log.push(entry.key_at, field.path.to_string(), format!("the key {message}"));
    }
    let value = field.read(log, "text", values::pattern)?;
    Some((entry.key.to_string(), Pattern::new(value)))
}

fn per(limit: &Field<'_>, log: &mut FaultLog) -> Vec<String> {
    let Some(field) = limit.get("per") else { return Vec::new() };
    let items = field.list(log, "a list of keys like `[caller]`");
    if items.len() > MAX_PER_KEYS {
        field
            .fault(log, format!("has {} keys, more than the {MAX_PER_KEYS} allowed: use fewer", items.len()));
    }
    let mut keys: HashMap<&str, usize> = HashMap::new();
    let mut per = Vec::new();
    for (i, node) in items.iter().enumerate() {
        let item = field.item(i, node);
        let Some(key) = item.read(log, "text", values::attribute_key) else { continue };
        if let Some(first) = keys.insert(key, i) {
            item.fault(log, format!("{} is in `per` twice, also as per[{first}]: remove one", quoted(key)));
        } else if is_matched_whole(limit, key) {
            let one_bucket = "which leaves one bucket only: remove it from one of them";
            item.fault(log, format!("{} is in `match` as well, {one_bucket}", quoted(key)));
        }
        per.push(key.to_owned());
    }
    per
}

/// Whether `match` leaves one value only for a key.
fn is_matched_whole(limit: &Field<'_>, key: &str) -> bool {
    let has_no_star = |value: Field<'_>| !matches!(&value.node.kind, Kind::Text(text) if text.contains('*'));
    limit.get("match").is_some_and(|field| field.get(key).is_some_and(has_no_star))
}

fn on_silence(field: &Field<'_>, log: &mut FaultLog) -> OnSilence {
    if !matches!(field.node.kind, Kind::Map(_)) {
        let wanted = "a word or a mapping like `{policy: hold, for: 60s}`";
        let policy = field.read(log, wanted, |text| choice(text, POLICIES));
        return OnSilence { policy: policy.unwrap_or_default(), hold: None };
    }
    field.refuse_other_keys(log, format::ON_SILENCE);
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

/// How far a limit reaches. Whatever counts an exact one, an agent or a store, does not know of zones.
fn scope(limit: &Field<'_>, is_exact: bool, log: &mut FaultLog) -> Scope {
    let scope = word(limit, log, "scope", SCOPES).unwrap_or_default();
    if let Some(field) = limit.get("scope").filter(|_| is_exact && scope != Scope::Global) {
        let name = scope.name();
        field.fault(
            log,
            format!(
                "scope `{name}` is not supported on an exact limit: remove it, or remove `enforcement: exact`"
            ),
        );
        return Scope::Global;
    }
    scope
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
