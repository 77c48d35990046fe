//! Requests that come again and again with the same attributes: which buckets they meet is worked out once for each set of
//! limits.

use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed};

use fastrand::Rng;
use headworks_core::attributes::Attributes;
use headworks_core::matching::Encounter;
use headworks_core::units::Headroom;
use smallvec::SmallVec;

use super::Inner;
use super::cells::Cell;
use super::local::{self, Local};
use super::pipeline::Met;
use super::rules::Rules;
use super::slab::Held;
use super::stage::Place;
use super::verdict::{ByRatio, Named, Verdict, Which};

/// The generation of no limits.
const NEVER: u64 = u64::MAX;
/// Requests after which a value without a bucket looks for one.
const TRIES_AFTER: u32 = 1000;

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
    /// Requests until it is worked out anew, though nothing has changed: some value finds no place among the buckets of its limit,
    /// and may find one any time. `None` if all have their buckets.
    tries_again: Option<u32>,
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
    /// That of the record when it was looked up.
    life: u32,
    /// It lacks a value, and the limit drops such requests.
    lacks: bool,
}

impl Meets {
    /// Whether its record is another bucket's or nobody's by now, or its requests are counted elsewhere.
    #[inline(always)]
    fn is_gone(&self) -> bool {
        self.held.record().life_here() != self.life
    }
}

impl Prepared {
    pub(super) fn new(limiter: Arc<Inner>, attributes: &[(&str, &str)]) -> Self {
        let attributes =
            attributes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self::of(limiter, attributes)
    }

    fn of(limiter: Arc<Inner>, attributes: Arc<[(String, String)]>) -> Self {
        let (generation, meets, random) = (NEVER, Vec::new(), Rng::new());
        Self { limiter, attributes, generation, meets, tries_again: None, meets_exact: false, random }
    }

    /// Decides such a request, as [`Limiter::check`](crate::Limiter::check) does.
    #[inline]
    pub fn check(&mut self, asked: Option<u32>) -> Verdict {
        let is_old = self.generation != self.limiter.generation.load(Acquire);
        if is_old || self.meets.iter().any(Meets::is_gone) {
            self.resolve();
        }
        if self.meets_exact || asked == Some(0) || self.tries_again.is_some() {
            return self.check_plainly(asked);
        }
        Verdict::by_ratio(self.generation, self.run(asked))
    }

    /// Sends the request through the pipeline.
    #[inline(always)]
    fn run(&mut self, asked: Option<u32>) -> ByRatio {
        let Self { limiter, meets, random, .. } = self;
        let (inner, shadow_all) = (&**limiter, limiter.shadow_all.load(Relaxed));
        let mut named: Option<Named> = None;
        // A bit for each of the first 64 limits: whether it is a budget that the request passed.
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
                return ByRatio { allowed: false, named };
            }
            if met.is_budget && !over {
                paid |= 1_u64.checked_shl(u32::try_from(place).unwrap_or(u32::MAX)).unwrap_or(0);
            }
        }
        ByRatio { allowed: true, named }
    }

    #[cold]
    #[inline(never)]
    fn refund(&self, paid: u64, asked: Option<u32>) {
        let passed = self.meets.iter().enumerate().filter(|(place, _)| *place < 64 && paid >> place & 1 == 1);
        passed.for_each(|(_, meets)| {
            meets.held.record().refuse_later(u64::from(asked.unwrap_or(meets.met.cost)));
        });
    }

    /// Decides it as any other request: where exact limits have a say, or some value has no bucket of its own.
    #[cold]
    #[inline(never)]
    fn check_plainly(&mut self, asked: Option<u32>) -> Verdict {
        if let Some(left) = &mut self.tries_again {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.resolve();
            }
        }
        let limiter = self.limiter.clone();
        let pairs = pairs(&self.attributes);
        local::with(&limiter, |local| limiter.check(local, Attributes::new(&pairs), asked))
    }

    /// Works out what it meets under the limits in force.
    #[cold]
    #[inline(never)]
    fn resolve(&mut self) {
        let limiter = self.limiter.clone();
        self.give_back();
        local::with(&limiter, |local| self.resolve_by(local));
    }

    fn resolve_by(&mut self, local: &mut Local) {
        let Local { rules, hands, .. } = local;
        let rules: &Rules = local::current(rules, &self.limiter);
        let (pairs, ledger) = (pairs(&self.attributes), &self.limiter.ledger);
        let attributes = Attributes::new(&pairs);
        (self.generation, self.tries_again) = (rules.generation, None);
        self.meets_exact = rules.exact_for(attributes).next().is_some();
        let mut found = Vec::new();
        for (place, stage) in rules.stages_for(attributes) {
            match stage.limit.encounter(attributes) {
                Encounter::Unconcerned => {}
                Encounter::Counted(values) => {
                    let bucket = stage.bucket(values.as_slice().iter().copied(), ledger, hands);
                    let Some(Place { found: (number, record), rule, limit }) = bucket else { continue };
                    if record.is_rest() {
                        self.tries_again = Some(TRIES_AFTER);
                    }
                    found.push((Met::new(Which::new(place, rule), limit, stage.is_budget), number, false));
                }
                Encounter::DroppedForMissing => {
                    let met = Met::new(Which::new(place, 0), &stage.limit, false);
                    found.extend(stage.buckets.rest(ledger).map(|(number, _)| (met, number, true)));
                }
            }
        }
        if self.meets_exact || self.tries_again.is_some() {
            return;
        }
        let lent = found.into_iter().filter_map(|(met, number, lacks)| {
            let (held, cell) = ledger.lend(number)?;
            let life = held.record().life();
            Some(Meets { met, number, held, cell, life, lacks })
        });
        self.meets = lent.collect();
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
