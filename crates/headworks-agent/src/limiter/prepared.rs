//! Requests that come again and again with the same attributes: which buckets they meet is worked out once for each set of
//! limits, and by each thread.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use headworks_core::attributes::Attributes;
use headworks_core::matching::Encounter;
use smallvec::SmallVec;

use super::local::{self, Hands, Local};
use super::pipeline::{Met, Pipeline};
use super::record::Record;
use super::rules::Rules;
use super::stage::Place;
use super::verdict::Verdict;
use super::{Inner, Request, exact};

/// The generation of no limits.
const NEVER: u64 = u64::MAX;

/// A request whose attributes are known beforehand, such as `service=checkout` in that service. Keep it, and ask it
/// each time; threads may share one.
#[derive(Debug)]
pub struct Prepared {
    limiter: Arc<Inner>,
    attributes: Box<[(String, String)]>,
    /// Where threads keep what it meets.
    slot: usize,
    /// No other has, or had, the same.
    serial: u64,
    /// The records that it holds on to, and since which limits.
    pinned: Mutex<(u64, Vec<u32>)>,
}

/// What a prepared request meets, as one thread knows it.
#[derive(Debug)]
pub(super) struct Resolved {
    serial: u64,
    generation: u64,
    meets: Box<[Meets]>,
    /// Some exact limit may concern it.
    exact: bool,
}

#[derive(Clone, Copy, Debug)]
struct Meets {
    met: Met,
    number: u32,
    /// It lacks a value, and the limit drops such requests.
    lacks: bool,
}

/// Places in which threads keep what prepared requests meet.
#[derive(Debug, Default)]
pub(super) struct Slots {
    serials: AtomicU64,
    free: Mutex<(usize, Vec<usize>)>,
}

impl Slots {
    fn take(&self) -> (usize, u64) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = free.1.pop().unwrap_or_else(|| {
            free.0 += 1;
            free.0 - 1
        });
        (slot, self.serials.fetch_add(1, Relaxed))
    }

    fn leave(&self, slot: usize) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).1.push(slot);
    }
}

impl Prepared {
    pub(super) fn new(limiter: Arc<Inner>, attributes: &[(&str, &str)]) -> Self {
        let (slot, serial) = limiter.slots.take();
        let attributes =
            attributes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self { limiter, attributes, slot, serial, pinned: Mutex::default() }
    }

    /// Decides such a request, as [`Limiter::check`](crate::Limiter::check) does.
    #[inline]
    pub fn check(&self, asked: Option<u32>) -> Verdict {
        local::with(&self.limiter, |local| self.check_here(local, asked))
    }

    #[inline(always)]
    fn check_here(&self, local: &mut Local, asked: Option<u32>) -> Verdict {
        let Local { rules, hands, prepared, .. } = local;
        let inner = &*self.limiter;
        let rules = local::current(rules, inner);
        let is_current =
            |resolved: &&Resolved| resolved.serial == self.serial && resolved.generation == rules.generation;
        let resolved = match prepared.get(self.slot).and_then(Option::as_ref).filter(is_current) {
            Some(resolved) => resolved,
            None => self.resolve_into(prepared, rules, hands),
        };
        if asked == Some(0) || resolved.exact {
            return self.check_exact(rules, hands, resolved, asked);
        }
        let mut pipeline = Pipeline::new(&inner.bell, hands, asked, inner.shadow_all.load(Relaxed));
        let allowed = resolved.run(inner, &mut pipeline);
        Verdict::by_ratio(rules.generation, pipeline.ended(allowed, &inner.ledger))
    }

    #[cold]
    fn check_exact(
        &self,
        rules: &Rules,
        hands: &mut Hands,
        resolved: &Resolved,
        asked: Option<u32>,
    ) -> Verdict {
        let inner = &*self.limiter;
        let pairs = self.pairs();
        let shadow_all = inner.shadow_all.load(Relaxed);
        let request = Request { attributes: Attributes::new(&pairs), asked, shadow_all };
        if request.only_looks() {
            return exact::check(rules, request, || inner.wall.now());
        }
        let mut pipeline = Pipeline::new(&inner.bell, hands, asked, shadow_all);
        let allowed = resolved.run(inner, &mut pipeline);
        inner.go_on(rules, request, pipeline.ended(allowed, &inner.ledger), &pipeline.paid)
    }

    fn pairs(&self) -> SmallVec<[(&str, &str); 8]> {
        self.attributes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    #[cold]
    fn resolve_into<'r>(
        &self,
        prepared: &'r mut Vec<Option<Resolved>>,
        rules: &Rules,
        hands: &mut Hands,
    ) -> &'r Resolved {
        if prepared.len() <= self.slot {
            prepared.resize_with(self.slot + 1, || None);
        }
        prepared[self.slot].insert(self.resolve(rules, hands))
    }

    fn resolve(&self, rules: &Rules, hands: &mut Hands) -> Resolved {
        let pairs = self.pairs();
        let attributes = Attributes::new(&pairs);
        let ledger = &self.limiter.ledger;
        let mut meets = Vec::new();
        for (place, stage) in rules.stages_for(attributes) {
            match stage.limit.encounter(attributes) {
                Encounter::Unconcerned => {}
                Encounter::Counted(values) => {
                    let bucket = stage.bucket(values.as_slice().iter().copied(), ledger, hands);
                    meets.extend(bucket.map(|Place { found: (number, _), rule, limit }| Meets {
                        met: Met::new(place, rule, limit, stage.is_budget),
                        number,
                        lacks: false,
                    }));
                }
                Encounter::DroppedForMissing => {
                    let met = Met::new(place, 0, &stage.limit, false);
                    let rest = stage.buckets.rest(ledger);
                    meets.extend(rest.map(|(number, _)| Meets { met, number, lacks: true }));
                }
            }
        }
        self.pin(rules.generation, &meets);
        let exact = rules.exact_for(attributes).next().is_some();
        // What finds no place may find one any time: that is looked up again for each request.
        let has_rest =
            |meets: &Meets| !meets.lacks && ledger.record(meets.number).is_some_and(Record::is_rest);
        let lasts = !meets.iter().any(has_rest);
        let generation = if lasts { rules.generation } else { NEVER };
        Resolved { serial: self.serial, generation, meets: meets.into(), exact }
    }

    /// Holds on to the records of the newest limits that any thread has worked it out by.
    fn pin(&self, generation: u64, meets: &[Meets]) {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        if pinned.0 >= generation {
            return;
        }
        let ledger = &self.limiter.ledger;
        let new: Vec<u32> = meets.iter().map(|meets| meets.number).collect();
        new.iter().for_each(|number| ledger.pin(*number));
        pinned.1.iter().for_each(|number| ledger.unpin(*number));
        *pinned = (generation, new);
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        let pinned = self.pinned.get_mut().unwrap_or_else(PoisonError::into_inner);
        pinned.1.iter().for_each(|number| self.limiter.ledger.unpin(*number));
        self.limiter.slots.leave(self.slot);
    }
}

impl Resolved {
    /// Sends the request through the pipeline; whether it passes.
    #[inline(always)]
    fn run(&self, inner: &Inner, pipeline: &mut Pipeline<'_>) -> bool {
        self.meets.iter().all(|meets| match inner.ledger.record(meets.number) {
            Some(record) if meets.lacks => pipeline.lack(meets.met, record),
            Some(record) => pipeline.meet(meets.met, meets.number, record),
            None => true,
        })
    }
}
