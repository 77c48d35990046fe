//! From the text of a script to a [`Script`].

use std::time::Duration;

use headworks_core::limits;

use super::{Arrivals, Event, Expectation, Hosts, Kind, Measure, Retries, Script, Span, Stream, Who};

/// What is wrong with a script, and where.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it, and what to write instead.
    pub message: String,
}

type Parsed<T> = Result<T, String>;

/// Reads a script.
///
/// # Errors
/// At the first line that makes no sense.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        reader.line(line).map_err(|message| ScriptError { line: index + 1, message })?;
    }
    let lines = text.lines().count();
    reader.finish().map_err(|message| ScriptError { line: lines, message })
}

/// Hosts of a script that a machine can hold.
const MOST_HOSTS: usize = 1_000_000;
/// Steps of a script, so that a slip of the pen does not run for days.
const MOST_STEPS: u128 = 20_000_000;

#[derive(Default)]
struct Reader {
    script: Script,
    limits: String,
    in_limits: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            title: String::new(),
            seed: 1,
            step: Duration::from_millis(10),
            zones: Vec::new(),
            controllers: 1,
            limits: limits::LimitSet::default(),
            streams: Vec::new(),
            arrivals: Arrivals::Poisson,
            zipf: 0.0,
            retries: None,
            delay: (Duration::from_millis(1), Duration::from_millis(3)),
            loss: 0.0,
            spacing: Duration::from_millis(50),
            pushes: true,
            hold: Duration::from_secs(60),
            length: Duration::ZERO,
            events: Vec::new(),
            measures: Vec::new(),
            chart: None,
        }
    }
}

impl Reader {
    fn line(&mut self, line: &str) -> Parsed<()> {
        if let Some(comment) = line.strip_prefix('#') {
            if self.script.title.is_empty() {
                self.script.title = comment.trim().to_owned();
            }
            return Ok(());
        }
        if self.in_limits && line.starts_with(' ') {
            self.limits.push_str(line);
            self.limits.push('\n');
            return Ok(());
        }
        self.in_limits = false;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => Ok(()),
            ["limits:"] => {
                self.in_limits = true;
                Ok(())
            }
            ["at", time, event @ ..] => self.at(duration(time)?, event),
            ["from", from, "to", to, rest @ ..] => self.while_(span(from, to)?, rest),
            ["measure", rest @ ..] => self.measure(rest),
            settings => self.setting(settings),
        }
    }

    fn setting(&mut self, words: &[&str]) -> Parsed<()> {
        let script = &mut self.script;
        match words {
            ["seed", seed] => script.seed = number(seed)?,
            ["step", step] => script.step = duration(step)?,
            ["zones", zones, "x", hosts] => script.zones = vec![number(hosts)?; number(zones)?],
            ["zones", hosts @ ..] if !hosts.is_empty() => {
                script.zones = hosts.iter().map(|hosts| number(hosts)).collect::<Parsed<_>>()?;
            }
            ["controllers", n] => script.controllers = number(n)?,
            ["stream", name, attributes @ ..] => script.streams.push(stream(name, attributes)?),
            ["arrivals", "poisson"] => script.arrivals = Arrivals::Poisson,
            ["arrivals", "even"] => script.arrivals = Arrivals::Even,
            ["arrivals", "batches", mean] => script.arrivals = Arrivals::Batches(number(mean)?),
            ["zipf", exponent] => script.zipf = number(exponent)?,
            ["retry", part, "after", after, "at", "most", times] => {
                let (part, after, at_most) = (percent(part)?, duration(after)?, number(times)?);
                script.retries = Some(Retries { part, after, at_most });
            }
            ["delay", delay] => script.delay = durations(delay)?,
            ["loss", loss] => script.loss = percent(loss)?,
            ["spacing", spacing] => script.spacing = duration(spacing)?,
            ["pushes", "off"] => script.pushes = false,
            ["hold", hold] => script.hold = duration(hold)?,
            ["run", length] => script.length = duration(length)?,
            ["chart", limit, "from", from, "to", to] => {
                script.chart = Some(((*limit).to_owned(), span(from, to)?));
            }
            _ => return Err(format!("`{}` is no setting: see `headworks simulate --help`", words.join(" "))),
        }
        Ok(())
    }

    fn at(&mut self, time: Duration, words: &[&str]) -> Parsed<()> {
        let event = match words {
            ["offer", rate] => Event::Offer { stream: 0, rate: number(rate)? },
            ["offer", stream, rate] => Event::Offer { stream: self.stream(stream)?, rate: number(rate)? },
            ["kill", who @ ..] => Event::Kill(self::who(who)?),
            ["start", who @ ..] => Event::Start(self::who(who)?),
            ["drain", "hosts", range] => Event::Drain(hosts(range)?),
            ["restore", "hosts", range] => Event::Restore(hosts(range)?),
            ["weight", "hosts", range, weight] => Event::Weight(hosts(range)?, number(weight)?),
            ["pause", who @ .., "for", time] => Event::Pause(self::who(who)?, duration(time)?),
            ["cut", who @ ..] => Event::Cut(self::who(who)?),
            ["heal", who @ ..] => Event::Heal(self::who(who)?),
            ["clock", "hosts", range, seconds] => Event::Clock(hosts(range)?, number(seconds)?),
            ["delay", delay] => {
                let (least, most) = durations(delay)?;
                Event::Delay(least, most)
            }
            _ => return Err(format!("`{}` is nothing that can happen", words.join(" "))),
        };
        self.script.events.push((time, event));
        Ok(())
    }

    fn while_(&mut self, span: Span, words: &[&str]) -> Parsed<()> {
        match words {
            ["ramp", from, "to", to] => self.ramp(span, number(from)?, number(to)?),
            ["square", low, high, "every", period] => {
                self.square(span, [number(low)?, number(high)?], duration(period)?)?;
            }
            ["replace", "a", "host", "every", period] => {
                self.repeat(span, duration(period)?, |_| Event::Replace)?;
            }
            ["kill", "controller", which, "for", down, "every", period] => {
                let (which, down, period) = (number(which)?, duration(down)?, duration(period)?);
                self.repeat(span, period, |_| Event::Kill(Who::Controller(which)))?;
                let later = Span { from: span.from + down, to: span.to };
                self.repeat(later, period, |_| Event::Start(Who::Controller(which)))?;
            }
            ["batch", size, "every", period] => {
                let (size, period): (f64, _) = (number(size)?, duration(period)?);
                // All of it in one step.
                let rate = size / self.script.step.as_secs_f64();
                self.repeat(span, period, |_| Event::Offer { stream: 0, rate })?;
                let after = Span { from: span.from + self.script.step, to: span.to };
                self.repeat(after, period, |_| Event::Offer { stream: 0, rate: 0.0 })?;
            }
            ["clock", "hosts", range, one, "and", other, "every", period] => {
                let (range, steps) = (hosts(range)?, [number(one)?, number(other)?]);
                self.repeat(span, duration(period)?, |i| Event::Clock(range.clone(), steps[i % 2]))?;
            }
            _ => return Err(format!("`{}` is nothing that goes on for a while", words.join(" "))),
        }
        Ok(())
    }

    /// A hundred small steps.
    fn ramp(&mut self, span: Span, from: f64, to: f64) {
        for step in 0..=100 {
            let part = f64::from(step) / 100.0;
            let time = span.from + (span.to.saturating_sub(span.from)).mul_f64(part);
            self.script.events.push((time, Event::Offer { stream: 0, rate: from + part * (to - from) }));
        }
    }

    fn square(&mut self, span: Span, rates: [f64; 2], period: Duration) -> Parsed<()> {
        self.repeat(span, period / 2, |i| Event::Offer { stream: 0, rate: rates[i % 2] })
    }

    fn repeat(&mut self, span: Span, period: Duration, event: impl Fn(usize) -> Event) -> Parsed<()> {
        if period < self.script.step {
            return Err(format!("a period below the step of {:?} cannot be simulated", self.script.step));
        }
        let mut time = span.from;
        for i in 0.. {
            if time >= span.to {
                break;
            }
            self.script.events.push((time, event(i)));
            time += period;
        }
        Ok(())
    }

    fn stream(&mut self, name: &str) -> Parsed<usize> {
        let known = self.script.streams.iter().position(|stream| stream.name == name);
        known.ok_or_else(|| format!("no stream {name}: write `stream {name} key=value` before"))
    }

    fn measure(&mut self, words: &[&str]) -> Parsed<()> {
        let (words, expected) = match words.iter().position(|word| *word == "expect") {
            Some(at) => (&words[..at], &words[at + 1..]),
            None => (words, [].as_slice()),
        };
        let (kind, of, from, to) = match words {
            [kind, "from", from, "to", to] => (kind, "", from, to),
            [kind, of, "from", from, "to", to] => (kind, *of, from, to),
            _ => {
                return Err(
                    "write `measure WHAT [OF] from TIME to TIME [expect FIGURE <= BOUND, …]`".to_owned()
                );
            }
        };
        self.script.measures.push(Measure {
            kind: self::kind(kind)?,
            of: of.to_owned(),
            span: span(from, to)?,
            expected: expectations(expected)?,
        });
        Ok(())
    }

    fn finish(mut self) -> Parsed<Script> {
        let text = format!("limits:\n{}", self.limits);
        self.script.limits = limits::parse(&text).map_err(|faults| format!("in the limits: {faults}"))?;
        let script = &mut self.script;
        if script.streams.is_empty() {
            script.streams.push(Stream { name: "all".to_owned(), attributes: Vec::new() });
        }
        let hosts: usize = script.zones.iter().sum();
        if hosts == 0 || hosts > MOST_HOSTS {
            return Err(format!(
                "{hosts} hosts: write `zones 50 50` for two zones of 50, at most {MOST_HOSTS}"
            ));
        }
        if script.step.is_zero() || script.length.as_nanos() / script.step.as_nanos().max(1) > MOST_STEPS {
            return Err("the run is too long for its step: write a longer `step`".to_owned());
        }
        if script.length.is_zero() {
            return Err("how long does it run? write `run 30s`".to_owned());
        }
        check_names(script)?;
        script.events.sort_by_key(|(time, _)| *time);
        Ok(self.script)
    }
}

fn check_names(script: &Script) -> Parsed<()> {
    for measure in &script.measures {
        let known = match measure.kind {
            Kind::Reports | Kind::Agents | Kind::Attaching => measure.of.is_empty(),
            Kind::Stream => script.streams.iter().any(|stream| stream.name == measure.of),
            _ => script.limits.get(&measure.of).is_some(),
        };
        if !known {
            return Err(format!("`{}` is nothing to measure this of", measure.of));
        }
        if measure.span.to > script.length {
            return Err(format!("the run is over before {:?}", measure.span.to));
        }
    }
    let hosts: usize = script.zones.iter().sum();
    let there = |who: &Who| match who {
        Who::Hosts(range) => range.end <= hosts,
        Who::Zone(zone) => *zone < script.zones.len(),
        Who::Controller(controller) => *controller < script.controllers,
    };
    for (_, event) in &script.events {
        let sound = match event {
            Event::Kill(who)
            | Event::Start(who)
            | Event::Cut(who)
            | Event::Heal(who)
            | Event::Pause(who, _) => there(who),
            Event::Drain(range)
            | Event::Restore(range)
            | Event::Weight(range, _)
            | Event::Clock(range, _) => range.end <= hosts,
            Event::Offer { .. } | Event::Delay(..) | Event::Replace => true,
        };
        if !sound {
            return Err(format!("there is no such node: {event:?}"));
        }
    }
    Ok(())
}

fn stream(name: &str, attributes: &[&str]) -> Parsed<Stream> {
    let pair = |text: &&str| {
        let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        pair.ok_or_else(|| format!("`{text}` is no attribute: write key=value"))
    };
    let attributes = attributes.iter().map(pair).collect::<Parsed<_>>()?;
    Ok(Stream { name: name.to_owned(), attributes })
}

fn kind(word: &str) -> Parsed<Kind> {
    Ok(match word {
        "surge" => Kind::Surge,
        "held" => Kind::Held,
        "dropped" => Kind::Dropped,
        "ratio" => Kind::Ratio,
        "estimate" => Kind::Estimate,
        "reports" => Kind::Reports,
        "stream" => Kind::Stream,
        "agents" => Kind::Agents,
        "attaching" => Kind::Attaching,
        _ => return Err(format!("`{word}` cannot be measured")),
    })
}

fn expectations(words: &[&str]) -> Parsed<Vec<Expectation>> {
    let text = words.join(" ");
    let each = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    each.map(expectation).collect()
}

fn expectation(text: &str) -> Parsed<Expectation> {
    match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [figure, "<=", bound] => {
            Ok(Expectation { figure: (*figure).to_owned(), at_most: true, bound: number(bound)? })
        }
        [figure, ">=", bound] => {
            Ok(Expectation { figure: (*figure).to_owned(), at_most: false, bound: number(bound)? })
        }
        _ => Err(format!("`{text}` is no expectation: write `figure <= number`")),
    }
}

fn who(words: &[&str]) -> Parsed<Who> {
    match words {
        ["hosts", range] => Ok(Who::Hosts(hosts(range)?)),
        ["zone", zone] => Ok(Who::Zone(number(zone)?)),
        ["controller", controller] => Ok(Who::Controller(number(controller)?)),
        _ => Err(format!("`{}` is no node: write `hosts 0..5`, `zone 1` or `controller 0`", words.join(" "))),
    }
}

fn hosts(range: &str) -> Parsed<Hosts> {
    let (from, to) = range.split_once("..").ok_or_else(|| format!("`{range}` is no range: write `0..5`"))?;
    Ok(number(from)?..number(to)?)
}

fn span(from: &str, to: &str) -> Parsed<Span> {
    let span = Span { from: duration(from)?, to: duration(to)? };
    if span.from < span.to { Ok(span) } else { Err(format!("{from} is not before {to}")) }
}

fn durations(text: &str) -> Parsed<(Duration, Duration)> {
    match text.split_once("..") {
        Some((least, most)) => Ok((duration(least)?, duration(most)?)),
        None => duration(text).map(|delay| (delay, delay)),
    }
}

fn duration(text: &str) -> Parsed<Duration> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let split = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let wrong = || format!("`{text}` is no duration: write 50ms, 1.5s, 10m or 2h");
    let (amount, seconds) = split.ok_or_else(wrong)?;
    let amount: f64 = amount.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(amount * seconds).map_err(|_| wrong())
}

fn percent(text: &str) -> Parsed<f64> {
    let amount = text.strip_suffix('%').ok_or_else(|| format!("`{text}` is no part: write 20%"))?;
    Ok(number::<f64>(amount)? / 100.0)
}

fn number<T: std::str::FromStr>(text: &str) -> Parsed<T> {
    text.trim_end_matches(',').parse().map_err(|_| format!("`{text}` is no number that fits here"))
}
