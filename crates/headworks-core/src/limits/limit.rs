//! Checked limits. A value of these types has no faults left in it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{Enforcement, Overridden, Override, Rollout, Scope};
use crate::pattern::Pattern;
use crate::units::{Rate, Unit};

/// One rule: which requests it concerns, how they are counted, and how many of them pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Unique in its set; the metric label, and what refusals name.
    pub name: Arc<str>,
    /// Key and value of every attribute that a request must have: sorted by key, or where `exactly` holds in the order of the request.
    pub matches: Vec<(String, Pattern)>,
    /// Whether a request must have the keys of `matches`, then those of `per` that are not among them, and no others, in this order.
    pub exactly: bool,
    /// The keys whose values tell buckets apart, in the file's order; none means one bucket for all.
    pub per: Vec<String>,
    /// How much passes.
    pub rate: Rate,
    /// What a request costs that does not say.
    pub cost: u32,
    /// Whether the verdict is enforced.
    pub mode: Mode,
    /// Place in the pipeline among limits that are otherwise equal in rank; lower is earlier.
    pub order: i32,
    /// What holds while nothing is heard from the control plane.
    pub on_silence: OnSilence,
    /// Distinct lists of values tracked; all others share one bucket.
    pub max_buckets: u32,
    /// What becomes of a request that lacks a `per` key.
    pub missing: Missing,
    /// Most that a budget saves up, in cost units; `None` takes one minute's worth. Only for limits per minute and
    /// longer. Of an exact limit, most that passes at one moment; `None` takes the amount of its rate.
    pub burst: Option<u64>,
    /// How far a node may exceed its share between two plans. Only for limits per second.
    pub surge_guard: SurgeGuard,
    /// Most that one agent can plausibly be offered of a bucket: what it reports beyond does not count, so that one bad agent
    /// cannot have everybody else's requests dropped.
    pub max_rate_per_agent: Option<Rate>,
    /// How far it reaches: it holds for each zone, for each region, or for all together.
    pub scope: Scope,
    /// How the limit is held.
    pub enforcement: Enforcement,
    /// Other rates for some of its buckets.
    pub overrides: Vec<Override>,
    /// Which zones try it first, and what holds elsewhere; `None` holds everywhere.
    pub rollout: Option<Rollout>,
}

impl Limit {
    /// Most that a budget saves up, in cost units: by default what its rate gives in a minute, and never more than
    /// what it gives in its own unit. `None` for limits per second, which are rates and save nothing up, and for exact
    /// limits, which the control plane does not count.
    pub fn budget(&self) -> Option<u64> {
        let Rate::Per { amount, unit } = self.rate else { return None };
        if unit == Unit::Second || self.exact().is_some() {
            return None;
        }
        let minutes = unit.duration().as_secs() / 60;
        Some(self.burst.unwrap_or(amount.div_ceil(minutes)).min(amount))
    }
}

/// How far a node may exceed its share of a limit until its parents have heard of a surge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SurgeGuard {
    /// As far as its traffic goes.
    Off,
    /// So many hundredths of its share; 150 is half as much again.
    Hundredths(u32),
}

impl SurgeGuard {
    /// The multiple of its share that a node may pass; `None` when off.
    pub fn factor(self) -> Option<f64> {
        match self {
            SurgeGuard::Off => None,
            SurgeGuard::Hundredths(hundredths) => Some(f64::from(hundredths) / 100.0),
        }
    }
}

impl Default for SurgeGuard {
    fn default() -> Self {
        SurgeGuard::Hundredths(150)
    }
}

/// Whether a limit's verdict is enforced. The verdict itself is the same in every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// What is over the limit is dropped.
    #[default]
    Enforce,
    /// What is over the limit is counted as such, and passes.
    Shadow,
    /// Nothing is matched or counted.
    Off,
}

/// What a limit does once its plan has grown old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OnSilence {
    /// What holds in the end.
    pub policy: SilencePolicy,
    /// How long the last ratio stays before `policy` takes over; `None` takes the node's own `--hold`.
    pub hold: Option<Duration>,
}

impl Default for OnSilence {
    fn default() -> Self {
        Self { policy: SilencePolicy::Hold, hold: None }
    }
}

/// What a limit does when the hold is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SilencePolicy {
    /// Keeps the last ratio for the hold, then lets everything pass.
    #[default]
    Hold,
    /// Lets everything pass as soon as the plan is no longer fresh.
    Open,
    /// Keeps the last ratio for the hold, then drops everything.
    Closed,
}

/// What becomes of a request that lacks a key in `per`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Missing {
    /// The limit does not concern it.
    #[default]
    Skip,
    /// It counts in the bucket of the empty value.
    Empty,
    /// It is dropped.
    Drop,
}

/// All limits in force together, in pipeline order.
#[derive(Clone, Debug)]
pub struct LimitSet {
    limits: Vec<Arc<Limit>>,
    by_name: HashMap<Arc<str>, usize>,
    /// The limits by ratio that have overrides.
    overridden: HashMap<Arc<str>, Arc<Overridden>>,
    digest: Digest,
}

impl LimitSet {
    /// Sorts limits into pipeline order: whatever order they came in, the same set results.
    ///
    /// Drop-ratio limits go before exact ones, so that a dropped request is never charged. Then more `per` keys go first, then the narrower scope, then more `match` keys, then the lower `order`, then the name: the narrow limit
    /// trims a hog before the wide one counts, so that the wide one's ratio falls on everybody alike.
    pub fn new(mut limits: Vec<Limit>) -> Self {
        limits.iter_mut().filter(|limit| !limit.exactly).for_each(|limit| limit.matches.sort());
        limits.sort_by(|a, b| {
            (a.exact().is_some().cmp(&b.exact().is_some()))
                .then(b.per.len().cmp(&a.per.len()))
                .then(a.scope.cmp(&b.scope))
                .then(b.matches.len().cmp(&a.matches.len()))
                .then(a.order.cmp(&b.order))
                .then(a.name.cmp(&b.name))
        });
        let digest = Digest::of(&limits);
        let by_name = limits.iter().enumerate().map(|(place, limit)| (limit.name.clone(), place)).collect();
        let limits: Vec<Arc<Limit>> = limits.into_iter().map(Arc::new).collect();
        let by_ratio = limits.iter().filter(|limit| limit.exact().is_none());
        let overridden =
            by_ratio.filter_map(|limit| Some((limit.name.clone(), Arc::new(limit.overridden()?)))).collect();
        Self { limits, by_name, overridden, digest }
    }

    /// The limits, in pipeline order.
    pub fn limits(&self) -> &[Arc<Limit>] {
        &self.limits
    }

    /// The limit of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Limit>> {
        self.by_name.get(name).map(|place| &self.limits[*place])
    }

    /// A limit by ratio as it holds for each of its buckets, if it has overrides.
    pub fn overridden(&self, name: &str) -> Option<&Arc<Overridden>> {
        self.overridden.get(name)
    }

    /// Tells this set from every other one, on whatever machine it was computed.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl PartialEq for LimitSet {
    fn eq(&self, other: &Self) -> bool {
        self.limits == other.limits
    }
}

impl Eq for LimitSet {}

impl Default for LimitSet {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// Identifies a set of limits by its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// The digest of limits in pipeline order: SHA-256 over each field, length first, cut to 128 bits.
    fn of(limits: &[Limit]) -> Self {
        let mut hash = Sha256::new();
        for limit in limits {
            let matches = limit.matches.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
            let texts: Vec<&str> = [&*limit.name].into_iter().chain(matches).collect();
            for list in [texts, limit.per.iter().map(String::as_str).collect()] {
                hash.update((list.len() as u64).to_le_bytes());
                for text in list {
                    hash.update((text.len() as u64).to_le_bytes());
                    hash.update(text);
                }
            }
            // Debug of these plain values is stable within a release; a new release computes a new digest at
            // worst, which costs one more sending of the limits.
            let rest = (limit.rate, limit.cost, limit.mode, limit.order, limit.on_silence);
            hash.update(format!("{rest:?}{:?}{:?}", limit.max_buckets, limit.missing));
            hash.update(format!("{:?}{:?}", limit.burst, limit.surge_guard));
            hash.update(format!("{:?}", limit.max_rate_per_agent));
            if limit.scope != Scope::Global {
                hash.update(format!("{:?}", limit.scope));
            }
            // Limits that have none of these keep the digest that earlier releases gave them.
            if limit.exact().is_some() || !limit.overrides.is_empty() {
                hash.update(format!("{:?}{:?}", limit.enforcement, limit.overrides));
            }
            if limit.exactly {
                hash.update("exactly");
            }
            if let Some(rollout) = &limit.rollout {
                hash.update(format!("{rollout:?}"));
            }
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash.finalize()[..16]);
        Self(digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(amount: u64, unit: Unit, burst: Option<u64>) -> Option<u64> {
        let limit = Limit {
            name: "a".into(),
            matches: Vec::new(),
            exactly: false,
            per: Vec::new(),
            rate: Rate::Per { amount, unit },
            cost: 1,
            mode: Mode::Enforce,
            order: 0,
            on_silence: OnSilence::default(),
            max_buckets: 1,
            missing: Missing::Skip,
            burst,
            surge_guard: SurgeGuard::default(),
            max_rate_per_agent: None,
            scope: Scope::Global,
            enforcement: Enforcement::DropRatio,
            overrides: Vec::new(),
            rollout: None,
        };
        limit.budget()
    }

    #[test]
    fn a_budget_saves_up_a_minute_of_its_rate_rounded_up() {
        assert_eq!(budget(6, Unit::Minute, None), Some(6));
        assert_eq!(budget(1000, Unit::Hour, None), Some(17));
        assert_eq!(budget(1, Unit::Day, None), Some(1));
        assert_eq!(budget(0, Unit::Day, None), Some(0));
    }

    #[test]
    fn a_burst_takes_the_place_of_a_minute_and_never_exceeds_the_amount() {
        assert_eq!(budget(60, Unit::Minute, Some(5)), Some(5));
        assert_eq!(budget(1000, Unit::Hour, Some(1000)), Some(1000));
        assert_eq!(budget(6, Unit::Minute, Some(7)), Some(6));
    }

    #[test]
    fn a_limit_per_second_saves_nothing_up() {
        assert_eq!(budget(400, Unit::Second, None), None);
        assert_eq!(budget(400, Unit::Second, Some(5)), None);
    }
}
