//! The surge guard: what a node may admit of a bucket between two plans.
//!
//! A plan tells a node its share of a limit: its own demand times the headroom. When traffic jumps, the ratio in force is
//! the old one until the sum of the jump has travelled up and down the tree; in that time a node holds itself to a
//! small multiple of its share. What it may pass is a bucket of tokens; that it is spent is the news that the parents
//! wait for.

use std::time::Duration;

use crate::ladder::PlanState;
use crate::limits::Limit;
use crate::noise::Dispersion;
use crate::significance::{AT_A_LEAF, is_news, least_units};
use crate::units::Headroom;

/// Tokens that the least node may save up: chance alone brings a few requests at once. With 10, a fleet of thousands at
/// 99 % of its limit lost one request in 4800, with 11 one in 10 000; each one more lets a surge have one more per node.
const LEAST_DEPTH: f64 = 11.0;
/// What it saves up at least, as time at its rate.
const DEPTH: Duration = Duration::from_millis(100);
/// Deviations of the traffic's own noise that what it saves up has to cover, squared: `depth ≥ 8 · dispersion` keeps the
/// chance that steady traffic spends it below one in ten thousand at four fifths of a limit.
const COVER: f64 = 8.0;
/// Dispersion from which traffic counts as bursty.
const BURSTY: f64 = 2.0;
/// Weight of one interval in a node's own demand: about 15 s.
const WEIGHT: f64 = 1.0 / 15.0;

/// What a node may admit of a bucket: a bucket of tokens, in cost units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Tokens that come in a second.
    pub rate: f64,
    /// Most that are saved up.
    pub depth: f64,
}

/// A node's own demand on one bucket, over some ten seconds, as far as its parents know of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    mean: f64,
    /// The last interval's.
    last: f64,
    /// How noisy it is from one interval to the next.
    slow: Dispersion,
    /// How noisy it is within an interval, from beat to beat: twenty requests every 200 ms are as steady as can be by the
    /// second, and yet each twenty would look like a surge.
    quick: Dispersion,
    /// Intervals since the first request, as far as they matter.
    seen: u8,
}

impl Own {
    /// The steady demand of a node that was measured in an earlier life.
    pub fn resuming(mean: f64) -> Self {
        Self { mean, last: mean, seen: u8::MAX, ..Self::default() }
    }

    /// Demand over some ten seconds, in units a second.
    pub fn mean(self) -> f64 {
        self.mean
    }

    /// One interval, at this rate; `within` is the variance of its beats over their mean, where there is one to tell.
    #[must_use]
    pub fn after(self, rate: f64, within: Option<f64>) -> Self {
        let seen = self.seen.saturating_add(1);
        let weight = 1.0 / f64::from(seen);
        // The difference of two counts has twice the variance of one. Measured from the slow mean, a step in demand would
        // look like noise for half a minute.
        let change = (rate - self.last) * (rate - self.last) / 2.0;
        Self {
            mean: self.mean + WEIGHT.max(weight) * (rate - self.mean),
            last: rate,
            slow: self.slow.observing(change / self.last.max(1.0), 0.0),
            quick: within.map_or(self.quick, |within| self.quick.observing(within, weight / 2.0)),
            seen,
        }
    }

    /// A demand that the parents have taken in: from now on it is no surge.
    #[must_use]
    pub fn acknowledged(self, rate: f64) -> Self {
        let risen = rate > self.mean
            && is_news(self.mean, rate, AT_A_LEAF, self.dispersion().value(), least_units(None));
        Self { mean: if risen { rate } else { self.mean }, ..self }
    }

    /// How noisy it is.
    pub fn dispersion(self) -> Dispersion {
        if self.quick.value() > self.slow.value() { self.quick } else { self.slow }
    }

    /// What the node may admit of `limit`, of which `agents` nodes have a part: a multiple of its share, and no less
    /// than if all had the same; a node that is alone may go beyond that by the same multiple, since nobody will divide what
    /// others leave. `None` where nothing holds it: the limit has no guard, saves up or bans, or the
    /// node's traffic is so bursty and so small that the guard would drop what is no surge.
    pub fn allowance(
        self,
        limit: &Limit,
        headroom: Headroom,
        agents: u32,
        state: PlanState,
    ) -> Option<Allowance> {
        let factor = limit.surge_guard.factor()?;
        let per_second = limit.rate.per_second();
        if limit.budget().is_some() || limit.rate.is_ban() || !per_second.is_finite() {
            return None;
        }
        // Where nobody has traffic the headroom is infinite, and nobody has a share of it.
        let share = if headroom.value().is_finite() { self.mean * headroom.value() } else { 0.0 };
        let equal = per_second / f64::from(agents.max(1));
        let rate = (factor * share).max(if state == PlanState::Alone { factor * equal } else { equal });
        let dispersion = self.dispersion().value();
        let cover = COVER * dispersion;
        if dispersion > BURSTY && cover > rate || !rate.is_finite() {
            return None;
        }
        Some(Allowance { rate, depth: LEAST_DEPTH.max(rate * DEPTH.as_secs_f64()).max(cover) })
    }
}

/// The headroom of nodes that together are alone, such as a zone: `last` was told when their demand was `known`, in units a
/// second, and they are this `part` of all agents. It stays as long as they keep to the guard of their share.
pub fn headroom_alone(limit: &Limit, last: Headroom, known: f64, demand: f64, part: f64) -> Headroom {
    let per_second = limit.rate.per_second();
    let guarded = limit.budget().is_none() && !limit.rate.is_ban() && per_second.is_finite();
    let Some(factor) = limit.surge_guard.factor().filter(|_| guarded) else { return last };
    let share = if last.value().is_finite() { known * last.value() } else { 0.0 };
    let most = factor * share.max(per_second * part);
    match Headroom::new(most / demand) {
        Some(capped) if capped < last => capped,
        _ => last,
    }
}

/// The headroom of a limit that nobody else has a part in, by those who know all of its demand, or always the same part of it:
/// `last` was told when that was `known`, in units a second.
pub fn headroom_of_own(limit: &Limit, last: Headroom, known: f64, demand: f64) -> Headroom {
    let per_second = limit.rate.per_second();
    if limit.budget().is_some() || limit.rate.is_ban() || !per_second.is_finite() {
        return last;
    }
    let part = if last.value().is_finite() && known > 0.0 { known * last.value() } else { per_second };
    Headroom::of(part.min(per_second), demand)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SurgeGuard;
    use crate::testing::limit;

    fn steady(rate: f64) -> Own {
        (0..60).fold(Own::default(), |own, _| own.after(rate, None))
    }

    fn allowance(own: Own, headroom: f64) -> Option<Allowance> {
        own.allowance(&limit("checkout", 1000), Headroom::new(headroom).unwrap(), 10, PlanState::Fresh)
    }

    #[test]
    fn a_node_may_pass_half_as_much_again_as_its_share() {
        assert_eq!(allowance(steady(200.0), 1.25), Some(Allowance { rate: 375.0, depth: 37.5 }));
    }

    #[test]
    fn no_node_has_less_than_if_all_had_the_same() {
        assert_eq!(
            allowance(Own::default(), f64::INFINITY),
            Some(Allowance { rate: 100.0, depth: LEAST_DEPTH })
        );
        assert_eq!(allowance(steady(1.0), 2.0).unwrap().rate, 100.0);
    }

    #[test]
    fn nodes_that_are_alone_may_take_more_than_equal_parts() {
        let alone = Own::default().allowance(&limit("checkout", 1000), Headroom::OPEN, 10, PlanState::Alone);
        assert_eq!(alone.unwrap().rate, 150.0);
    }

    #[test]
    fn a_zone_that_is_alone_keeps_its_ratio_until_its_demand_passes_the_guard_of_its_share() {
        let headroom = |last, demand| {
            headroom_alone(&limit("checkout", 1000), Headroom::new(last).unwrap(), 400.0, demand, 0.1).value()
        };
        assert_eq!([headroom(0.5, 100.0), headroom(0.5, 400.0), headroom(0.5, 600.0)], [0.5; 3]);
        assert_eq!(headroom(0.5, 1200.0), 0.25);
        assert_eq!(headroom(1.25, 500.0), 1.25);
        assert_eq!(headroom(f64::INFINITY, 0.0), f64::INFINITY);
        assert_eq!(headroom(f64::INFINITY, 300.0), 0.5);
    }

    #[test]
    fn a_surge_is_none_once_the_parents_know_of_it() {
        assert_eq!(allowance(steady(100.0).acknowledged(400.0), 1.0).unwrap().rate, 600.0);
        assert_eq!(allowance(steady(100.0).acknowledged(110.0), 1.0).unwrap().rate, 150.0);
        assert_eq!(allowance(steady(100.0).acknowledged(20.0), 1.0).unwrap().rate, 150.0);
    }

    #[test]
    fn a_surge_that_ends_is_forgotten_within_a_minute() {
        let own = (0..60).fold(steady(100.0).acknowledged(4000.0), |own, _| own.after(100.0, None));
        assert!(own.mean < 200.0, "{own:?}");
    }

    #[test]
    fn a_step_in_demand_is_no_noise_and_batches_within_a_second_are() {
        let fallen = (0..20).fold(steady(6000.0), |own, _| own.after(2000.0, None));
        assert!(fallen.dispersion().value() < 2.0, "{fallen:?}");
        let batches = (0..20).fold(Own::default(), |own, _| own.after(100.0, Some(15.0)));
        assert!(batches.dispersion().value() > 10.0, "{batches:?}");
    }

    #[test]
    fn small_and_bursty_traffic_is_left_alone() {
        let bursts =
            (0..200).fold(Own::default(), |own, i| own.after(if i % 4 == 0 { 80.0 } else { 0.0 }, None));
        let own_limit =
            |amount| bursts.allowance(&limit("checkout", amount), Headroom::OPEN, 10, PlanState::Fresh);
        assert_eq!(own_limit(1000), None);
        let guarded = bursts
            .allowance(&limit("checkout", 100_000), Headroom::new(1.1).unwrap(), 10, PlanState::Fresh)
            .unwrap();
        assert!(guarded.depth >= COVER * bursts.dispersion().value(), "{guarded:?}");
    }

    #[test]
    fn where_the_guard_is_off_or_has_nothing_to_go_by_there_is_no_allowance() {
        let mut unguarded = limit("checkout", 1000);
        unguarded.surge_guard = SurgeGuard::Off;
        assert_eq!(steady(10.0).allowance(&unguarded, Headroom::OPEN, 1, PlanState::Fresh), None);
        assert_eq!(steady(10.0).allowance(&limit("banned", 0), Headroom::SHUT, 1, PlanState::Fresh), None);
    }
}
