//! What new limits would do to the present demand, before they are in force.
//!
//! Each limit is judged by itself, on what reaches it now: by bucket, with its overrides, at the pace of its rate. Savings of
//! budgets are left out, since they are gone within a minute; so is the switch that turns all limits to shadow, since it is
//! thrown back some day.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::bucket::BucketKey;
use crate::limits::{Limit, LimitSet, Mode, Scope};
use crate::pattern::Pattern;
use crate::units::{DropRatio, Headroom};

/// Demand, in units a second, below which no share of it tells anything: of three requests a second one is a third.
pub const TELLING: f64 = 10.0;

/// From where the demand of a limit is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// It was counted for this limit.
    Counted,
    /// It was counted for this limit, under another `match`.
    OtherMatch,
    /// It was counted for the limit of this name, which concerns the same requests.
    Like(Arc<str>),
    /// It is not known: the limit is new or was off, tells buckets apart by other keys, or is exact.
    Unknown,
}

/// What a new set of limits does to the demand of one of its limits; rates are in units a second.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The limit, as it would be.
    pub limit: Arc<Limit>,
    /// The limit that counts the demand now: the same one before the change, or one like it.
    pub before: Option<Arc<Limit>>,
    /// From where its demand is known.
    pub basis: Basis,
    /// Offered at present.
    pub offered: f64,
    /// Dropped of it by the limits in force.
    pub dropped: f64,
    /// Dropped of it by the new ones.
    pub would_drop: f64,
    /// Dropped by the new ones of what passes now: by bucket, so that what one gains makes up for nothing that another loses.
    pub newly: f64,
}

impl Effect {
    fn of(limit: &Arc<Limit>, source: Option<(Arc<Limit>, Basis)>) -> Self {
        let (before, basis) = match source {
            Some((before, basis)) => (Some(before), basis),
            None => (None, Basis::Unknown),
        };
        let limit = limit.clone();
        Self { limit, before, basis, offered: 0.0, dropped: 0.0, would_drop: 0.0, newly: 0.0 }
    }

    /// What passes now.
    pub fn passing(&self) -> f64 {
        (self.offered - self.dropped).max(0.0)
    }

    /// The part of what passes now that would be dropped, from 0 to 1.
    ///
    /// Of what passes, not of what is offered: in a surge of ten times the limit nine tenths are dropped already, and whatever
    /// was written instead of the limit could not drop more than another tenth of the offered.
    pub fn newly_part(&self) -> f64 {
        DropRatio::new(self.newly / self.passing()).map_or(0.0, DropRatio::value)
    }

    /// Whether it newly drops more than this part of a demand that is worth the question.
    pub fn is_beyond(&self, part: f64) -> bool {
        self.offered >= TELLING && self.newly_part() > part
    }

    /// What the limit goes by before the change, and after it.
    pub fn step(&self) -> (String, String) {
        let Some(before) = &self.before else { return ("none".to_owned(), self.limit.rate.to_string()) };
        if before.mode == self.limit.mode {
            return (before.rate.to_string(), self.limit.rate.to_string());
        }
        let spelled = |limit: &Limit| format!("{} {}", limit.mode.name(), limit.rate);
        (spelled(before), spelled(&self.limit))
    }

    fn add(&mut self, before: &Limit, after: &Limit, offered: f64) {
        // A request that does not say what it costs counts by the limit's `cost`.
        let counted = offered * f64::from(after.cost) / f64::from(before.cost.max(1));
        let parts = |zone: &str| (dropped_part(before, zone, offered), dropped_part(after, zone, counted));
        let newly = |(old, new): (f64, f64)| new - old;
        // Where its requests come from is not known here: all of them could come from the zone that loses most.
        let worst = zones_told_apart(before, after).map(parts);
        let Some((old, new)) = worst.max_by(|a, b| newly(*a).total_cmp(&newly(*b))) else { return };
        self.offered += offered;
        self.dropped += offered * old;
        self.would_drop += offered * new;
        self.newly += offered * (new - old).max(0.0);
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = self.step();
        let (part, passing) = (100.0 * self.newly_part(), self.passing());
        write!(f, "{}: ", self.limit.name)?;
        if from == to {
            f.write_str("the change")?;
        } else {
            write!(f, "{from} → {to}")?;
        }
        write!(f, " would newly drop {part:.1} % of {passing:.0}/s")?;
        match &self.basis {
            Basis::Like(other) => write!(f, " (of {other}, which concerns the same requests)"),
            Basis::OtherMatch => f.write_str(" (counted under its present match)"),
            Basis::Counted | Basis::Unknown => Ok(()),
        }
    }
}

/// One zone for each standing that the two limits may have: those that try either, and one that nobody names.
fn zones_told_apart<'a>(before: &'a Limit, after: &'a Limit) -> impl Iterator<Item = &'a str> {
    let rollouts = before.rollout.iter().chain(&after.rollout);
    rollouts.flat_map(|rollout| rollout.zones.iter().map(String::as_str)).chain([""])
}

/// The part of an offered rate that a limit drops in a zone, from 0 to 1.
fn dropped_part(limit: &Limit, zone: &str, offered: f64) -> f64 {
    let (rate, mode) = limit.standing_in(zone);
    match mode {
        Mode::Enforce => Headroom::of(rate.per_second(), offered).drop_ratio().value(),
        Mode::Shadow | Mode::Off => 0.0,
    }
}

/// What `new` would do to the demand under `old`, for each limit of `new` in pipeline order. `demand` is what each bucket is
/// offered at present, in units a second.
pub fn effects<'a>(
    old: &LimitSet,
    new: &LimitSet,
    demand: impl IntoIterator<Item = (&'a BucketKey, f64)>,
) -> Vec<Effect> {
    let sources = Sources::of(old);
    let mut effects: Vec<Effect> =
        new.limits().iter().map(|limit| Effect::of(limit, sources.of_limit(limit))).collect();
    let mut fed: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
    for (place, effect) in effects.iter().enumerate() {
        if let Some(before) = &effect.before {
            fed.entry(before.name.clone()).or_default().push(place);
        }
    }
    for (key, offered) in demand {
        let Some((before, places)) = old.of_bucket(key).zip(fed.get(&key.limit)) else { continue };
        for place in places {
            let effect = &mut effects[*place];
            if let Some(after) = of_renamed(new, key, &effect.limit.name) {
                effect.add(before, &after, offered);
            }
        }
    }
    effects
}

/// The limit of this name, as it holds for the bucket with the values of `key`.
fn of_renamed(set: &LimitSet, key: &BucketKey, name: &Arc<str>) -> Option<Arc<Limit>> {
    if key.limit == *name {
        return set.of_bucket(key).cloned();
    }
    set.of_bucket(&BucketKey { limit: name.clone(), ..key.clone() }).cloned()
}

/// Which requests a limit concerns, and how it tells them apart.
type Concern<'a> = (&'a [(String, Pattern)], bool, &'a [String], Scope);

/// The limits in force that count demand, by name and by what they concern.
struct Sources<'a> {
    set: &'a LimitSet,
    by_concern: HashMap<Concern<'a>, &'a Arc<Limit>>,
}

impl<'a> Sources<'a> {
    fn of(set: &'a LimitSet) -> Self {
        let counting = set.limits().iter().filter(|limit| limit.is_planned());
        // Of several the first: those behind it are offered only what it lets through.
        let by_concern = counting.rev().map(|limit| (concern(limit), limit)).collect();
        Self { set, by_concern }
    }

    fn of_limit(&self, limit: &Limit) -> Option<(Arc<Limit>, Basis)> {
        if !limit.is_planned() {
            return None;
        }
        let own = self.set.get(&limit.name).filter(|own| own.is_planned() && own.counts_like(limit));
        if let Some(own) = own {
            let same = concern(own) == concern(limit);
            return Some((own.clone(), if same { Basis::Counted } else { Basis::OtherMatch }));
        }
        let like = self.by_concern.get(&concern(limit))?;
        Some(((*like).clone(), Basis::Like(like.name.clone())))
    }
}

fn concern(limit: &Limit) -> Concern<'_> {
    (&limit.matches, limit.exactly, &limit.per, limit.scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Values;
    use crate::limits::parse;
    use proptest::prelude::*;

    fn set(limits: &str) -> LimitSet {
        parse(&format!("limits: [{limits}]")).unwrap()
    }

    fn bucket(limit: &str, values: &[&str]) -> BucketKey {
        let values = Values::Of(values.iter().map(|value| (*value).to_owned()).collect());
        BucketKey { limit: limit.into(), scope: Vec::new(), values }
    }

    fn effect(old: &str, new: &str, demand: &[(BucketKey, f64)]) -> Effect {
        let demand = demand.iter().map(|(key, offered)| (key, *offered));
        effects(&set(old), &set(new), demand).remove(0)
    }

    fn whole(offered: f64) -> Vec<(BucketKey, f64)> {
        vec![(bucket("a", &[]), offered)]
    }

    #[track_caller]
    fn is(effect: &Effect, offered: f64, dropped: f64, would_drop: f64, newly: f64) {
        let all = [effect.offered, effect.dropped, effect.would_drop, effect.newly];
        let wanted = [offered, dropped, would_drop, newly];
        assert!(all.iter().zip(wanted).all(|(is, wanted)| (is - wanted).abs() < 1e-6), "{all:?} {wanted:?}");
    }

    #[test]
    fn a_slip_of_three_digits_drops_nearly_all() {
        let effect = effect("{name: a, rate: 25000/second}", "{name: a, rate: 25/second}", &whole(21_300.0));
        is(&effect, 21_300.0, 0.0, 21_275.0, 21_275.0);
        assert!(effect.is_beyond(0.1));
        assert_eq!(effect.to_string(), "a: 25000/second → 25/second would newly drop 99.9 % of 21300/s");
    }

    #[test]
    fn in_a_surge_what_passes_is_what_can_be_lost() {
        let effect = effect("{name: a, rate: 1000/second}", "{name: a, rate: 1/second}", &whole(100_000.0));
        is(&effect, 100_000.0, 99_000.0, 99_999.0, 999.0);
        assert!(effect.newly < 0.1 * effect.offered && effect.is_beyond(0.9), "{effect}");
    }

    #[test]
    fn enforcing_what_was_watched_drops_newly_what_it_would_have_dropped() {
        let effect =
            effect("{name: a, rate: 400/second, mode: shadow}", "{name: a, rate: 400/second}", &whole(600.0));
        is(&effect, 600.0, 0.0, 200.0, 200.0);
        assert_eq!(
            effect.to_string(),
            "a: shadow 400/second → enforce 400/second would newly drop 33.3 % of 600/s"
        );
    }

    #[test]
    fn more_room_or_less_enforcement_drops_nothing_newly() {
        for new in ["rate: 500/second", "rate: 1/second, mode: shadow", "rate: unlimited", "rate: 400/second"]
        {
            let effect =
                effect("{name: a, rate: 400/second}", &format!("{{name: a, {new}}}"), &whole(1000.0));
            assert!(effect.newly == 0.0 && !effect.is_beyond(0.0), "{new}: {effect}");
        }
    }

    #[test]
    fn overrides_hold_by_bucket_and_one_gain_makes_up_for_no_loss() {
        let demand = [(bucket("a", &["x"]), 100.0), (bucket("a", &["y"]), 100.0)];
        let old = "{name: a, per: [k], rate: 50/second, overrides: [{match: {k: x}, rate: 100/second}]}";
        let new = "{name: a, per: [k], rate: 100/second, overrides: [{match: {k: x}, rate: 10/second}]}";
        let found = effect(old, new, &demand);
        is(&found, 200.0, 50.0, 90.0, 90.0);
        let shadow = "{name: a, per: [k], rate: 50/second, overrides: [{match: {k: x}, rate: 10/second, mode: shadow}]}";
        is(&effect(old, shadow, &demand), 200.0, 50.0, 50.0, 0.0);
    }

    #[test]
    fn a_rollout_is_judged_where_it_takes_most() {
        let tried = "{name: a, rate: 300/second, rollout: {zones: [x], elsewhere: {rate: 600/second}}}";
        let (wide, narrow) = ("{name: a, rate: 600/second}", "{name: a, rate: 300/second}");
        is(&effect(wide, tried, &whole(600.0)), 600.0, 0.0, 300.0, 300.0);
        is(&effect(tried, narrow, &whole(600.0)), 600.0, 0.0, 300.0, 300.0);
        is(&effect(tried, wide, &whole(600.0)), 600.0, 0.0, 0.0, 0.0);
        let shadow = "{name: a, rate: 300/second, mode: off, rollout: {zones: [x], elsewhere: shadow}}";
        is(&effect(shadow, narrow, &whole(600.0)), 600.0, 0.0, 300.0, 300.0);
    }

    #[test]
    fn another_scope_is_another_count() {
        let zonal =
            effect("{name: a, rate: 9/second}", "{name: a, rate: 1/second, scope: zone}", &whole(600.0));
        assert_eq!(zonal.basis, Basis::Unknown);
    }

    #[test]
    fn a_dearer_request_counts_for_more() {
        let new = "{name: a, rate: 400/second, cost: 4}";
        is(&effect("{name: a, rate: 400/second}", new, &whole(200.0)), 200.0, 0.0, 100.0, 100.0);
    }

    #[test]
    fn what_is_not_known_is_said_to_be_so() {
        let old =
            "{name: a, match: {s: x}, per: [k], rate: 400/second}, {name: o, rate: 9/second, mode: off}";
        for new in [
            "{name: b, rate: 1/second}",
            "{name: a, match: {s: x}, per: [j], rate: 1/second}",
            "{name: a, match: {s: x}, per: [k], rate: 1/second, enforcement: exact}",
            "{name: o, rate: 1/second}",
        ] {
            let effect = effect(old, new, &[(bucket("a", &["v"]), 1000.0)]);
            assert_eq!((&effect.basis, effect.offered), (&Basis::Unknown, 0.0), "{new}");
            assert!(!effect.is_beyond(0.0));
        }
    }

    #[test]
    fn a_limit_by_another_name_goes_by_the_demand_of_the_one_like_it() {
        let demand = [(bucket("a", &["v"]), 1000.0)];
        let old = "{name: a, match: {s: x}, per: [k], rate: 400/second}";
        let renamed = effect(old, "{name: b, match: {s: x}, per: [k], rate: 100/second}", &demand);
        assert_eq!(renamed.basis, Basis::Like("a".into()));
        is(&renamed, 1000.0, 600.0, 900.0, 300.0);
        let elsewhere = effect(old, "{name: a, match: {s: y}, per: [k], rate: 100/second}", &demand);
        assert_eq!(elsewhere.basis, Basis::OtherMatch);
        is(&elsewhere, 1000.0, 600.0, 900.0, 300.0);
    }

    #[test]
    fn little_demand_is_no_cause() {
        let (old, new) = ("{name: a, rate: 400/second}", "{name: a, rate: 0/second}");
        assert!(!effect(old, new, &whole(9.0)).is_beyond(0.1));
        assert!(effect(old, new, &whole(11.0)).is_beyond(0.1));
        assert!(!effect(old, new, &whole(0.0)).is_beyond(0.1));
    }

    proptest! {
        #[test]
        fn parts_are_parts_and_sums_add_up(
            old in 0u64..1000, new in 0u64..1000, offered in prop::collection::vec(0.0..1e6f64, 1..20),
        ) {
            let rates = [old, new].map(|rate| set(&format!("{{name: a, per: [k], rate: {rate}/second}}")));
            let keys: Vec<BucketKey> = (0..offered.len()).map(|k| bucket("a", &[&k.to_string()])).collect();
            let demand = keys.iter().zip(offered.iter().copied());
            let effect = effects(&rates[0], &rates[1], demand).remove(0);
            prop_assert!((0.0..=1.0).contains(&effect.newly_part()));
            prop_assert!(effect.newly <= effect.passing() + 1e-6);
            prop_assert!(effect.would_drop <= effect.dropped + effect.newly + 1e-6);
            prop_assert_eq!(effect.newly > 0.0, new < old && effect.would_drop > effect.dropped);
        }
    }
}
