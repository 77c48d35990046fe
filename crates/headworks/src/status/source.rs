//! Where a status comes from, by tier.

use std::collections::HashMap;

use headworks_agent::{LimitStats, LimiterStats};
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::children::Children;
use headworks_core::limits::{Limit, LimitSet};
use headworks_core::status::{LimitStatus, TopBucket, limits, zones};
use headworks_core::units::{Moment, Rate};

use super::model::{Child, Controller, EffectView, HeldView, LimitView, NodeStatus, Top, Totals, Zone};
use crate::tree::{FleetSeat, Seat, ZoneSeat};

/// Limits told of, of those for which a set is held back.
const CAUSES: usize = 100;

/// The status of a controller.
pub(crate) fn of_fleet(seat: &FleetSeat, now: Moment) -> NodeStatus {
    let fleet = &seat.fleet;
    NodeStatus {
        tier: "controller".to_owned(),
        state: "fresh".to_owned(),
        plan_age_ms: Some(millis(fleet.age(now))),
        limits_generation: fleet.generation(),
        limits_held: held(seat, now),
        limits_held_back: seat.times_held(),
        learning: fleet.is_learning(now),
        shadow_all: fleet.switch().shadow_all,
        shadow_all_version: fleet.switch().version,
        ..of_parent(seat, fleet.limits(), now)
    }
}

/// The limits that a controller holds back.
pub(crate) fn held(seat: &FleetSeat, now: Moment) -> Option<HeldView> {
    seat.held().map(|held| HeldView {
        digest: held.limits.digest().to_string(),
        limits: held.limits.limits().len(),
        age_ms: millis(now.since(held.since)),
        causes: held.causes.iter().take(CAUSES).map(EffectView::from).collect(),
    })
}

/// The status of an aggregator.
pub(crate) fn of_zone(seat: &ZoneSeat, now: Moment) -> NodeStatus {
    let zone = &seat.zone;
    NodeStatus {
        tier: "aggregator".to_owned(),
        state: zone.plan_state(now).name().to_owned(),
        plan_age_ms: zone.obeyed_plan().map(|plan| millis(plan.age(now))),
        limits_generation: zone.obeyed_plan().map_or(0, |plan| plan.generation),
        controllers: controllers_of(seat, now),
        views_disagree: zone.disagreement(now).views,
        limits_disagree: zone.disagreement(now).limits,
        shadow_all: zone.switch().shadow_all,
        shadow_all_version: zone.switch().version,
        ..of_parent(seat, zone.limits(), now)
    }
}

fn of_parent<S: Seat>(seat: &S, set: &LimitSet, now: Moment) -> NodeStatus {
    use headworks_core::node::Node;
    let children = seat.node().children();
    let zone = |(zone, status): (String, headworks_core::status::ZoneStatus)| Zone {
        zone,
        aggregators: status.aggregators,
        agents: status.agents,
    };
    let tightest = tightest(children);
    NodeStatus {
        node: children.node().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        limits_digest: Some(set.digest().to_string()),
        refused_entries: seat.doubts().refused,
        clipped_entries: seat.doubts().clipped,
        twins: children.twins(),
        reports: children.reports(),
        zones: zones(children).into_iter().map(zone).collect(),
        children: children_of(children, now),
        limits: limits(set, children).iter().map(|status| of_limit(status, &tightest, children)).collect(),
        ..NodeStatus::default()
    }
}

fn controllers_of(seat: &ZoneSeat, now: Moment) -> Vec<Controller> {
    let obeyed = seat.zone.obeyed();
    let told = seat.controllers.iter().zip(seat.zone.controllers()).enumerate();
    told.map(|(index, (address, (attached, plan)))| {
        let view = plan.map(|plan| plan.view).unwrap_or_default();
        Controller {
            address: address.clone(),
            attached,
            obeyed: obeyed == Some(index),
            plan_age_ms: plan.map(|plan| millis(plan.age(now))),
            aggregators: view.aggregators,
            agents: view.agents,
            demand: view.demand,
        }
    })
    .collect()
}

fn children_of(children: &Children, now: Moment) -> Vec<Child> {
    let mut listed: Vec<Child> = (children.iter())
        .map(|(_, child)| Child {
            node: child.hello.node.clone(),
            tier: child.hello.tier.name().to_owned(),
            zone: child.hello.zone.clone(),
            agents: child.agents,
            report_age_ms: millis(now.since(child.last_report)),
            silent: child.silent,
            buckets: child.buckets(),
        })
        .collect();
    listed.sort_by(|a, b| (&a.zone, &a.node).cmp(&(&b.zone, &b.node)));
    listed
}

/// Of a limit's buckets, those that drop next.
#[derive(Clone, Copy, Default)]
struct Tightest {
    /// What a budget has left where it has least.
    tokens: Option<f64>,
    /// The offered as a part of what may pass, where that is most.
    load: Option<f64>,
}

/// The same for every limit.
fn tightest(children: &Children) -> HashMap<&str, Tightest> {
    let mut by_limit: HashMap<&str, Tightest> = HashMap::new();
    for (_, key, bucket) in children.buckets().iter() {
        let tightest = by_limit.entry(&key.limit).or_default();
        if let Some(tokens) = bucket.tokens {
            tightest.tokens = Some(tightest.tokens.map_or(tokens, |least| least.min(tokens)));
        }
        let load = bucket.headroom.map(|headroom| headroom.value().recip());
        // Bans have no load: whatever is offered is too much.
        if let Some(load) = load.filter(|load| load.is_finite() || bucket.tokens.is_some()) {
            tightest.load = Some(tightest.load.map_or(load, |most| most.max(load)));
        }
    }
    by_limit
}

fn top_of(limit: &Limit, top: &TopBucket, children: &Children) -> Top {
    let values = top.values.clone().map_or(Values::Rest, Values::Of);
    let key = BucketKey { limit: limit.name.clone(), scope: top.scope.clone(), values };
    let buckets = children.buckets();
    let bucket = buckets.number(&key).and_then(|number| buckets.get(number));
    Top {
        scope: top.scope.clone(),
        values: top.values.clone(),
        offered: top.offered,
        ratio: top.ratio.value(),
        tokens: bucket.and_then(|bucket| bucket.tokens),
    }
}

fn of_limit(status: &LimitStatus, tightest: &HashMap<&str, Tightest>, children: &Children) -> LimitView {
    let tightest = tightest.get(&*status.limit.name).copied().unwrap_or_default();
    LimitView {
        offered: status.offered,
        admitted: (status.offered - status.dropped).max(0.0),
        dropped: status.dropped,
        would_drop: status.would_drop,
        ratio: status.ratio.value(),
        buckets: status.buckets,
        untracked: status.untracked,
        tokens: tightest.tokens,
        load: tightest.load.or((status.limit.rate.per_second() > 0.0).then_some(0.0)),
        top: status.top.iter().map(|top| top_of(&status.limit, top, children)).collect(),
        totals: status.counts.into(),
        ..named(&status.limit)
    }
}

/// The status of an agent: `before` and `after` are its counts at both ends of the last `seconds`.
pub(crate) fn of_agent(node: &str, before: &LimiterStats, after: &LimiterStats, seconds: f64) -> NodeStatus {
    let link = &after.link;
    let earlier: HashMap<&str, &LimitStats> =
        before.limits.iter().map(|limit| (&*limit.limit.name, limit)).collect();
    let limit = |limit: &LimitStats| of_agent_limit(earlier.get(&*limit.limit.name).copied(), limit, seconds);
    NodeStatus {
        node: node.to_owned(),
        tier: "agent".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        state: link.state.name().to_owned(),
        plan_age_ms: link.age.map(millis),
        limits_generation: link.generation,
        limits_digest: link.digest.map(|digest| digest.to_string()),
        refused_entries: link.refused_entries,
        state_write_errors: link.state_write_errors,
        shadow_all: after.shadow_all,
        limits: after.limits.iter().map(limit).collect(),
        ..NodeStatus::default()
    }
}

fn of_agent_limit(before: Option<&LimitStats>, after: &LimitStats, seconds: f64) -> LimitView {
    let counted = after.counts.since(before.map(|before| before.counts).unwrap_or_default());
    #[allow(clippy::cast_precision_loss, reason = "no second counts 2^53 units")]
    let rate = |units: u64| if seconds > 0.0 { units as f64 / seconds } else { 0.0 };
    LimitView {
        offered: rate(counted.offered),
        admitted: rate(counted.admitted()),
        dropped: rate(counted.dropped),
        would_drop: rate(counted.would_drop),
        ratio: after.drop_ratio.value(),
        buckets: after.buckets,
        untracked: after.untracked,
        totals: after.counts.into(),
        ..named(&after.limit)
    }
}

fn named(limit: &Limit) -> LimitView {
    let rate = limit.rate.per_second();
    let (amount, unit) = match limit.rate {
        Rate::Unlimited => (None, None),
        Rate::Per { amount, unit } => (Some(amount), Some(unit.name().to_owned())),
    };
    LimitView {
        name: limit.name.to_string(),
        rate: rate.is_finite().then_some(rate),
        amount,
        unit,
        mode: limit.mode.name().to_owned(),
        exact: limit.exact().is_some(),
        offered: 0.0,
        admitted: 0.0,
        dropped: 0.0,
        would_drop: 0.0,
        ratio: 0.0,
        buckets: 0,
        untracked: 0,
        tokens: None,
        load: None,
        top: Vec::new(),
        totals: Totals::default(),
    }
}

impl From<Counts> for Totals {
    fn from(counts: Counts) -> Self {
        Totals {
            offered: counts.offered,
            admitted: counts.admitted(),
            dropped: counts.dropped,
            would_drop: counts.would_drop,
        }
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use headworks_agent::LinkStats;
    use headworks_core::limits::parse;
    use headworks_core::units::DropRatio;

    use super::*;

    fn stats(offered: u64) -> LimiterStats {
        // Limits that were read anew are others, though they are the same.
        let limits = parse("limits: [{name: a, rate: 5/second}]").unwrap();
        let limit = LimitStats {
            limit: limits.get("a").map(Arc::clone).unwrap(),
            counts: Counts { offered, ..Counts::default() },
            drop_ratio: DropRatio::NONE,
            buckets: 1,
            untracked: 0,
        };
        LimiterStats { limits: vec![limit], shadow_all: false, link: LinkStats::default() }
    }

    #[test]
    fn after_a_reload_an_agent_does_not_take_all_that_it_counted_for_the_rate_of_a_second() {
        let status = of_agent("a", &stats(1000), &stats(1010), 2.0);
        assert_eq!((status.limits[0].offered, status.limits[0].totals.offered), (5.0, 1010));
    }
}
