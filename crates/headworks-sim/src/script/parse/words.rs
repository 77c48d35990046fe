//! The words of a line: numbers, times, nodes.

use std::str::FromStr;
use std::time::Duration;

use super::Parsed;
use crate::script::{Expectation, Hosts, Kind, Link, Span, Stream, Way, Who};

/// Longer than any run, and short enough that sums of a few do not overflow.
const LONGEST_HOURS: f64 = 100_000.0;
/// A clock jumps no further: hosts' clocks begin a day from zero.
const LONGEST_JUMP: i64 = 43_200;

pub(super) fn stream(name: &str, attributes: &[&str]) -> Parsed<Stream> {
    let pair = |text: &&str| {
        let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        pair.ok_or_else(|| format!("`{text}` is no attribute: write key=value"))
    };
    let attributes = attributes.iter().map(pair).collect::<Parsed<_>>()?;
    Ok(Stream { name: name.to_owned(), attributes })
}

pub(super) fn kind(word: &str) -> Parsed<Kind> {
    Ok(match word {
        "surge" => Kind::Surge,
        "held" => Kind::Held,
        "dropped" => Kind::Dropped,
        "ratio" => Kind::Ratio,
        "estimate" | "counted" => Kind::Estimate,
        "reports" => Kind::Reports,
        "stream" => Kind::Stream,
        "agents" => Kind::Agents,
        "attaching" => Kind::Attaching,
        "counts" => Kind::Counts,
        "kept" => Kind::Kept,
        _ => {
            return Err(format!(
                "`{word}` cannot be measured: write surge, held, dropped, ratio, estimate, counted, counts, \
                 reports, stream, agents, attaching or kept"
            ));
        }
    })
}

pub(super) fn expectations(words: &[&str]) -> Parsed<Vec<Expectation>> {
    let text = words.join(" ");
    text.split(',').map(|text| expectation(text.trim())).collect()
}

fn expectation(text: &str) -> Parsed<Expectation> {
    match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [figure, "<=", bound] => {
            Ok(Expectation { figure: (*figure).to_owned(), at_most: true, bound: number(bound)? })
        }
        [figure, ">=", bound] => {
            Ok(Expectation { figure: (*figure).to_owned(), at_most: false, bound: number(bound)? })
        }
        _ => Err(format!("`{text}` is no expectation: write `mean >= 0.98, mean <= 1.02`")),
    }
}

pub(super) fn who(words: &[&str]) -> Parsed<Who> {
    match words {
        ["hosts", range] => Ok(Who::Hosts(hosts(range)?)),
        ["zone", zone] => Ok(Who::Zone(number(zone)?)),
        ["aggregator", aggregator] => self::aggregator(aggregator),
        ["controller", controller] => Ok(Who::Controller(number(controller)?)),
        _ => Err(format!(
            "`{}` is no node: write `hosts 0..5`, `zone 1`, `aggregator 1.0` or `controller 0`",
            words.join(" ")
        )),
    }
}

fn aggregator(text: &str) -> Parsed<Who> {
    let wrong = || format!("`{text}` is no aggregator: the first one of zone 1 is 1.0");
    let (zone, place) = text.split_once('.').ok_or_else(wrong)?;
    Ok(Who::Aggregator { zone: number(zone)?, place: number(place)? })
}

/// `zone 1`, or `zone 1 from controller 0`.
pub(super) fn link(words: &[&str]) -> Parsed<Link> {
    match words.iter().position(|word| *word == "from") {
        Some(at) => Ok(Link { of: who(&words[..at])?, from: Some(who(&words[at + 1..])?) }),
        None => Ok(Link { of: who(words)?, from: None }),
    }
}

/// A link, and perhaps one of its ways.
pub(super) fn link_and_way(words: &[&str]) -> Parsed<(Link, Way)> {
    Ok(match words {
        [words @ .., "upwards"] => (link(words)?, Way::Up),
        [words @ .., "downwards"] => (link(words)?, Way::Down),
        words => (link(words)?, Way::Both),
    })
}

pub(super) fn hosts(text: &str) -> Parsed<Hosts> {
    let (from, to) = text.split_once("..").ok_or_else(|| format!("`{text}` is no range: write 0..5"))?;
    let range: Hosts = number(from)?..number(to)?;
    if range.is_empty() {
        return Err(format!("`{text}` has no host: the first five are 0..5"));
    }
    Ok(range)
}

pub(super) fn span(from: &str, to: &str) -> Parsed<Span> {
    let span = Span { from: duration(from)?, to: duration(to)? };
    if span.from < span.to { Ok(span) } else { Err(format!("{from} is not before {to}: swap them")) }
}

/// `1ms..3ms`, or one for both.
pub(super) fn durations(text: &str) -> Parsed<(Duration, Duration)> {
    let (least, most) = match text.split_once("..") {
        Some((least, most)) => (duration(least)?, duration(most)?),
        None => (duration(text)?, duration(text)?),
    };
    if least > most {
        return Err(format!("`{text}` ends before it begins: write 1ms..3ms"));
    }
    Ok((least, most))
}

pub(super) fn duration(text: &str) -> Parsed<Duration> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let split = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let wrong = || format!("`{text}` is no duration: write 50ms, 1.5s, 10m or 2h");
    let (amount, seconds) = split.ok_or_else(wrong)?;
    let seconds = amount.parse::<f64>().map_err(|_| wrong())? * seconds;
    if seconds > LONGEST_HOURS * 3600.0 {
        return Err(format!("`{text}` is too long: write at most {LONGEST_HOURS}h"));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

/// A duration that is not zero.
pub(super) fn some_time(text: &str) -> Parsed<Duration> {
    let time = duration(text)?;
    if time.is_zero() { Err(format!("`{text}` is no time at all: write 50ms or more")) } else { Ok(time) }
}

/// A part, from 0 to 1.
pub(super) fn percent(text: &str) -> Parsed<f64> {
    let amount = text.strip_suffix('%').and_then(|amount| amount.parse::<f64>().ok());
    let part = amount.map(|amount| amount / 100.0).filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| format!("`{text}` is no part: write 20%, from 0% to 100%"))
}

/// A number of at least `least`, and no infinity.
pub(super) fn amount(text: &str, least: f64) -> Parsed<f64> {
    let amount: f64 = number(text)?;
    if amount.is_finite() && amount >= least {
        return Ok(amount);
    }
    Err(format!("`{text}` is no number that fits here: write one of at least {least}"))
}

/// By how many seconds a clock jumps.
pub(super) fn jump(text: &str) -> Parsed<i64> {
    let seconds: i64 = number(text)?;
    if (-LONGEST_JUMP..=LONGEST_JUMP).contains(&seconds) {
        return Ok(seconds);
    }
    Err(format!("a clock cannot jump by {text} seconds: write at most {LONGEST_JUMP}, or less than none"))
}

/// A count from 1 to `most`.
pub(super) fn count(text: &str, most: usize) -> Parsed<usize> {
    let count: usize = number(text)?;
    if (1..=most).contains(&count) {
        return Ok(count);
    }
    Err(format!("`{text}` is no count that fits here: write one from 1 to {most}"))
}

pub(super) fn number<T: FromStr>(text: &str) -> Parsed<T> {
    text.parse().map_err(|_| format!("`{text}` is no number that fits here: write one like 3"))
}
