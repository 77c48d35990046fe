//! What an exact limit's overrides make of its rule.

use std::sync::Arc;

use super::Rule;
use crate::limits::{Limit, Mode};
use crate::overrides;
use crate::units::Rate;

/// What holds for a bucket, and the rate that it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// What holds.
    pub rule: Rule,
    /// How much passes, as the limits file has it.
    pub rate: Rate,
    /// Whether the verdict is enforced.
    pub mode: Mode,
    /// Which rules of the limit it belongs to: later ones have a higher number.
    pub generation: u64,
}

/// The rules of a limit: its own, and those of its overrides.
#[derive(Clone, Debug)]
pub struct Overrides {
    rulings: overrides::Overrides<Arc<Ruling>>,
    /// Whether some bucket has another mode than the limit.
    has_modes: bool,
}

impl Overrides {
    /// The rules of an exact limit.
    pub fn of(limit: &Limit, generation: u64) -> Self {
        let ruling = |rate, burst, mode| {
            Arc::new(Ruling { rule: Rule::new(limit.algorithm(), rate, burst), rate, mode, generation })
        };
        let own = ruling(limit.rate, limit.burst, limit.mode);
        let rulings = overrides::Overrides::new(own, &limit.overrides, &limit.per, |other| {
            ruling(other.rate, other.burst, other.mode.unwrap_or(limit.mode))
        });
        let has_modes = rulings.others().any(|ruling| ruling.mode != limit.mode);
        Self { rulings, has_modes }
    }

    /// The rule of buckets that no override concerns.
    pub fn own(&self) -> &Arc<Ruling> {
        self.rulings.own()
    }

    /// Rises with every change of rules.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.own().generation
    }

    /// Whether the mode depends on the bucket.
    #[inline]
    pub fn has_modes(&self) -> bool {
        self.has_modes
    }

    /// The least that any bucket but a banned one passes at one moment, in cost units; one that is off has no say.
    pub fn least_that_passes_at_once(&self) -> Option<u64> {
        let counted = self.rulings.others().chain([self.own()]).filter(|ruling| ruling.mode != Mode::Off);
        counted.filter_map(|ruling| ruling.rule.most()).filter(|most| *most > 0).min()
    }

    /// The rule of the bucket of these values, and whether an override names exactly this bucket.
    pub fn rule_for(&self, values: &[&str]) -> (&Arc<Ruling>, bool) {
        self.rulings.of_values(values)
    }
}
