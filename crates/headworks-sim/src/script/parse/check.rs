//! What only the whole script can tell: whether what a line speaks of is there.

use std::time::Duration;

use super::{Line, Parsed};
use crate::script::{Event, Hosts, Kind, Link, Measure, Script, Who};

/// Whether it happens within the run, and to nodes that are there.
pub(super) fn event(script: &Script, (time, event): &(Duration, Event)) -> Parsed<()> {
    if *time > script.length {
        return Err(format!("the run is over before {time:?}: write a longer `run`"));
    }
    match event {
        Event::Kill(node) | Event::Start(node) | Event::Pause(node, _) | Event::Clock(node, _) => {
            who(script, node)
        }
        Event::Cut(between, _) | Event::Slow(between, _) | Event::Heal(between) => link(script, between),
        Event::Drain(range) | Event::Restore(range) | Event::Weight(range, _) => hosts(script, range),
        Event::Offer { .. } | Event::Delay(..) | Event::Loss(_) | Event::Repeat(_) | Event::Replace => Ok(()),
    }
}

fn who(script: &Script, who: &Who) -> Parsed<()> {
    match who {
        Who::Hosts(range) => hosts(script, range),
        Who::Zone(zone) => among("zone", *zone, script.zones.len()),
        Who::Aggregator { zone, place } => {
            among("zone", *zone, script.zones.len())?;
            if *place < script.aggregators {
                return Ok(());
            }
            Err(format!(
                "there is no aggregator {zone}.{place}: write `zones 2 x 20 aggregators {}`",
                place + 1
            ))
        }
        Who::Controller(controller) => among("controller", *controller, script.controllers),
    }
}

/// Whether its ends are there, and one is above the other.
fn link(script: &Script, link: &Link) -> Parsed<()> {
    who(script, &link.of)?;
    let Some(parent) = &link.from else { return Ok(()) };
    who(script, parent)?;
    match (&link.of, parent) {
        (Who::Hosts(_), Who::Zone(_) | Who::Aggregator { .. })
        | (Who::Zone(_) | Who::Aggregator { .. }, Who::Controller(_)) => Ok(()),
        _ => Err(
            "nothing lies between these: write a child `from` its parent, as in `zone 1 from controller 0`"
                .to_owned(),
        ),
    }
}

fn among(what: &str, number: usize, there: usize) -> Parsed<()> {
    if number < there {
        return Ok(());
    }
    Err(format!("there is no {what} {number}: the last one is {what} {}", there.saturating_sub(1)))
}

fn hosts(script: &Script, range: &Hosts) -> Parsed<()> {
    let there: usize = script.zones.iter().sum();
    if range.end <= there {
        return Ok(());
    }
    Err(format!("there are no hosts {}..{}: all of them are 0..{there}", range.start, range.end))
}

pub(super) fn measure(script: &Script, measure: &Measure) -> Parsed<()> {
    match measure.kind {
        Kind::Reports | Kind::Agents | Kind::Attaching | Kind::Kept => nothing_named(&measure.name)?,
        Kind::Stream => stream(script, &measure.name)?,
        _ => limit(script, &measure.name)?,
    }
    if let Some(range) = &measure.hosts {
        hosts(script, range)?;
    }
    if measure.kind == Kind::Counts && (!measure.span.from.is_zero() || measure.span.to != script.length) {
        return Err(format!("counts are of the whole run: write from 0s to {:?}", script.length));
    }
    within(script, measure.span.to)
}

pub(super) fn chart(script: &Script) -> Parsed<()> {
    let Some((name, span)) = &script.chart else { return Ok(()) };
    limit(script, name)?;
    within(script, span.to)
}

fn within(script: &Script, end: Duration) -> Parsed<()> {
    if end <= script.length {
        return Ok(());
    }
    Err(format!("the run is over before {end:?}: write a longer `run`, or end sooner"))
}

fn nothing_named(name: &str) -> Parsed<()> {
    if name.is_empty() {
        Ok(())
    } else {
        Err(format!("this is measured of the whole fleet: leave `{name}` out"))
    }
}

fn limit(script: &Script, name: &str) -> Parsed<()> {
    if script.limits.get(name).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = script.limits.limits().iter().map(|limit| &*limit.name).collect();
    Err(format!("no limit `{name}`: {}", there_are(&known, "write one below `limits:`")))
}

fn stream(script: &Script, name: &str) -> Parsed<()> {
    let known: Vec<&str> = script.streams.iter().map(|stream| stream.name.as_str()).collect();
    if known.contains(&name) {
        return Ok(());
    }
    Err(format!("no stream `{name}`: {}", there_are(&known, "write `stream NAME key=value` before")))
}

fn there_are(known: &[&str], otherwise: &str) -> String {
    if known.is_empty() { otherwise.to_owned() } else { format!("there are {}", known.join(", ")) }
}

/// The first line of which a check fails.
pub(super) fn all<T>(
    items: &[T],
    lines: &[Line],
    check: impl Fn(&T) -> Parsed<()>,
) -> Result<(), (Line, String)> {
    items.iter().zip(lines).try_for_each(|(item, line)| check(item).map_err(|message| (*line, message)))
}
