//! Limits as they travel inside plans.

use std::time::Duration;

use headworks_core::limits::{Limit, LimitSet, Missing, Mode, OnSilence, SilencePolicy, SurgeGuard};
use headworks_core::matching::MAX_PER_KEYS;
use headworks_core::units::{Rate, Unit};

use crate::bucket::{MAX_NAME, MAX_VALUE};
use crate::report::micros;
use crate::wire;

pub(crate) fn encode(set: &LimitSet) -> wire::LimitSet {
    wire::LimitSet { limits: set.limits().iter().map(|limit| encode_limit(limit)).collect() }
}

fn encode_limit(limit: &Limit) -> wire::Limit {
    let attribute =
        |(key, value): &(String, String)| wire::Attribute { key: key.clone(), value: value.clone() };
    wire::Limit {
        name: limit.name.to_string(),
        r#match: limit.matches.iter().map(attribute).collect(),
        per: limit.per.clone(),
        rate: Some(encode_rate(limit.rate)),
        cost: limit.cost,
        mode: encode_mode(limit.mode).into(),
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
    let mode = decode_mode(limit.mode())?;
    let missing = decode_missing(limit.missing())?;
    let surge_guard = decode_guard(limit.surge_guard_hundredths)?;
    let max_rate_per_agent = decode_bound(limit.max_rate_per_agent)?;
    Some(Limit {
        rate: decode_rate(limit.rate?)?,
        on_silence: decode_silence(&limit.on_silence.unwrap_or_default())?,
        name: limit.name.into(),
        matches: limit.r#match.into_iter().map(|attribute| (attribute.key, attribute.value)).collect(),
        per: limit.per,
        cost: limit.cost,
        mode,
        order: limit.order,
        max_buckets: limit.max_buckets,
        missing,
        burst: limit.burst,
        surge_guard,
        max_rate_per_agent,
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
    let named = !limit.name.is_empty() && limit.name.len() <= MAX_NAME;
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
