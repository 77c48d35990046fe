//! The limits that drop by ratio, one after the other: each counts and judges only what the enforced ones before it let
//! through. A shadow limit judges the same, and lets pass.

use headworks_core::limits::{Limit, Mode};
use headworks_core::units::Headroom;
use smallvec::SmallVec;

use super::ledger::Ledger;
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

/// Budgets that a request passed, by their records, and what it costs there. A request meets few. If a later limit drops it, they
/// need not pay for it.
pub(super) type Paid = SmallVec<[(u32, u32); 2]>;

/// A request on its way through the pipeline. All of it stays in registers, as long as no call is handed a reference to it: what
/// it paid is held beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipeline {
    /// What is asked for, unless each limit's own cost.
    asked: Option<u32>,
    /// The fleet's switch has turned all limits to shadow.
    shadow_all: bool,
    /// The bits of the least headroom so far of a limit that is enforced, and which limit that is.
    least: u64,
    which: Which,
}

/// More than the bits of any headroom: no limit was met.
const NONE: u64 = u64::MAX;

impl Pipeline {
    #[inline(always)]
    pub(super) fn new(asked: Option<u32>, shadow_all: bool) -> Self {
        Self { asked, shadow_all, least: NONE, which: Which::default() }
    }

    /// What the request costs at a limit, and whether that drops what is over it.
    #[inline(always)]
    pub(super) fn terms(&self, met: Met) -> (u32, bool) {
        (self.asked.unwrap_or(met.cost), met.is_enforced && !self.shadow_all)
    }

    /// A limit has decided, whose headroom has these bits; whether the request goes on.
    #[inline(always)]
    pub(super) fn weigh(&mut self, met: Met, over: bool, headroom: u64) -> bool {
        if !met.is_enforced || self.shadow_all {
            return true;
        }
        if over || headroom < self.least {
            (self.least, self.which) = (headroom, met.which);
        }
        !over
    }

    /// What becomes of the request, that was dropped or went through.
    #[inline(always)]
    pub(super) fn ended(&self, allowed: bool) -> ByRatio {
        let is_named = self.least != NONE;
        let named = is_named.then(|| Named { which: self.which, headroom: Headroom::from_bits(self.least) });
        ByRatio { allowed, named }
    }
}

/// A request was dropped behind these budgets.
#[inline]
pub(super) fn refund(ledger: &Ledger, paid: &Paid) {
    if !paid.is_empty() {
        pay_back(ledger, paid);
    }
}

#[cold]
#[inline(never)]
fn pay_back(ledger: &Ledger, paid: &[(u32, u32)]) {
    for (number, cost) in paid {
        ledger.record(*number).iter().for_each(|record| record.refuse_later(*cost));
    }
}
