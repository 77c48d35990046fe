//! Figures of a run.

use std::collections::HashMap;
use std::time::Duration;

use crate::log::{Cell, Log};
use crate::script::{Kind, Measure, Script, Span};
use crate::world::Kept;

/// Windows in which a surge is looked at.
const WINDOW: Duration = Duration::from_millis(100);
/// How near to the limit a window has to be for the loop to count as settled.
const SETTLED: f64 = 0.05;

/// One figure: its name, its value, its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
}

fn figure(name: &'static str, value: f64, unit: &'static str) -> Figure {
    Figure { name, value, unit }
}

/// The figures of one measure.
pub(crate) fn figures(measure: &Measure, script: &Script, log: &Log) -> Vec<Figure> {
    let cells = || cells(measure, script, log);
    let rate = script.limits.get(&measure.name).map_or(f64::INFINITY, |limit| limit.rate.per_second());
    match measure.kind {
        Kind::Surge => surge(cells(), rate, log.step),
        Kind::Held => held(cells(), rate, log.step),
        Kind::Dropped => dropped(cells(), measure.span),
        Kind::Stream => passed(cells(), measure.span),
        Kind::Ratio => ratio(measure, log),
        Kind::Estimate if measure.counted => counted(measure, cells(), log),
        Kind::Estimate => estimate(measure, cells(), log),
        Kind::Reports => reports(measure.span, log),
        Kind::Agents => agents(measure.span, log),
        Kind::Attaching => attaching(measure.span, script, log),
        Kind::Counts => counts(measure, log),
        Kind::Kept => kept(measure.span, log),
    }
}

fn cells<'a>(measure: &Measure, script: &Script, log: &'a Log) -> &'a [Cell] {
    let steps = log.steps(measure.span);
    match measure.kind {
        Kind::Stream => {
            let stream = script.streams.iter().position(|stream| stream.name == measure.name);
            stream.map_or(&[], |stream| &log.streams[stream][steps])
        }
        _ => log.limit(&measure.name).map_or(&[], |limit| {
            let part = measure.hosts.as_ref().and_then(|hosts| log.part(hosts, limit));
            &part.unwrap_or(&log.limits[limit])[steps]
        }),
    }
}

fn admitted(cells: &[Cell]) -> f64 {
    cells.iter().map(|cell| f64::from(cell.admitted)).sum()
}

fn offered(cells: &[Cell]) -> f64 {
    cells.iter().map(|cell| f64::from(cell.offered)).sum()
}

fn steps_in(window: Duration, step: Duration) -> usize {
    usize::try_from(window.as_nanos() / step.as_nanos().max(1)).unwrap_or(1).max(1)
}

fn surge(cells: &[Cell], rate: f64, step: Duration) -> Vec<Figure> {
    let window = steps_in(WINDOW, step);
    let wanted = rate * (step * u32::try_from(window).unwrap_or(1)).as_secs_f64();
    let windows: Vec<f64> = cells.windows(window).map(|cells| admitted(cells) / wanted).collect();
    let last_off = windows.iter().rposition(|part| (part - 1.0).abs() > SETTLED);
    #[allow(clippy::cast_precision_loss, reason = "steps of a run")]
    let settles = last_off.map_or(0.0, |index| (index + 1) as f64 * step.as_secs_f64());
    let mut over = 0.0;
    let mut excess: f64 = 0.0;
    for cell in cells {
        over += f64::from(cell.admitted) - rate * step.as_secs_f64();
        excess = excess.max(over);
    }
    let peak = windows.iter().copied().fold(0.0, f64::max);
    vec![figure("settles", settles, "s"), figure("excess", excess / rate, "s"), figure("peak", peak, "x")]
}

fn held(cells: &[Cell], rate: f64, step: Duration) -> Vec<Figure> {
    let seconds: Vec<f64> = (cells.chunks_exact(steps_in(Duration::from_secs(1), step)))
        .map(|cells| admitted(cells) / rate)
        .collect();
    #[allow(clippy::cast_precision_loss, reason = "seconds of a run")]
    let n = seconds.len().max(1) as f64;
    let mean = seconds.iter().sum::<f64>() / n;
    let variance = seconds.iter().map(|second| (second - mean).powi(2)).sum::<f64>() / n;
    vec![
        figure("mean", mean, "x"),
        figure("deviation", variance.sqrt() * 100.0, "%"),
        figure("least", seconds.iter().copied().fold(f64::INFINITY, f64::min), "x"),
        figure("most", seconds.iter().copied().fold(0.0, f64::max), "x"),
    ]
}

fn dropped(cells: &[Cell], span: Span) -> Vec<Figure> {
    let (offered, admitted) = (offered(cells), admitted(cells));
    let rate = offered / span.to.saturating_sub(span.from).as_secs_f64();
    let dropped = offered - admitted;
    vec![
        figure("dropped", 100.0 * dropped / offered.max(1.0), "%"),
        figure("lost", 1000.0 * dropped / rate.max(1e-9), "ms"),
        figure("admitted", admitted, ""),
    ]
}

fn passed(cells: &[Cell], span: Span) -> Vec<Figure> {
    let seconds = span.to.saturating_sub(span.from).as_secs_f64();
    let (offered, admitted) = (offered(cells), admitted(cells));
    vec![
        figure("rate", admitted / seconds, "/s"),
        figure("dropped", 100.0 * (offered - admitted) / offered.max(1.0), "%"),
    ]
}

fn ratio(measure: &Measure, log: &Log) -> Vec<Figure> {
    let Some(limit) = log.limit(&measure.name) else { return Vec::new() };
    let readings = &log.readings[limit][log.steps(measure.span)];
    let ratios = || readings.iter().map(|reading| f64::from(reading.ratio));
    #[allow(clippy::cast_precision_loss, reason = "steps of a run")]
    let (n, shut) = (readings.len().max(1) as f64, ratios().filter(|ratio| *ratio >= 1.0).count() as f64);
    vec![
        figure("mean", ratios().sum::<f64>() / n, ""),
        figure("least", ratios().fold(1.0, f64::min), ""),
        figure("most", ratios().fold(0.0, f64::max), ""),
        figure("shut", 100.0 * shut / n, "%"),
    ]
}

fn estimate(measure: &Measure, cells: &[Cell], log: &Log) -> Vec<Figure> {
    let Some(limit) = log.limit(&measure.name) else { return Vec::new() };
    let readings = &log.readings[limit][log.steps(measure.span)];
    let taken: f64 = readings.iter().map(|reading| f64::from(reading.demand)).sum();
    vec![figure("taken", taken * log.step.as_secs_f64() / offered(cells).max(1.0), "x")]
}

/// What the controller has counted in a span of what was offered in it.
fn counted(measure: &Measure, cells: &[Cell], log: &Log) -> Vec<Figure> {
    let Some(limit) = log.limit(&measure.name) else { return Vec::new() };
    let (readings, steps) = (&log.readings[limit], log.steps(measure.span));
    let by = |step: usize| step.checked_sub(1).map_or(0, |last| readings[last].counted);
    // A controller that starts in the span counts from zero.
    let counted = by(steps.end).saturating_sub(by(steps.start));
    #[allow(clippy::cast_precision_loss, reason = "to look at")]
    let part = counted as f64 / offered(cells).max(1.0);
    vec![figure("part", part, "x")]
}

fn reports(span: Span, log: &Log) -> Vec<Figure> {
    let (mut full, mut early) = (0, 0);
    for (more, more_early) in &log.reports[log.steps(span)] {
        full += more;
        early += more_early;
    }
    let in_span = |(time, _): &&(Duration, u32)| (span.from..span.to).contains(time);
    let mut by_host: HashMap<u32, Vec<Duration>> = HashMap::new();
    for (time, host) in log.early.iter().filter(in_span) {
        by_host.entry(*host).or_default().push(*time);
    }
    let most = by_host.values().map(|times| most_in_a_second(times)).max().unwrap_or(0);
    let apart =
        by_host.values().flat_map(|times| times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])));
    let apart = apart.min().map_or(f64::INFINITY, |apart| apart.as_secs_f64() * 1000.0);
    let all = f64::from(full + early).max(1.0);
    vec![
        figure("full", f64::from(full), ""),
        figure("early", f64::from(early), ""),
        figure("share", 100.0 * f64::from(early) / all, "%"),
        figure("most", f64::from(u32::try_from(most).unwrap_or(u32::MAX)), "a second"),
        figure("apart", apart, "ms"),
    ]
}

fn most_in_a_second(times: &[Duration]) -> usize {
    let within = |first: &Duration| {
        times
            .iter()
            .filter(|time| **time >= *first && time.saturating_sub(*first) < Duration::from_secs(1))
            .count()
    };
    times.iter().map(within).max().unwrap_or(0)
}

fn agents(span: Span, log: &Log) -> Vec<Figure> {
    let known = || log.agents.iter().filter(|(time, _)| (span.from..span.to).contains(time)).map(|(_, n)| *n);
    vec![
        figure("least", f64::from(known().min().unwrap_or(0)), ""),
        figure("most", f64::from(known().max().unwrap_or(0)), ""),
    ]
}

fn attaching(span: Span, script: &Script, log: &Log) -> Vec<Figure> {
    let second = steps_in(Duration::from_secs(1), log.step);
    let seconds = log.attempts[log.steps(span)].chunks(second).map(|steps| steps.iter().sum::<u32>());
    #[allow(clippy::cast_precision_loss, reason = "hosts of a run")]
    let hosts = script.zones.iter().sum::<usize>() as f64;
    vec![figure("most", 100.0 * f64::from(seconds.max().unwrap_or(0)) / hosts, "% of hosts a second")]
}

/// In percent of what reached the parents, and of what hosts counted.
fn counts(measure: &Measure, log: &Log) -> Vec<Figure> {
    let Some(settled) = log.limit(&measure.name).and_then(|limit| log.settled.get(limit)) else {
        return Vec::new();
    };
    #[allow(clippy::cast_precision_loss, reason = "to look at")]
    let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    let missed = percent(settled.truth, settled.truth) - percent(settled.counted, settled.truth);
    vec![
        figure("over", percent(settled.over, settled.reached), "%"),
        figure("short", percent(settled.short, settled.reached), "%"),
        figure("unheard", missed, "%"),
    ]
}

fn kept(span: Span, log: &Log) -> Vec<Figure> {
    let most = |of: fn(&Kept) -> usize| {
        let seconds = log.kept.iter().filter(|(time, _)| (span.from..span.to).contains(time));
        let most = seconds.map(|(_, kept)| of(kept)).max().unwrap_or(0);
        f64::from(u32::try_from(most).unwrap_or(u32::MAX))
    };
    vec![
        figure("children", most(|kept| kept.children), ""),
        figure("held", most(|kept| kept.held), ""),
        figure("buckets", most(|kept| kept.buckets), ""),
        figure("departed", most(|kept| kept.departed), ""),
        figure("orphans", most(|kept| kept.orphans), ""),
        figure("unanswered", most(|kept| kept.unanswered), ""),
    ]
}
