//! Limits as they travel inside plans.

use std::time::Duration;

use headworks_core::limits::{
    Algorithm, Enforcement, Exact, Limit, LimitSet, MAX_OVERRIDES, MAX_ZONES, Missing, Mode, OnSilence,
    Override, Rollout, Scope, SilencePolicy, StoreFailure, SurgeGuard,
};
use headworks_core::matching::MAX_PER_KEYS;
use headworks_core::pattern::Pattern;
use headworks_core::units::{Rate, Unit};

use crate::bucket::{MAX_NAME, MAX_VALUE};
use crate::report::micros;
use crate::wire;

pub(crate) fn encode(set: &LimitSet) -> wire::LimitSet {
    wire::LimitSet { limits: set.limits().iter().map(|limit| encode_limit(limit)).collect() }
}

fn encode_limit(limit: &Limit) -> wire::Limit {
    let needs = encode_needs(limit);
    // What a node does not know, it ignores; without a mode it refuses the limit instead of misreading it.
    let unspecified = wire::Mode::Unspecified.into();
    let mode = if needs.is_some() { unspecified } else { encode_mode(limit.mode).into() };
    let exact = limit.exact().map(|exact| encode_exact(mode, exact));
    wire::Limit {
        name: limit.name.to_string(),
        r#match: limit.matches.iter().map(encode_attribute).collect(),
        per: limit.per.clone(),
        rate: Some(encode_rate(limit.rate)),
        cost: limit.cost,
        mode: if exact.is_some() { unspecified } else { mode },
        order: limit.order,
        on_silence: Some(wire::OnSilence {
            policy: encode_policy(limit.on_silence.policy).into(),
            hold_micros: limit.on_silence.hold.map(micros),
        }),
        max_buckets: limit.max_buckets,
        missing: encode_missing(limit.missing).into(),
        burst: limit.burst,
        surge_guard_hundredths: encode_guard(limit.surge_guard),
        max_rate_per_agent: limit.max_rate_per_agent.map(encode_rate),
        exact,
        overrides: limit.overrides.iter().map(encode_override).collect(),
        needs,
        rollout: limit.rollout.as_ref().map(encode_rollout),
        scope: encode_scope(limit.scope).into(),
    }
}

fn encode_scope(scope: Scope) -> wire::Scope {
    match scope {
        Scope::Global => wire::Scope::Unspecified,
        Scope::Region => wire::Scope::Region,
        Scope::Zone => wire::Scope::Zone,
    }
}

fn encode_rollout(rollout: &Rollout) -> wire::Rollout {
    wire::Rollout {
        zones: rollout.zones.to_vec(),
        rate: rollout.rate.map(encode_rate),
        mode: rollout.mode.map_or(wire::Mode::Unspecified, encode_mode).into(),
    }
}

/// What older nodes would misread in a limit; nothing where they would not, so that they hold it as before.
fn encode_needs(limit: &Limit) -> Option<wire::Needs> {
    let needed = [
        (wire::Feature::Patterns, limit.matches.iter().any(|(_, value)| value.has_stars())),
        (wire::Feature::Exactly, limit.exactly),
        (wire::Feature::OverridesOfADropRatio, limit.exact().is_none() && !limit.overrides.is_empty()),
        (wire::Feature::Rollout, limit.rollout.is_some()),
        (wire::Feature::Scope, limit.scope != Scope::Global),
    ];
    let features: Vec<i32> =
        needed.iter().filter(|(_, is_needed)| *is_needed).map(|(feature, _)| (*feature).into()).collect();
    (!features.is_empty()).then(|| wire::Needs { mode: encode_mode(limit.mode).into(), features })
}

fn encode_attribute((key, value): &(String, Pattern)) -> wire::Attribute {
    wire::Attribute { key: key.clone(), value: value.to_string() }
}

fn encode_exact(mode: i32, exact: Exact) -> wire::Exact {
    let algorithm = match exact.algorithm {
        Algorithm::TokenBucket => wire::Algorithm::TokenBucket,
        Algorithm::SlidingWindow => wire::Algorithm::SlidingWindow,
        Algorithm::FixedWindow => wire::Algorithm::FixedWindow,
    };
    let on_store_failure = match exact.on_store_failure {
        StoreFailure::Open => wire::StoreFailure::Open,
        StoreFailure::Closed => wire::StoreFailure::Closed,
    };
    wire::Exact { mode, algorithm: algorithm.into(), on_store_failure: on_store_failure.into() }
}

fn encode_override(other: &Override) -> wire::Override {
    wire::Override {
        r#match: other.matches.iter().map(encode_attribute).collect(),
        rate: Some(encode_rate(other.rate)),
        burst: other.burst,
        mode: other.mode.map_or(wire::Mode::Unspecified, encode_mode).into(),
    }
}

/// The default travels as nothing, as it does from parents that know of no guard.
fn encode_guard(guard: SurgeGuard) -> Option<u32> {
    match guard {
        _ if guard == SurgeGuard::default() => None,
        SurgeGuard::Off => Some(0),
        SurgeGuard::Hundredths(hundredths) => Some(hundredths),
    }
}

fn encode_rate(rate: Rate) -> wire::Rate {
    match rate {
        Rate::Unlimited => wire::Rate { rate: Some(wire::rate::Rate::Unlimited(true)), unit: 0 },
        Rate::Per { amount, unit } => {
            wire::Rate { rate: Some(wire::rate::Rate::Amount(amount)), unit: encode_unit(unit).into() }
        }
    }
}

fn encode_unit(unit: Unit) -> wire::Unit {
    match unit {
        Unit::Second => wire::Unit::Second,
        Unit::Minute => wire::Unit::Minute,
        Unit::Hour => wire::Unit::Hour,
        Unit::Day => wire::Unit::Day,
        Unit::Month => wire::Unit::Month,
        Unit::Year => wire::Unit::Year,
    }
}

fn encode_mode(mode: Mode) -> wire::Mode {
    match mode {
        Mode::Enforce => wire::Mode::Enforce,
        Mode::Shadow => wire::Mode::Shadow,
        Mode::Off => wire::Mode::Off,
    }
}

fn encode_policy(policy: SilencePolicy) -> wire::SilencePolicy {
    match policy {
        SilencePolicy::Hold => wire::SilencePolicy::Hold,
        SilencePolicy::Open => wire::SilencePolicy::Open,
        SilencePolicy::Closed => wire::SilencePolicy::Closed,
    }
}

fn encode_missing(missing: Missing) -> wire::Missing {
    match missing {
        Missing::Skip => wire::Missing::Skip,
        Missing::Empty => wire::Missing::Empty,
        Missing::Drop => wire::Missing::Drop,
    }
}

/// The limits that make sense; the others are counted. A limit with an enum value of a later release is one of
/// those: half understood it would do what nobody asked for.
pub(crate) fn decode(set: wire::LimitSet, refused: &mut u32) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::with_capacity(set.limits.len());
    let mut names = std::collections::HashSet::new();
    for limit in set.limits {
        match decode_limit(limit).filter(|limit| names.insert(limit.name.clone())) {
            Some(limit) => limits.push(limit),
            None => *refused += 1,
        }
    }
    limits
}

fn decode_limit(limit: wire::Limit) -> Option<Limit> {
    if !is_bounded(&limit) || limit.cost == 0 || limit.max_buckets == 0 || limit.burst == Some(0) {
        return None;
    }
    let enforcement = decode_enforcement(limit.exact.as_ref())?;
    let needs = Needs::of(&limit)?;
    let overrides = decode_overrides(&limit, enforcement, needs)?;
    let scope = decode_scope(&limit, enforcement, needs)?;
    let rate = decode_rate(limit.rate?)?;
    if enforcement == Enforcement::DropRatio && rate.is_for_exact_only() {
        return None;
    }
    let rollout = decode_rollout(limit.rollout.as_ref(), enforcement, rate, needs)?;
    let missing = decode_missing(limit.missing())?;
    let surge_guard = decode_guard(limit.surge_guard_hundredths)?;
    let max_rate_per_agent = decode_bound(limit.max_rate_per_agent)?;
    Some(Limit {
        rate,
        on_silence: decode_silence(&limit.on_silence.unwrap_or_default())?,
        name: limit.name.into(),
        matches: limit.r#match.iter().map(decode_attribute).collect(),
        exactly: needs.exactly,
        per: limit.per,
        cost: limit.cost,
        mode: needs.mode,
        order: limit.order,
        max_buckets: limit.max_buckets,
        missing,
        burst: limit.burst,
        surge_guard,
        max_rate_per_agent,
        scope,
        enforcement,
        overrides,
        rollout,
    })
}

/// What a limit needs of the nodes that hold it, and its mode.
#[derive(Clone, Copy)]
struct Needs {
    mode: Mode,
    exactly: bool,
    overrides: bool,
    rollout: bool,
    scope: bool,
}

impl Needs {
    /// Nothing if the limit needs what this release does not know, or holds what it does not say that it needs.
    fn of(limit: &wire::Limit) -> Option<Self> {
        let Some(needs) = &limit.needs else {
            let mode = decode_mode(limit.exact.as_ref().map_or(limit.mode(), wire::Exact::mode))?;
            let needs_nothing = limit.r#match.iter().all(|attribute| !attribute.value.contains('*'));
            return needs_nothing.then_some(Self {
                mode,
                exactly: false,
                overrides: false,
                rollout: false,
                scope: false,
            });
        };
        let features = needs.features.iter().map(|feature| wire::Feature::try_from(*feature).ok());
        let features: Vec<wire::Feature> = features.collect::<Option<_>>()?;
        let has = |feature| features.contains(&feature);
        (!has(wire::Feature::Unspecified)).then_some(Self {
            mode: decode_mode(needs.mode())?,
            exactly: has(wire::Feature::Exactly),
            overrides: has(wire::Feature::OverridesOfADropRatio),
            rollout: has(wire::Feature::Rollout),
            scope: has(wire::Feature::Scope),
        })
    }
}

/// One whose rates cannot be told apart by a factor makes no sense, and neither does one for no zone, or one that is not said
/// to be needed.
fn decode_rollout(
    rollout: Option<&wire::Rollout>,
    enforcement: Enforcement,
    own: Rate,
    needs: Needs,
) -> Option<Option<Rollout>> {
    if rollout.is_some() != needs.rollout {
        return None;
    }
    let Some(rollout) = rollout else { return Some(None) };
    let is_sound = |zone: &String| (1..=MAX_NAME).contains(&zone.len());
    if rollout.zones.is_empty() || rollout.zones.len() > MAX_ZONES || !rollout.zones.iter().all(is_sound) {
        return None;
    }
    let rate = match rollout.rate {
        Some(rate) => Some(decode_rate(rate)?),
        None => None,
    };
    if enforcement == Enforcement::DropRatio
        && rate.is_some_and(|rate| !rate.is_by_the_second() || !own.is_by_the_second())
    {
        return None;
    }
    let mode = if rollout.mode == 0 { None } else { Some(decode_mode(rollout.mode())?) };
    Some(Some(Rollout { zones: rollout.zones.as_slice().into(), rate, mode }))
}

/// An exact limit has no scope; and a scope that is not known, or not said to be needed, makes no sense.
fn decode_scope(limit: &wire::Limit, enforcement: Enforcement, needs: Needs) -> Option<Scope> {
    let scope = match wire::Scope::try_from(limit.scope).ok()? {
        wire::Scope::Unspecified => return (!needs.scope).then_some(Scope::Global),
        wire::Scope::Region => Scope::Region,
        wire::Scope::Zone => Scope::Zone,
    };
    (needs.scope && enforcement == Enforcement::DropRatio).then_some(scope)
}

fn decode_enforcement(exact: Option<&wire::Exact>) -> Option<Enforcement> {
    let Some(exact) = exact else { return Some(Enforcement::DropRatio) };
    let algorithm = match exact.algorithm() {
        wire::Algorithm::Unspecified => return None,
        wire::Algorithm::TokenBucket => Algorithm::TokenBucket,
        wire::Algorithm::SlidingWindow => Algorithm::SlidingWindow,
        wire::Algorithm::FixedWindow => Algorithm::FixedWindow,
    };
    let on_store_failure = match exact.on_store_failure() {
        wire::StoreFailure::Unspecified => return None,
        wire::StoreFailure::Open => StoreFailure::Open,
        wire::StoreFailure::Closed => StoreFailure::Closed,
    };
    Some(Enforcement::Exact(Exact { algorithm, on_store_failure }))
}

fn decode_overrides(limit: &wire::Limit, enforcement: Enforcement, needs: Needs) -> Option<Vec<Override>> {
    let by_ratio = enforcement == Enforcement::DropRatio;
    let allowed = if by_ratio && !needs.overrides { 0 } else { MAX_OVERRIDES };
    if limit.overrides.len() > allowed {
        return None;
    }
    let decoded = limit.overrides.iter().map(|other| decode_override(other, &limit.per));
    decoded.map(|other| other.filter(|other| !by_ratio || !other.rate.is_for_exact_only())).collect()
}

fn decode_attribute(attribute: &wire::Attribute) -> (String, Pattern) {
    (attribute.key.clone(), Pattern::new(&attribute.value))
}

/// One that chooses by other keys than `per` would give a bucket two rates.
fn decode_override(other: &wire::Override, per: &[String]) -> Option<Override> {
    let is_sound = |attribute: &wire::Attribute| {
        per.contains(&attribute.key) && (1..=MAX_VALUE).contains(&attribute.value.len())
    };
    if other.r#match.is_empty() || !other.r#match.iter().all(is_sound) || other.burst == Some(0) {
        return None;
    }
    // Only what is left out takes the limit's mode; one of a later release makes no sense.
    let mode = if other.mode == 0 { None } else { Some(decode_mode(other.mode())?) };
    Some(Override {
        matches: other.r#match.iter().map(decode_attribute).collect(),
        rate: decode_rate(other.rate?)?,
        burst: other.burst,
        mode,
    })
}

/// A bound that bounds nothing makes no sense; none at all does.
fn decode_bound(rate: Option<wire::Rate>) -> Option<Option<Rate>> {
    match rate.map(decode_rate) {
        None => Some(None),
        Some(Some(rate @ Rate::Per { amount: 1.., .. })) => Some(Some(rate)),
        Some(_) => None,
    }
}

fn is_bounded(limit: &wire::Limit) -> bool {
    // Names become labels of metrics and words of logs.
    let named = (1..=MAX_NAME).contains(&limit.name.len()) && !limit.name.chars().any(char::is_control);
    let short_keys = limit.per.iter().all(|key| !key.is_empty() && key.len() <= MAX_NAME);
    let short_matches = (limit.r#match.iter())
        .all(|attribute| attribute.key.len() <= MAX_NAME && attribute.value.len() <= MAX_VALUE);
    named && short_keys && short_matches && limit.per.len() <= MAX_PER_KEYS
}

fn decode_rate(rate: wire::Rate) -> Option<Rate> {
    match (rate.rate?, rate.unit()) {
        (wire::rate::Rate::Unlimited(true), _) => Some(Rate::Unlimited),
        (wire::rate::Rate::Amount(amount), unit) => Some(Rate::Per { amount, unit: decode_unit(unit)? }),
        _ => None,
    }
}

fn decode_unit(unit: wire::Unit) -> Option<Unit> {
    match unit {
        wire::Unit::Unspecified => None,
        wire::Unit::Second => Some(Unit::Second),
        wire::Unit::Minute => Some(Unit::Minute),
        wire::Unit::Hour => Some(Unit::Hour),
        wire::Unit::Day => Some(Unit::Day),
        wire::Unit::Month => Some(Unit::Month),
        wire::Unit::Year => Some(Unit::Year),
    }
}

fn decode_mode(mode: wire::Mode) -> Option<Mode> {
    match mode {
        wire::Mode::Unspecified => None,
        wire::Mode::Enforce => Some(Mode::Enforce),
        wire::Mode::Shadow => Some(Mode::Shadow),
        wire::Mode::Off => Some(Mode::Off),
    }
}

fn decode_silence(silence: &wire::OnSilence) -> Option<OnSilence> {
    let policy = match silence.policy() {
        wire::SilencePolicy::Unspecified => return None,
        wire::SilencePolicy::Hold => SilencePolicy::Hold,
        wire::SilencePolicy::Open => SilencePolicy::Open,
        wire::SilencePolicy::Closed => SilencePolicy::Closed,
    };
    Some(OnSilence { policy, hold: silence.hold_micros.map(Duration::from_micros) })
}

fn decode_missing(missing: wire::Missing) -> Option<Missing> {
    match missing {
        wire::Missing::Unspecified => None,
        wire::Missing::Skip => Some(Missing::Skip),
        wire::Missing::Empty => Some(Missing::Empty),
        wire::Missing::Drop => Some(Missing::Drop),
    }
}

fn decode_guard(hundredths: Option<u32>) -> Option<SurgeGuard> {
    match hundredths {
        None => Some(SurgeGuard::default()),
        Some(0) => Some(SurgeGuard::Off),
        Some(hundredths @ 100..=10_000) => Some(SurgeGuard::Hundredths(hundredths)),
        Some(_) => None,
    }
}
