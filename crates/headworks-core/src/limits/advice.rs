//! Advice: limits without a fault that another kind of enforcement would hold better.
//!
//! A drop ratio is right on average over many requests, so what is small is held badly. How badly was simulated, with 4, 50 and
//! 200 hosts at twice the limit, by the deviation of what passes in a minute: 7 to 10 of 120 at 2/second and 15 to 18
//! of 1200 at 20/second, about the square root; but 31 of 1200 over 200 hosts, which have six a minute each; and at
//! 1/second the mean is a fifth too high, since the ratio follows a demand that is known by few requests. Budgets pay what
//! they owe, and so are right over their own unit but for what the last minute may be off. What they do worst is to meet all
//! hosts afresh: until these hear that it is used up, each lets through about one request (24 beyond 10/minute and
//! its burst, over 50 hosts that are asked 20 times a second), which a budget of many times that can pay back.

use super::fault::FaultLog;
use super::fields::Field;
use super::{Limit, Mode};
use crate::units::{Rate, Unit};

/// The part of a limit by which it may be off before somebody ought to know.
const TOLERATED: f64 = 0.1;
/// Cost units a second in one bucket from which exact counting costs more than it gives: each request takes the one
/// lock of its bucket, and a drop ratio that has so many is off by less than one in a thousand.
const LARGE: f64 = 50_000.0;

/// What the owner of a sound limit should know, if it is meant for so many agents.
pub(super) fn advise(field: &Field<'_>, limit: &Limit, agents: u32, log: &mut FaultLog) {
    if limit.is_off() {
        return;
    }
    let told = |limit: &Limit| {
        if limit.exact().is_some() { too_large(limit.rate) } else { too_small(limit, agents) }
    };
    tell(field, log, told(limit));
    let rollout = field.get("rollout");
    let elsewhere = rollout.as_ref().and_then(|rollout| rollout.get("elsewhere"));
    let other = limit.rollout.as_ref().and_then(|rollout| rollout.rate);
    if let (Some(elsewhere), Some(rate)) = (elsewhere, other) {
        tell(&elsewhere, log, told(&Limit { rate, ..limit.clone() }));
    }
    let overrides = field.get("overrides");
    let items = overrides.iter().flat_map(|overrides| overrides.items());
    for (item, other) in items.zip(&limit.overrides).filter(|(_, other)| other.mode != Some(Mode::Off)) {
        tell(&item, log, told(&limit.with(other)));
    }
}

fn tell(holder: &Field<'_>, log: &mut FaultLog, warning: Option<String>) {
    if let (Some(rate), Some(warning)) = (holder.get("rate"), warning) {
        rate.fault(log, warning);
    }
}

/// Whether a drop ratio would hold it badly over so many agents.
pub(super) fn is_too_small(limit: &Limit, agents: u32) -> bool {
    too_small(limit, agents).is_some()
}

fn too_small(limit: &Limit, agents: u32) -> Option<String> {
    let Rate::Per { amount: 1.., unit } = limit.rate else { return None };
    let requests =
        |time: Unit| limit.rate.per_second() * time.duration().as_secs_f64() / f64::from(limit.cost);
    let (within, wanted) = match unit {
        Unit::Second => (Unit::Minute, requests(Unit::Minute)),
        unit => (unit, requests(unit)),
    };
    let off = off_by(unit, requests(Unit::Minute), f64::from(agents));
    (off > TOLERATED * wanted).then(|| {
        let (over, off, within) = (over(agents), off.round().max(1.0), within.name());
        format!(
            "{} is little for a drop ratio over {over}, which is right on average: of {wanted:.0} requests in a {within} \
             it may be off by {off:.0}; `enforcement: exact` counts them one by one",
            limit.rate
        )
    })
}

/// By how many requests what passes may be off, over a minute for a limit per second, else over its unit: by the square root of a
/// minute's requests, as chance has it, and by one for each agent. Agents that hold a rate are off in either
/// direction, each by itself; a budget may meet all of them at once.
fn off_by(unit: Unit, in_a_minute: f64, agents: f64) -> f64 {
    let by_agents = if unit == Unit::Second { agents } else { agents * agents };
    (in_a_minute + by_agents).sqrt()
}

fn over(agents: u32) -> String {
    if agents == 1 { "1 agent".to_owned() } else { format!("{agents} agents") }
}

fn too_large(rate: Rate) -> Option<String> {
    let is_large = !matches!(rate, Rate::Unlimited) && rate.per_second() > LARGE;
    is_large.then(|| {
        format!(
            "{rate} is much for an exact count, in which every request waits its turn at one bucket: without \
             `enforcement: exact` a drop ratio holds so many as well, and nobody waits"
        )
    })
}
