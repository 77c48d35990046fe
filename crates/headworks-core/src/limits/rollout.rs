//! Rollouts: a limit that some zones try first.

use std::sync::Arc;

use super::fault::{FaultLog, quoted};
use super::fields::Field;
use super::format::{self, MAX_ZONES};
use super::words::{MODES, choice};
use super::yaml::Kind;
use super::{Limit, LimitSet, Mode, values};
use crate::units::Rate;

/// Where a limit holds as it stands, and what holds in the other zones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rollout {
    /// The zones that try the limit, sorted. Shared: what each of ten thousand overrides makes of the limit has them too.
    pub zones: Arc<[String]>,
    /// Its rate in other zones; `None` takes the limit's own. Of limits that drop by ratio, only for those by the second.
    pub rate: Option<Rate>,
    /// Its mode in other zones; `None` takes the limit's own.
    pub mode: Option<Mode>,
}

impl Rollout {
    /// How the headroom that the control plane computes by the limit's own rate is to be multiplied in a zone.
    fn scale(&self, own: Rate, zone: &str) -> f64 {
        match self.rate {
            Some(rate) if !self.tries(zone) => rate.per_second() / own.per_second(),
            _ => 1.0,
        }
    }

    fn tries(&self, zone: &str) -> bool {
        self.zones.iter().any(|tries| tries == zone)
    }
}

impl Limit {
    /// The limit as it holds in a zone, where nothing is left to roll out.
    fn in_zone(&self, zone: &str) -> Limit {
        let (rate, mode) = self.standing_in(zone);
        Limit { rate, mode, rollout: None, ..self.clone() }
    }

    /// Its rate and mode in a zone.
    pub fn standing_in(&self, zone: &str) -> (Rate, Mode) {
        match self.rollout.as_ref().filter(|rollout| !rollout.tries(zone)) {
            Some(elsewhere) => (elsewhere.rate.unwrap_or(self.rate), elsewhere.mode.unwrap_or(self.mode)),
            None => (self.rate, self.mode),
        }
    }

    /// How the headroom that the control plane computes by the limit's own rate is to be multiplied in a zone.
    pub fn scale_in(&self, zone: &str) -> f64 {
        self.rollout.as_ref().map_or(1.0, |rollout| rollout.scale(self.rate, zone))
    }

    /// Whether no zone matches or counts anything for it: it is off as it stands, and where it is not tried.
    pub fn is_off(&self) -> bool {
        let elsewhere = self.rollout.as_ref().and_then(|rollout| rollout.mode).unwrap_or(self.mode);
        self.mode == Mode::Off && elsewhere == Mode::Off
    }

    /// Whether the control plane counts its demand, and plans tell of it: what is exact is counted in one place.
    pub fn is_planned(&self) -> bool {
        self.exact().is_none() && !self.is_off()
    }
}

impl LimitSet {
    /// The limits as they hold in a zone.
    pub fn in_zone(self: &Arc<Self>, zone: &str) -> Arc<LimitSet> {
        if self.limits().iter().all(|limit| limit.rollout.is_none()) {
            return self.clone();
        }
        Arc::new(LimitSet::new(self.limits().iter().map(|limit| limit.in_zone(zone)).collect()))
    }
}

/// The rollout of a limit of this rate, if it has one.
pub(super) fn rollout(
    limit: &Field<'_>,
    rate: Option<Rate>,
    is_exact: bool,
    log: &mut FaultLog,
) -> Option<Rollout> {
    let field = limit.get("rollout")?;
    field.map(log, "a mapping like `{zones: [a], elsewhere: off}`")?;
    field.refuse_other_keys(log, format::ROLLOUT);
    let zones = zones(&field, log);
    let (other, mode) = elsewhere(&field, log)?;
    if let (Some(other), Some(rate), false) = (other, rate, is_exact)
        && !(other.is_by_the_second() && rate.is_by_the_second())
    {
        field.fault(
            log,
            "only a limit per second can have another rate elsewhere, also per second and neither 0 nor unlimited: a \
             budget is one for the fleet; let `mode` differ",
        );
    }
    Some(Rollout { zones: zones.into(), rate: other, mode })
}

fn zones(rollout: &Field<'_>, log: &mut FaultLog) -> Vec<String> {
    let Some(field) = rollout.need(log, "zones", "say which zones try the limit, like `zones: [a]`") else {
        return Vec::new();
    };
    let items = field.list(log, "a list of zones like `[a]`");
    if matches!(&field.node.kind, Kind::List(items) if items.is_empty()) {
        field.fault(log, "is empty: say which zones try the limit, like `[a]`");
    }
    if items.len() > MAX_ZONES {
        field.fault(log, format!("names more than {MAX_ZONES} zones: let the limit hold everywhere"));
    }
    let mut zones = Vec::new();
    for (at, node) in items.iter().take(MAX_ZONES).enumerate() {
        let item = field.item(at, node);
        let Some(zone) = item.read(log, "text", values::name) else { continue };
        if zones.iter().any(|known| known == zone) {
            item.fault(log, format!("{} is in `zones` twice: remove one", quoted(zone)));
        }
        zones.push(zone.to_owned());
    }
    zones.sort();
    zones
}

/// Rate and mode in other zones. Nobody should have to guess them: what was in force before is nowhere in the file.
fn elsewhere(rollout: &Field<'_>, log: &mut FaultLog) -> Option<(Option<Rate>, Option<Mode>)> {
    let field = rollout.need(
        log,
        "elsewhere",
        "say what holds in other zones, like `{rate: 400/second}`, `shadow` or `off`",
    )?;
    let mode = |field: &Field<'_>, log: &mut FaultLog| field.read(log, "a word", |text| choice(text, MODES));
    if !matches!(field.node.kind, Kind::Map(_)) {
        return Some((None, mode(&field, log)));
    }
    field.refuse_other_keys(log, format::ELSEWHERE);
    let rate = field.get("rate").and_then(|rate| rate.read(log, "a rate like `400/second`", values::rate));
    let mode = field.get("mode").and_then(|field| mode(&field, log));
    if matches!(&field.node.kind, Kind::Map(entries) if entries.is_empty()) {
        field.fault(log, "is empty: say what differs in other zones, or remove `rollout`");
    }
    Some((rate, mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{BucketKey, Values};
    use crate::limits::parse;

    #[test]
    fn a_zone_that_tries_it_has_the_limit_and_the_others_what_the_file_says() {
        let text = "limits: [{name: t, per: [k], rate: 300/second, rollout: {zones: [b, a], elsewhere: {rate: 400/second, mode: shadow}},
            overrides: [{match: {k: x}, rate: 5/second}]}]";
        let set = Arc::new(parse(text).unwrap());
        let told = |zone: &str| {
            let set = set.in_zone(zone);
            let limit = &set.limits()[0];
            (limit.rate.to_string(), limit.mode, limit.overrides.len())
        };
        assert_eq!(told("a"), ("300/second".into(), Mode::Enforce, 1));
        assert_eq!(told("c"), ("400/second".into(), Mode::Shadow, 1));
        let limit = &set.limits()[0];
        let scale = |zone| limit.scale_in(zone);
        assert!((scale("c") - 4.0 / 3.0).abs() < 1e-9 && scale("b") == 1.0);
    }

    #[test]
    fn overrides_take_the_mode_of_the_zone_and_no_other_rate() {
        let text = "limits: [{name: t, per: [k], rate: 300/second, mode: off, rollout: {zones: [a], elsewhere: {rate: 400/second, mode: enforce}},
            overrides: [{match: {k: x}, rate: 5/second}, {match: {k: y}, rate: 5/second, mode: off}]}]";
        let set = Arc::new(parse(text).unwrap());
        let of = |set: &LimitSet, value: &str| {
            let values = Values::Of(vec![value.to_owned()]);
            set.of_bucket(&BucketKey { limit: "t".into(), scope: Vec::new(), values }).unwrap().clone()
        };
        let told = |zone: &str| ["x", "y", "z"].map(|value| of(&set.in_zone(zone), value).mode);
        assert_eq!(told("a"), [Mode::Off; 3]);
        assert_eq!(told("c"), [Mode::Enforce, Mode::Off, Mode::Enforce]);
        let all = ["x", "y", "z"].map(|value| of(&set, value));
        assert_eq!(all.each_ref().map(|limit| limit.is_off()), [false, true, false]);
        assert_eq!(all.each_ref().map(|limit| limit.scale_in("c")), [1.0, 1.0, 4.0 / 3.0]);
    }

    #[test]
    fn without_rollouts_there_is_one_set_for_all_zones() {
        let set = Arc::new(parse("limits: [{name: t, rate: 1/day}]").unwrap());
        assert!(Arc::ptr_eq(&set, &set.in_zone("a")));
    }
}
