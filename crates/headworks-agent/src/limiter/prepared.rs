//! Requests that come again and again with the same attributes: which buckets they meet is worked out once for each set of
//! limits.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use fastrand::Rng;
use headworks_core::attributes::Attributes;
use headworks_core::matching::Encounter;
use smallvec::SmallVec;

use super::Inner;
use super::cells::Cell;
use super::ledger::Ledger;
use super::local::{self, Hands, Local};
use super::pipeline::{Met, Paid, Pipeline, refund};
use super::rules::Rules;
use super::slab::Held;
use super::stage::Place;
use super::verdict::{ByRatio, Verdict, Which};

/// The generation of no limits, and no epoch.
const NEVER: u64 = u64::MAX;
/// Requests after which a value without a bucket looks for one.
const TRIES_AFTER: u32 = 1000;

/// A request whose attributes are known beforehand, such as `service=checkout` in that service: to decide it takes a few
/// nanoseconds. Keep it, and ask it each time. It counts where nobody else does, so each thread needs one of its own, which a
/// clone is.
#[derive(Debug)]
pub struct Prepared {
    limiter: Arc<Inner>,
    /// That of the limiter: one step less to what every request looks at.
    ledger: Arc<Ledger>,
    attributes: Arc<[(String, String)]>,
    /// By which limits it was worked out.
    generation: u64,
    /// The ledger's then.
    epoch: u64,
    meets: Vec<Meets>,
    /// It is decided as any other request: some exact limit may concern it, or a limit drops it for what it lacks, or it is to
    /// try again.
    plainly: bool,
    /// Requests until it is worked out anew, though nothing has changed: some value finds no place among the buckets of its limit,
    /// and may find one any time. `None` if all have their buckets.
    tries_again: Option<u32>,
    random: Rng,
}

#[derive(Debug)]
struct Meets {
    met: Met,
    number: u32,
    held: Held,
    cell: Arc<Cell>,
}

/// How a request is to be decided from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// By the records that it holds on to.
    Held,
    /// As any other, since exact limits have a say, or a value is missing.
    Special,
    /// The same, since a value has no bucket of its own for now.
    Homeless,
}

impl Prepared {
    pub(super) fn new(limiter: Arc<Inner>, attributes: &[(&str, &str)]) -> Self {
        let attributes =
            attributes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self::of(limiter, attributes)
    }

    fn of(limiter: Arc<Inner>, attributes: Arc<[(String, String)]>) -> Self {
        Self {
            ledger: limiter.ledger.clone(),
            limiter,
            attributes,
            generation: NEVER,
            epoch: NEVER,
            meets: Vec::new(),
            plainly: false,
            tries_again: None,
            random: Rng::new(),
        }
    }

    /// Decides such a request, as [`Limiter::check`](crate::Limiter::check) does. It becomes a part of its caller, so that what
    /// nobody asks of the verdict is not worked out.
    #[inline(always)]
    pub fn check(&mut self, asked: Option<u32>) -> Verdict {
        if self.epoch != self.ledger.epoch() {
            self.resolve();
        }
        if self.plainly || asked == Some(0) {
            return self.check_plainly(asked);
        }
        Verdict::by_ratio(self.generation, self.run(asked))
    }

    /// Sends the request through the pipeline.
    #[inline(always)]
    fn run(&mut self, asked: Option<u32>) -> ByRatio {
        let Self { limiter, ledger, meets, random, .. } = self;
        let mut pipeline = Pipeline::new(asked, limiter.shadow_all.load(Relaxed));
        let mut paid = Paid::new();
        // No iterator with a closure: all that the loop works with would be read and written by pointers.
        for Meets { met, number, held, cell } in meets.iter() {
            let (record, (cost, enforced)) = (held.record(), pipeline.terms(*met));
            let over = record.decide_in(cell, cost, enforced, random, &ledger.threads, &limiter.bell);
            if met.is_budget && !over {
                paid.push((*number, cost));
            }
            if !pipeline.weigh(*met, over, record.headroom_bits()) {
                refund(ledger, &paid);
                return pipeline.ended(false);
            }
        }
        pipeline.ended(true)
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
        // Read before all else, so that what changes meanwhile is worked out anew.
        self.epoch = self.ledger.epoch();
        self.give_back();
        let (limiter, attributes) = (self.limiter.clone(), self.attributes.clone());
        let pairs = pairs(&attributes);
        local::with(&limiter, |local| {
            let Local { rules, hands, .. } = local;
            let rules = local::current(rules, &limiter);
            self.generation = rules.generation;
            let fate = self.hold_all(rules, Attributes::new(&pairs), hands);
            self.plainly = fate != Fate::Held;
            self.tries_again = (fate == Fate::Homeless).then_some(TRIES_AFTER);
        });
        if self.plainly {
            self.give_back();
        }
    }

    /// Holds on to the records of all buckets that it meets, as far as it can be decided by them.
    fn hold_all(&mut self, rules: &Rules, attributes: Attributes<'_>, hands: &mut Hands) -> Fate {
        if rules.exact_for(attributes).next().is_some() {
            return Fate::Special;
        }
        let ledger = self.ledger.clone();
        for (place, stage) in rules.stages_for(attributes) {
            let values = match stage.limit.encounter(attributes) {
                Encounter::Unconcerned => continue,
                Encounter::Counted(values) => values,
                Encounter::DroppedForMissing => return Fate::Special,
            };
            let found = stage.bucket(values.as_slice().iter().copied(), &ledger, hands);
            let Some(Place { found: (number, record), rule, limit }) = found else { continue };
            let lent = if record.is_rest() { None } else { ledger.lend(number, stage.buckets.owner) };
            let Some((held, cell)) = lent else { return Fate::Homeless };
            let met = Met::new(Which::new(place, rule), limit, stage.is_budget);
            self.meets.push(Meets { met, number, held, cell });
        }
        Fate::Held
    }

    fn give_back(&mut self) {
        for meets in self.meets.drain(..) {
            self.ledger.give_back(meets.number, &meets.cell);
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
