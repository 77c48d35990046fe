//! What tests of this crate build their cases from.

use crate::agent::Identity;
use crate::limits::{Enforcement, Limit, Missing, Mode, OnSilence, Scope, SurgeGuard};
use crate::message::Incarnation;
use crate::units::{Rate, Unit};

/// The identity of a node of zone `a`.
pub(crate) fn identity(node: &str) -> Identity {
    Identity {
        node: node.into(),
        incarnation: Incarnation(1),
        zone: "a".into(),
        region: String::new(),
        version: "1".into(),
    }
}

/// A limit of `amount` a second on everything.
pub(crate) fn limit(name: &str, amount: u64) -> Limit {
    Limit {
        name: name.into(),
        matches: Vec::new(),
        exactly: false,
        per: Vec::new(),
        rate: Rate::Per { amount, unit: Unit::Second },
        cost: 1,
        mode: Mode::Enforce,
        order: 0,
        on_silence: OnSilence::default(),
        max_buckets: 10_000,
        missing: Missing::Skip,
        burst: None,
        surge_guard: SurgeGuard::default(),
        max_rate_per_agent: None,
        scope: Scope::Global,
        enforcement: Enforcement::DropRatio,
        overrides: Vec::new(),
        rollout: None,
    }
}
