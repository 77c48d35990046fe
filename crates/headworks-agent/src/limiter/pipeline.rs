//! The limits that drop by ratio, one after the other: each counts and judges only what the enforced ones before it let
//! through. A shadow limit judges the same, and lets pass.

use headworks_core::limits::{Limit, Mode};
use headworks_core::units::Headroom;
use smallvec::SmallVec;

use super::bell::Bell;
use super::ledger::Ledger;
use super::local::Hands;
use super::record::Record;
use super::verdict::{ByRatio, Named, Which};

/// A limit that a request meets, in the numbers that its decision needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub(super) which: Which,
    /// What a request costs that does not say.
    pub(super) cost: u32,
    pub(super) is_enforced: bool,
    /// It pays for what the whole pipeline admits.
    pub(super) is_budget: bool,
}

impl Met {
    /// By the limit as it holds for the bucket.
    #[inline]
    pub(super) fn new(which: Which, limit: &Limit, is_budget: bool) -> Self {
        Self { which, cost: limit.cost, is_enforced: limit.mode == Mode::Enforce, is_budget }
    }
}

/// Budgets that a request passed, by their records, and what it costs there. A request meets few.
pub(super) type Paid = SmallVec<[(u32, u64); 2]>;

/// A request on its way through the pipeline.
#[derive(Debug)]
pub(super) struct Pipeline<'a> {
    pub(super) bell: &'a Bell,
    pub(super) hands: &'a mut Hands,
    /// What is asked for, unless each limit's own cost.
    pub(super) asked: Option<u32>,
    /// The fleet's switch has turned all limits to shadow.
    pub(super) shadow_all: bool,
    pub(super) paid: Paid,
    /// Some limit is to be named: this one, for its headroom. Not an `Option`: as one it would be copied as a whole, and wait for
    /// its parts to be written.
    named: bool,
    which: Which,
    headroom: Headroom,
}

impl<'a> Pipeline<'a> {
    #[inline(always)]
    pub(super) fn new(bell: &'a Bell, hands: &'a mut Hands, asked: Option<u32>, shadow_all: bool) -> Self {
        Self {
            bell,
            hands,
            asked,
            shadow_all,
            paid: Paid::new(),
            named: false,
            which: Which::default(),
            headroom: Headroom::OPEN,
        }
    }

    /// The request meets a limit, in the bucket of this record; whether it goes on.
    #[inline(always)]
    pub(super) fn meet(&mut self, met: Met, number: u32, record: &Record) -> bool {
        let cost = u64::from(self.asked.unwrap_or(met.cost));
        let enforced = met.is_enforced && !self.shadow_all;
        let over = record.decide(cost, enforced, self.hands, self.bell);
        if met.is_budget && !over {
            self.paid.push((number, cost));
        }
        !enforced || self.weigh(met, over, record.headroom())
    }

    /// The request lacks a value, and the limit drops such requests; whether it goes on.
    #[cold]
    pub(super) fn lack(&mut self, met: Met, rest: &Record) -> bool {
        let cost = u64::from(self.asked.unwrap_or(met.cost));
        let enforced = met.is_enforced && !self.shadow_all;
        rest.drop_anyway(cost, enforced);
        !enforced || self.weigh(met, true, Headroom::SHUT)
    }

    #[inline(always)]
    fn weigh(&mut self, met: Met, over: bool, headroom: Headroom) -> bool {
        if over || !self.named || headroom < self.headroom {
            (self.named, self.which, self.headroom) = (true, met.which, headroom);
        }
        !over
    }

    /// What becomes of the request, that was dropped or went through. The budgets that it passed before it was dropped need
    /// not pay for it.
    #[inline(always)]
    pub(super) fn ended(&self, allowed: bool, ledger: &Ledger) -> ByRatio {
        if !allowed && !self.paid.is_empty() {
            refund(ledger, &self.paid);
        }
        let named = self.named.then_some(Named { which: self.which, headroom: self.headroom });
        ByRatio { allowed, named }
    }
}

/// A request was dropped behind these budgets.
#[cold]
#[inline(never)]
pub(super) fn refund(ledger: &Ledger, paid: &Paid) {
    for (number, cost) in paid {
        ledger.record(*number).iter().for_each(|record| record.refuse_later(*cost));
    }
}
