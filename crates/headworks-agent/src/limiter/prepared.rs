//! Requests that come again and again with the same attributes: which buckets they meet is worked out once for each set of
//! limits.

use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed};

use fastrand::Rng;
use headworks_core::attributes::Attributes;
use headworks_core::matching::Encounter;
use headworks_core::units::Headroom;
use smallvec::SmallVec;

use super::cells::Cell;
use super::local::{self, Local};
use super::pipeline::{Met, Paid, refund};
use super::rules::Rules;
use super::slab::Held;
use super::stage::Place;
use super::verdict::{ByRatio, Named, Verdict, Which};
use super::{Inner, Request, exact};

/// The generation of no limits.
const NEVER: u64 = u64::MAX;

/// A request whose attributes are known beforehand, such as `service=checkout` in that service: to decide it takes a few
/// nanoseconds. Keep it, and ask it each time. It counts where nobody else does, so each thread needs one of its own, which a
/// clone is.
#[derive(Debug)]
pub struct Prepared {
    limiter: Arc<Inner>,
    attributes: Arc<[(String, String)]>,
    /// By which limits it was worked out.
    generation: u64,
    meets: Vec<Meets>,
    /// Some exact limit may concern it.
    meets_exact: bool,
    random: Rng,
}

#[derive(Debug)]
struct Meets {
    met: Met,
    number: u32,
    held: Held,
    cell: Arc<Cell>,
    /// It lacks a value, and the limit drops such requests.
    lacks: bool,
}

impl Prepared {
    pub(super) fn new(limiter: Arc<Inner>, attributes: &[(&str, &str)]) -> Self {
        let attributes =
            attributes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self::of(limiter, attributes)
    }

    fn of(limiter: Arc<Inner>, attributes: Arc<[(String, String)]>) -> Self {
        let (generation, meets, random) = (NEVER, Vec::new(), Rng::new());
        Self { limiter, attributes, generation, meets, meets_exact: false, random }
    }

    /// Decides such a request, as [`Limiter::check`](crate::Limiter::check) does.
    #[inline]
    pub fn check(&mut self, asked: Option<u32>) -> Verdict {
        if self.generation != self.limiter.generation.load(Acquire) {
            self.resolve();
        }
        if self.meets_exact || asked == Some(0) {
            return self.check_exact(asked);
        }
        let (by_ratio, _) = self.run(asked);
        Verdict::by_ratio(self.generation, by_ratio)
    }

    /// Sends the request through the pipeline; a bit for each of the first 64 limits tells which budgets it passed.
    #[inline(always)]
    fn run(&mut self, asked: Option<u32>) -> (ByRatio, u64) {
        let Self { limiter, meets, random, .. } = self;
        let (inner, shadow_all) = (&**limiter, limiter.shadow_all.load(Relaxed));
        let mut named: Option<Named> = None;
        let mut paid = 0;
        for (place, meets) in meets.iter().enumerate() {
            let (met, record) = (meets.met, meets.held.record());
            let cost = u64::from(asked.unwrap_or(met.cost));
            let enforced = met.is_enforced && !shadow_all;
            let (over, headroom) = if meets.lacks {
                record.drop_anyway(cost, enforced);
                (true, Headroom::SHUT)
            } else {
                let threads = &inner.ledger.threads;
                let over = record.decide_in(&meets.cell, cost, enforced, random, threads, &inner.bell);
                (over, record.headroom())
            };
            if enforced && (over || named.is_none_or(|least| headroom < least.headroom)) {
                named = Some(Named { which: met.which, headroom });
            }
            if enforced && over {
                if paid != 0 {
                    self.refund(paid, asked);
                }
                return (ByRatio { allowed: false, named }, 0);
            }
            if met.is_budget && !over {
                paid |= 1_u64.checked_shl(u32::try_from(place).unwrap_or(u32::MAX)).unwrap_or(0);
            }
        }
        (ByRatio { allowed: true, named }, paid)
    }

    #[cold]
    #[inline(never)]
    fn refund(&self, paid: u64, asked: Option<u32>) {
        refund(&self.limiter.ledger, &self.paid(paid, asked));
    }

    fn paid(&self, paid: u64, asked: Option<u32>) -> Paid {
        let passed = self.meets.iter().enumerate().filter(|(place, _)| *place < 64 && paid >> place & 1 == 1);
        passed.map(|(_, meets)| (meets.number, u64::from(asked.unwrap_or(meets.met.cost)))).collect()
    }

    #[cold]
    #[inline(never)]
    fn check_exact(&mut self, asked: Option<u32>) -> Verdict {
        let limiter = self.limiter.clone();
        let attributes = self.attributes.clone();
        let pairs = pairs(&attributes);
        let shadow_all = limiter.shadow_all.load(Relaxed);
        let request = Request { attributes: Attributes::new(&pairs), asked, shadow_all };
        let rules = limiter.rules.load();
        if request.only_looks() {
            return exact::check(&rules, request, || limiter.wall.now());
        }
        let (by_ratio, paid) = self.run(asked);
        limiter.go_on(&rules, request, by_ratio, &self.paid(paid, asked))
    }

    /// Works out what it meets under the limits in force.
    #[cold]
    #[inline(never)]
    fn resolve(&mut self) {
        let limiter = self.limiter.clone();
        let (generation, meets, exact) = local::with(&limiter, |local| self.resolved(local));
        self.give_back();
        (self.generation, self.meets, self.meets_exact) = (generation, meets, exact);
    }

    fn resolved(&self, local: &mut Local) -> (u64, Vec<Meets>, bool) {
        let Local { rules, hands, .. } = local;
        let rules: &Rules = local::current(rules, &self.limiter);
        let (pairs, ledger) = (pairs(&self.attributes), &self.limiter.ledger);
        let attributes = Attributes::new(&pairs);
        let (mut all, mut lasts) = (Vec::new(), true);
        for (place, stage) in rules.stages_for(attributes) {
            let found = match stage.limit.encounter(attributes) {
                Encounter::Unconcerned => None,
                Encounter::Counted(values) => {
                    let bucket = stage.bucket(values.as_slice().iter().copied(), ledger, hands);
                    bucket.map(|Place { found: (number, record), rule, limit }| {
                        // What finds no place may find one any time: that is looked up again for each request.
                        lasts &= !record.is_rest();
                        (Met::new(Which::new(place, rule), limit, stage.is_budget), number, false)
                    })
                }
                Encounter::DroppedForMissing => {
                    let met = Met::new(Which::new(place, 0), &stage.limit, false);
                    stage.buckets.rest(ledger).map(|(number, _)| (met, number, true))
                }
            };
            all.extend(found.and_then(|(met, number, lacks)| {
                let (held, cell) = ledger.lend(number)?;
                Some(Meets { met, number, held, cell, lacks })
            }));
        }
        let exact = rules.exact_for(attributes).next().is_some();
        (if lasts { rules.generation } else { NEVER }, all, exact)
    }

    fn give_back(&mut self) {
        for meets in self.meets.drain(..) {
            self.limiter.ledger.give_back(meets.number, &meets.cell);
        }
    }
}

impl Clone for Prepared {
    fn clone(&self) -> Self {
        Self::of(self.limiter.clone(), self.attributes.clone())
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn pairs(attributes: &[(String, String)]) -> SmallVec<[(&str, &str); 8]> {
    attributes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}
