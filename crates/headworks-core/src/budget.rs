//! Budgets: limits per minute, hour and day, where the owner means an amount.
//!
//! A bucket of tokens refills at the limit's rate and pays for what the whole pipeline admitted. What agents admit
//! before they hear that it is empty is owed, and paid back before anything more passes; but never more than the amount of
//! one unit: a limit of one a minute that a surge overran by hundreds is shut for a minute, not for hours.

use std::time::Duration;

use crate::bucket::Counts;
use crate::limits::Limit;
use crate::units::{Headroom, Moment};

/// The horizon over which tokens and demand are compared. With one interval a budget is shut for most of its
/// seconds; with one minute it gives its rate evenly.
const HORIZON: Duration = Duration::from_secs(60);
/// Parts of the horizon in which demand is summed.
const PARTS: usize = 12;
const PART: Duration = Duration::from_secs(5);

/// The state of one budget.
#[derive(Clone, Debug)]
pub struct Budget {
    rate: f64,
    burst: f64,
    /// The amount of one unit, and so the most that is owed.
    amount: f64,
    tokens: f64,
    at: Moment,
    charged: f64,
    /// Offered by the end of each part of the horizon, the newest first.
    offered: [u64; PARTS],
    turned: Moment,
}

impl Budget {
    /// A full budget of `limit`; `None` for a limit per second. What was offered and charged before counts for nothing.
    pub fn of(limit: &Limit, before: Counts, now: Moment) -> Option<Self> {
        let burst = tokens(limit.budget()?);
        Some(Self {
            rate: limit.rate.per_second(),
            burst,
            amount: amount(limit),
            tokens: burst,
            at: now,
            charged: tokens(before.charged()),
            offered: [before.offered; PARTS],
            turned: now,
        })
    }

    /// The limit has another rate or burst. What was spent stays spent. False if it is no budget any more.
    pub fn follow(&mut self, limit: &Limit, now: Moment) -> bool {
        let Some(burst) = limit.budget().map(tokens) else { return false };
        self.refill(now);
        (self.rate, self.burst, self.amount) = (limit.rate.per_second(), burst, amount(limit));
        self.tokens = self.tokens.min(burst);
        true
    }

    /// A child says that this many were left: of a budget that is new here, the lowest is right.
    pub fn adopt(&mut self, told: f64) {
        if told.is_finite() {
            self.tokens = self.tokens.min(told);
        }
    }

    /// Pays for what was admitted, and says how much of the offered may pass. `offered` and `charged` are all that was
    /// counted so far.
    pub fn step(&mut self, offered: u64, charged: u64, now: Moment) -> Headroom {
        self.refill(now);
        let charged = tokens(charged);
        self.tokens = (self.tokens - (charged - self.charged)).max(-self.amount);
        self.charged = charged;
        self.turn(offered, now);
        self.headroom(tokens(offered.saturating_sub(self.offered[PARTS - 1])))
    }

    fn turn(&mut self, offered: u64, now: Moment) {
        let gone = now.since(self.turned);
        if gone >= HORIZON {
            (self.offered, self.turned) = ([offered; PARTS], now);
        } else if gone >= PART {
            self.turned = self.turned + PART;
            self.offered.rotate_right(1);
            self.offered[0] = offered;
        }
    }

    fn headroom(&self, offered: f64) -> Headroom {
        let within_horizon = (self.tokens + self.rate * HORIZON.as_secs_f64()).max(0.0);
        match (offered > 0.0, self.tokens > 0.0) {
            (true, _) => Headroom::of(within_horizon, offered),
            (false, true) => Headroom::OPEN,
            // At rest and in debt: whoever comes next waits until it is paid.
            (false, false) => Headroom::SHUT,
        }
    }

    fn refill(&mut self, now: Moment) {
        self.tokens = (self.tokens + self.rate * now.since(self.at).as_secs_f64()).min(self.burst);
        self.at = now;
    }

    /// Whether nothing of it is spent, as of the last step.
    pub fn is_full(&self) -> bool {
        self.tokens >= self.burst
    }

    /// What is left, in cost units; below zero when something is owed.
    pub fn tokens(&self) -> f64 {
        self.tokens
    }
}

fn amount(limit: &Limit) -> f64 {
    limit.rate.per_unit().map_or(0.0, tokens)
}

#[allow(clippy::cast_precision_loss, reason = "no budget is above 2^53 units")]
fn tokens(units: u64) -> f64 {
    units as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::limit;
    use crate::units::{Rate, Unit};

    fn per(amount: u64, unit: Unit) -> Limit {
        Limit { rate: Rate::Per { amount, unit }, ..limit("budget", 1) }
    }

    fn second(n: u64) -> Moment {
        Moment::after(Duration::from_secs(n))
    }

    #[test]
    fn a_budget_at_rest_is_open_and_one_in_debt_is_shut_until_it_is_paid() {
        let mut budget = Budget::of(&per(600, Unit::Hour), Counts::default(), second(0)).unwrap();
        assert_eq!(budget.step(0, 0, second(1)), Headroom::OPEN);
        budget.step(200, 200, second(1));
        assert!((budget.tokens() + 190.0).abs() < 1e-9, "{}", budget.tokens());
        assert_eq!(budget.step(200, 200, second(1100)), Headroom::SHUT);
        assert_eq!(budget.step(200, 200, second(1142)), Headroom::OPEN);
    }

    #[test]
    fn no_more_is_owed_than_the_amount_of_one_unit() {
        let mut budget = Budget::of(&per(1, Unit::Minute), Counts::default(), second(0)).unwrap();
        budget.step(400, 400, second(1));
        assert_eq!(budget.tokens(), -1.0);
    }

    #[test]
    fn five_at_once_of_six_a_minute_leave_it_open() {
        let mut budget = Budget::of(&per(6, Unit::Minute), Counts::default(), second(0)).unwrap();
        assert!(budget.step(5, 5, second(1)).value() >= 1.0);
    }

    #[test]
    fn a_budget_saves_up_no_more_than_its_burst() {
        let mut budget = Budget::of(&per(1000, Unit::Hour), Counts::default(), second(0)).unwrap();
        budget.step(0, 0, second(100_000));
        assert!((budget.tokens() - 17.0).abs() < 1e-9);
    }

    #[test]
    fn the_lowest_that_children_tell_is_adopted_and_nonsense_is_not() {
        let mut budget = Budget::of(&per(60, Unit::Minute), Counts::default(), second(0)).unwrap();
        budget.adopt(-5.0);
        budget.adopt(30.0);
        budget.adopt(f64::NAN);
        assert_eq!(budget.tokens(), -5.0);
    }

    #[test]
    fn what_was_before_the_limit_became_a_budget_is_not_paid_for() {
        let before = Counts { offered: 180_000, ..Counts::default() };
        let mut budget = Budget::of(&per(60, Unit::Minute), before, second(0)).unwrap();
        assert_eq!(budget.step(180_000, 180_000, second(0)), Headroom::OPEN);
        assert_eq!(budget.tokens(), 60.0);
    }

    #[test]
    fn another_rate_forgives_nothing() {
        let mut budget = Budget::of(&per(60, Unit::Minute), Counts::default(), second(0)).unwrap();
        budget.step(100, 100, second(0));
        assert!(budget.follow(&per(600, Unit::Minute), second(0)));
        assert_eq!(budget.tokens(), -40.0);
        budget.step(100, 100, second(100));
        assert_eq!(budget.tokens(), 600.0);
    }
}
