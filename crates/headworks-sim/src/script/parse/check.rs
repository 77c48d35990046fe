//! What only the whole script can tell: whether what a line speaks of is there.

use std::time::Duration;

use super::{Line, Parsed};
use crate::script::{Event, Hosts, Kind, Measure, Script, Who};

/// Whether it happens within the run, and to nodes that are there.
pub(super) fn event(script: &Script, (time, event): &(Duration, Event)) -> Parsed<()> {
    if *time > script.length {
        return Err(format!("the run is over before {time:?}: write a longer `run`"));
    }
    match event {
        Event::Kill(node) | Event::Start(node) | Event::Cut(node) | Event::Heal(node) => who(script, node),
        Event::Pause(node, _) => who(script, node),
        Event::Drain(range) | Event::Restore(range) => hosts(script, range),
        Event::Weight(range, _) | Event::Clock(range, _) => hosts(script, range),
        Event::Offer { .. } | Event::Delay(..) | Event::Loss(_) | Event::Repeat(_) | Event::Replace => Ok(()),
    }
}

fn who(script: &Script, who: &Who) -> Parsed<()> {
    match who {
        Who::Hosts(range) => hosts(script, range),
        Who::Zone(zone) => among("zone", *zone, script.zones.len()),
        Who::Controller(controller) => among("controller", *controller, script.controllers),
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
        Kind::Reports | Kind::Agents | Kind::Attaching => nothing_named(&measure.name)?,
        Kind::Stream => stream(script, &measure.name)?,
        _ => limit(script, &measure.name)?,
    }
    if let Some(range) = &measure.hosts {
        hosts(script, range)?;
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
