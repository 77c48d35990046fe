//! One bucket of a proxy, and what a limit counts of all of them.

use std::sync::Arc;
use std::time::Duration;

use super::split::{Part, Step};
use super::strategy::Told;
use crate::bucket::Counts;
use crate::ladder::Rung;
use crate::law::Demand;
use crate::limits::{Limit, Mode};
use crate::message::BucketNumber;
use crate::meter::units;
use crate::units::{Headroom, Moment};

/// Shortest stretch that says something of a rate. A proxy reports all its buckets at its next tick, however short before one of
/// them came to be.
const SHORTEST: Duration = Duration::from_millis(500);

/// A bucket of a proxy: the requests that it cannot tell apart.
#[derive(Debug)]
pub(super) struct Bucket {
    /// The limits that its requests meet, in pipeline order.
    pub(super) meets: Vec<Meet>,
    /// Requests a second, over the stretches that were measured here; none yet, if there was no whole one.
    demand: Option<Demand>,
    /// Since when requests are counted that were not measured yet.
    since: Moment,
    pending: u64,
    /// The last report, and the last one that told of requests.
    pub(super) heard_at: Moment,
    pub(super) busy_at: Moment,
    /// It has been with another server, and goes by what that one told it until its demand is known here.
    pub(super) is_handed_over: bool,
    pub(super) told: Option<Told>,
    /// It reported, and waits for an answer: that is what keeps what it was told in force.
    pub(super) is_owed: bool,
}

/// A limit that the requests of a bucket meet.
#[derive(Debug)]
pub(super) struct Meet {
    /// In which of the limit's buckets they count.
    pub(super) number: BucketNumber,
    /// They lack a value that the limit needs, and are refused for it.
    pub(super) lacks_value: bool,
    /// Cost of a request.
    pub(super) cost: u64,
    /// Cost units a second that reached the limit.
    demand: f64,
    pending: u64,
    /// Parts of a request that the limit would have dropped.
    would_drop: f64,
}

impl Meet {
    pub(super) fn new(number: BucketNumber, lacks_value: bool, cost: u32) -> Self {
        let cost = u64::from(cost);
        Self { number, lacks_value, cost, demand: 0.0, pending: 0, would_drop: 0.0 }
    }

    pub(super) fn demand(&self) -> f64 {
        self.demand
    }

    /// Takes in what reached the limit; what it counts of that, in cost units. Only budgets pay for the whole pipeline.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a count is a count"
    )]
    pub(super) fn take(&mut self, part: Part, is_budget: bool) -> Counts {
        self.pending += part.offered * self.cost;
        self.would_drop += part.would_drop;
        let would_drop = self.would_drop.floor();
        self.would_drop -= would_drop;
        Counts {
            offered: part.offered * self.cost,
            dropped: part.dropped * self.cost,
            would_drop: would_drop as u64 * self.cost,
            refused_later: if is_budget { part.refused_later * self.cost } else { 0 },
        }
    }
}

impl Bucket {
    pub(super) fn new(meets: Vec<Meet>, is_handed_over: bool, now: Moment) -> Self {
        Self {
            meets,
            demand: None,
            since: now,
            pending: 0,
            heard_at: now,
            busy_at: now,
            is_handed_over,
            told: None,
            is_owed: false,
        }
    }

    /// Requests a second; nothing while none are known of.
    pub(super) fn demand(&self) -> Option<f64> {
        self.demand.map(Demand::rate).filter(|rate| *rate > 0.0)
    }

    /// Whether its demand was measured at least once.
    pub(super) fn is_measured(&self) -> bool {
        self.demand.is_some()
    }

    /// Counts requests towards the stretch that is measured, and ends that if it is long enough.
    pub(super) fn measure(&mut self, requests: u64, now: Moment) {
        self.pending += requests;
        let stretch = now.since(self.since);
        if requests > 0 {
            self.busy_at = now;
        }
        if stretch < SHORTEST {
            return;
        }
        let seconds = stretch.as_secs_f64();
        let rate = units(std::mem::take(&mut self.pending)) / seconds;
        self.demand = Some(self.demand.unwrap_or_default().settle(rate, seconds));
        self.since = now;
        for meet in &mut self.meets {
            meet.demand = units(std::mem::take(&mut meet.pending)) / seconds;
        }
    }

    /// The requests meet other limits from now on. What reaches those is measured from the next stretch on; until then it is taken
    /// for all of the demand.
    pub(super) fn meet(&mut self, meets: Vec<Meet>) {
        self.meets = meets;
        let demand = self.demand().unwrap_or_default();
        for meet in &mut self.meets {
            meet.demand = demand * units(meet.cost);
        }
    }
}

/// What a limit counts of a proxy's requests in one of its buckets.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// As it holds for this bucket, in the proxy's zone; none, if it is off.
    pub(super) limit: Option<Arc<Limit>>,
    /// How a headroom is to be multiplied here, which is told for the limit's own rate.
    pub(super) scale: f64,
    /// When in the ramp it opens, where its parents are away for too long.
    pub(super) spread: f64,
    pub(super) counts: Counts,
    /// As the last report told them.
    pub(super) told: Counts,
    /// Cost units a second.
    pub(super) demand: f64,
    pub(super) headroom: Option<Headroom>,
    pub(super) tokens: Option<f64>,
    /// Buckets of the proxy that count here.
    pub(super) holders: usize,
}

/// How a limit stands in one of its buckets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing<'a> {
    pub(super) limit: &'a Limit,
    pub(super) enforced: bool,
    /// What holds.
    pub(super) headroom: Headroom,
    /// What was heard from above.
    heard: Option<Headroom>,
    /// Whether the proxy is held to what was heard, since the plan is not too old.
    holds: bool,
}

impl Counted {
    /// How it stands, by a plan of this age and time to live.
    pub(super) fn standing(
        &self,
        (age, ttl): (Duration, Duration),
        hold: Duration,
        shadow_all: bool,
    ) -> Option<Standing<'_>> {
        let limit = &**self.limit.as_ref()?;
        let heard = self.headroom.map(|headroom| headroom.times(self.scale));
        let rung = Rung::of(limit, Some(age), ttl, hold, self.spread);
        Some(Standing {
            limit,
            enforced: limit.mode == Mode::Enforce && !shadow_all,
            headroom: rung.headroom(limit, heard),
            heard,
            holds: rung.holds(),
        })
    }
}

impl Standing<'_> {
    /// As requests met it.
    pub(super) fn step(self) -> Step {
        Step { headroom: self.headroom.value(), enforced: self.enforced }
    }

    /// The same for requests that the limit refuses, since they lack a value.
    pub(super) fn refusing(self) -> Self {
        Self { headroom: Headroom::SHUT, ..self }
    }

    /// Requests a second that a proxy may let pass of which nobody knows how many it has; infinite where nothing holds it.
    ///
    /// It is its even part of the limit, of as many as there are agents, or what the others are known to leave, if that is more. A
    /// bucket of one value that nobody is known to have traffic for is its own.
    pub(super) fn newcomers_part(self, agents: u32) -> f64 {
        let per_second = self.limit.rate.per_second() / f64::from(self.limit.cost.max(1));
        if self.headroom == Headroom::SHUT {
            return 0.0;
        }
        if !per_second.is_finite() || !self.holds || self.limit.surge_guard.factor().is_none() {
            return f64::INFINITY;
        }
        let even = per_second / f64::from(agents.max(1));
        // A budget has saved up, or it has not: there is no part of it to speak of.
        if self.limit.budget().is_some() {
            return if self.headroom.value() >= 1.0 { f64::INFINITY } else { even };
        }
        match self.heard.filter(|headroom| *headroom != Headroom::OPEN) {
            Some(headroom) => even.max(per_second * (1.0 - headroom.value().recip())),
            None if self.limit.per.is_empty() => even,
            None => per_second,
        }
    }
}
