//! One limit of the pipeline, with its buckets and what overrides make of it for each.

use std::collections::HashMap;
use std::sync::Arc;

use headworks_core::bucket::Counts;
use headworks_core::limits::{Limit, LimitSet, Mode, Overridden};
use headworks_core::units::DropRatio;

use super::buckets::{Buckets, Found};
use super::ledger::Ledger;
use super::local::Hands;
use super::record::Record;
use super::stats::LimitStats;
use crate::exact::Values;

/// One limit of the pipeline.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) limit: Arc<Limit>,
    /// Some bucket of it pays for what the whole pipeline admits.
    pub(super) is_budget: bool,
    pub(super) buckets: Arc<Buckets>,
    overridden: Option<Arc<Ruled>>,
    /// Rises with every change of the limit, so that a bucket knows whether what it goes by is old.
    generation: u64,
}

/// A limit with overrides, numbered.
#[derive(Debug)]
struct Ruled {
    overridden: Arc<Overridden>,
    /// The limit itself, and what each override makes of it.
    limits: Vec<Arc<Limit>>,
    /// By where each lies.
    places: HashMap<usize, u32>,
    /// Some override turns its buckets off.
    turns_off: bool,
}

impl Ruled {
    fn of(own: &Arc<Limit>, overridden: Arc<Overridden>) -> Self {
        let limits: Vec<_> = std::iter::once(own).chain(overridden.others()).cloned().collect();
        let places = (0..).zip(&limits).map(|(place, limit)| (Arc::as_ptr(limit).addr(), place)).collect();
        let turns_off = limits[1..].iter().any(|limit| limit.mode == Mode::Off);
        Self { overridden, limits, places, turns_off }
    }

    /// The place of what holds for these values, and whether an override names exactly this bucket.
    fn look_up<V: AsRef<str>>(&self, values: &[V]) -> (u32, bool) {
        let (limit, named) = self.overridden.of_values(values);
        (self.places.get(&Arc::as_ptr(limit).addr()).copied().unwrap_or(0), named)
    }
}

/// A bucket that a request meets.
pub(super) struct Place<'s, 'l> {
    pub(super) found: Found<'l>,
    /// Of the overrides, the one that holds; 0 for none.
    pub(super) rule: u32,
    /// The limit as it holds for the bucket.
    pub(super) limit: &'s Arc<Limit>,
}

impl Stage {
    /// A limit that comes into force, in the place of one that told its buckets apart alike.
    pub(super) fn new(
        limit: &Arc<Limit>,
        set: &LimitSet,
        before: Option<&Stage>,
        generation: u64,
        ledger: &Ledger,
    ) -> Self {
        if let Some(same) = before.filter(|before| before.limit == *limit) {
            return same.clone();
        }
        let overridden = set.overridden(&limit.name);
        let buckets = before.map(|stage| stage.buckets.clone());
        let buckets = buckets.unwrap_or_else(|| Arc::new(Buckets::new(limit, ledger)));
        let others = overridden.iter().flat_map(|overridden| overridden.others());
        let is_budget = others.chain([limit]).any(|limit| limit.budget().is_some());
        let overridden = overridden.map(|overridden| Arc::new(Ruled::of(limit, overridden.clone())));
        Self { limit: limit.clone(), is_budget, buckets, overridden, generation }
    }

    /// Whether overrides turn some of its buckets off.
    pub(super) fn turns_some_off(&self) -> bool {
        self.overridden.as_ref().is_some_and(|ruled| ruled.turns_off)
    }

    /// Whether an override turns the bucket of these values off. Values that are not tracked are no override's.
    pub(super) fn turns_off(&self, record: &Record) -> bool {
        let Some(ruled) = self.overridden.as_ref().filter(|ruled| ruled.turns_off) else { return false };
        let values = record.values();
        values.is_some_and(|values| ruled.overridden.of_values(&values).0.mode == Mode::Off)
    }

    /// The limit, as this of its overrides makes it.
    pub(super) fn ruled(&self, rule: usize) -> &Arc<Limit> {
        let ruled = self.overridden.as_ref().and_then(|ruled| ruled.limits.get(rule));
        ruled.unwrap_or(&self.limit)
    }

    /// The limit, and what each override makes of it.
    pub(super) fn all_ruled(&self) -> Vec<Arc<Limit>> {
        self.overridden.as_ref().map_or_else(|| vec![self.limit.clone()], |ruled| ruled.limits.clone())
    }

    /// The bucket of these values, made on first sight, and the limit as it holds for it. `None` if an override turns it off
    /// there: then the limit does not concern the request.
    #[inline]
    pub(super) fn bucket<'s, 'l, 'v>(
        &'s self,
        values: impl Iterator<Item = &'v str> + Clone,
        ledger: &'l Ledger,
        hands: &mut Hands,
    ) -> Option<Place<'s, 'l>> {
        match (self.buckets.find(&values, ledger, hands), &self.overridden) {
            (Some(found), None) => Some(Place { found, rule: 0, limit: &self.limit }),
            (found, ruled) => {
                let values: Values<'v> = values.collect();
                self.closer(found, ruled.as_deref(), &values, ledger)
            }
        }
    }

    /// The same, where there is no bucket yet, or where overrides say what holds.
    #[inline(never)]
    fn closer<'s, 'l>(
        &'s self,
        found: Option<Found<'l>>,
        ruled: Option<&'s Ruled>,
        values: &[&str],
        ledger: &'l Ledger,
    ) -> Option<Place<'s, 'l>> {
        let Some(ruled) = ruled else {
            let found = found.or_else(|| self.buckets.make(&self.limit, false, values, ledger))?;
            return Some(Place { found, rule: 0, limit: &self.limit });
        };
        self.ruled_bucket(ruled, found, values, ledger)
    }

    fn ruled_bucket<'s, 'l>(
        &'s self,
        ruled: &'s Ruled,
        found: Option<Found<'l>>,
        values: &[&str],
        ledger: &'l Ledger,
    ) -> Option<Place<'s, 'l>> {
        if let Some(found) = found {
            if found.1.is_rest() {
                return Some(Place { found, rule: 0, limit: &self.limit });
            }
            if let Some(rule) = found.1.ruling(self.generation) {
                return self.placed(ruled, found, rule);
            }
        }
        let (rule, named) = ruled.look_up(values);
        let limit = ruled.limits.get(rule as usize).filter(|limit| limit.mode != Mode::Off)?;
        let found = found.or_else(|| self.buckets.make(limit, named, values, ledger))?;
        if found.1.is_rest() {
            return Some(Place { found, rule: 0, limit: &self.limit });
        }
        found.1.rule(self.generation, rule);
        self.placed(ruled, found, rule)
    }

    fn placed<'s, 'l>(&'s self, ruled: &'s Ruled, found: Found<'l>, rule: u32) -> Option<Place<'s, 'l>> {
        let limit = ruled.limits.get(rule as usize).unwrap_or(&self.limit);
        (limit.mode != Mode::Off).then_some(Place { found, rule, limit })
    }

    /// What it has counted, but for its buckets.
    pub(super) fn stats(&self) -> LimitStats {
        LimitStats {
            limit: self.limit.clone(),
            counts: Counts::default(),
            drop_ratio: DropRatio::NONE,
            buckets: 0,
            untracked: 0,
        }
    }
}
