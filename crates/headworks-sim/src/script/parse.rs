//! From the text of a script to a [`Script`].

mod check;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use headworks_core::limits::{self, LimitSet};

use super::faults::{self, Random};
use super::{Arrivals, Event, Measure, Retries, Script, Span, Stream, Who};
use words::{
    amount, count, duration, durations, expectations, hosts, jump, link, link_and_way, number, percent,
    some_time, span, stream, who,
};

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
/// The number of a line, counted from 1.
type Line = usize;

/// Reads a script.
///
/// # Errors
/// At the first line that makes no sense.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    parse_with_seed(text, None)
}

/// Reads a script, and takes another seed than the one written in it, if one is given.
///
/// # Errors
/// At the first line that makes no sense.
pub fn parse_with_seed(text: &str, seed: Option<u64>) -> Result<Script, ScriptError> {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.at += 1;
        reader.line(line).map_err(|message| ScriptError { line: reader.at, message })?;
    }
    reader.script.seed = seed.unwrap_or(reader.script.seed);
    reader.finish().map_err(|(line, message)| ScriptError { line, message })
}

/// Hosts of a script that a machine can hold.
const MOST_HOSTS: usize = 1_000_000;
const MOST_CONTROLLERS: usize = 16;
const MOST_AGGREGATORS: usize = 16;
/// Random faults at once: more would leave little of a fleet to look at.
const MOST_FAULTS: usize = 100;
/// Steps of a script, so that a slip of the pen does not run for days.
const MOST_STEPS: u128 = 20_000_000;
/// Events of a script, for the same reason.
const MOST_EVENTS: usize = 1_000_000;

#[derive(Default)]
struct Reader {
    script: Script,
    /// The line that is read, or was read last.
    at: Line,
    limits: Limits,
    /// The lines of what has to be checked against the whole script.
    measured_at: Vec<Line>,
    happens_at: Vec<Line>,
    random: Vec<(Line, Random)>,
    chart_at: Line,
    run_at: Option<Line>,
}

/// The text of the limits. Its lines have the numbers that they have in the script.
#[derive(Default)]
struct Limits {
    text: String,
    begins: Option<Line>,
    goes_on: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            title: String::new(),
            seed: 1,
            step: Duration::from_millis(10),
            zones: Vec::new(),
            aggregators: 1,
            controllers: 1,
            limits: LimitSet::default(),
            streams: Vec::new(),
            arrivals: Arrivals::Poisson,
            zipf: 0.0,
            retries: None,
            delay: (Duration::from_millis(1), Duration::from_millis(3)),
            loss: 0.0,
            repeats: 0.0,
            spacing: Duration::from_millis(50),
            pushes: true,
            hold: Duration::from_secs(60),
            length: Duration::ZERO,
            events: Vec::new(),
            drawn: Vec::new(),
            measures: Vec::new(),
            chart: None,
        }
    }
}

impl Limits {
    fn begin(&mut self, at: Line) -> Parsed<()> {
        if let Some(begins) = self.begins {
            return Err(format!("`limits:` is at line {begins} already: write all limits there"));
        }
        self.begins = Some(at);
        self.text = "\n".repeat(at - 1) + "limits:\n";
        self.goes_on = true;
        Ok(())
    }

    /// Whether the line belongs to the limits.
    fn take(&mut self, line: &str) -> bool {
        let comment = line.starts_with('#');
        let belongs = self.goes_on && (comment || line.starts_with(' '));
        self.goes_on = belongs;
        if belongs {
            self.text.push_str(line);
            self.text.push('\n');
        }
        belongs && !comment
    }

    fn parse(&self) -> Result<LimitSet, (Line, String)> {
        if self.begins.is_none() {
            return Ok(LimitSet::default());
        }
        limits::parse(&self.text).map_err(|faults| {
            let line = faults.listed().first().map_or(1, |fault| fault.line);
            (line, format!("in the limits: {faults}"))
        })
    }
}

impl Reader {
    fn line(&mut self, line: &str) -> Parsed<()> {
        if self.limits.take(line) {
            return Ok(());
        }
        if let Some(comment) = line.strip_prefix('#') {
            if self.script.title.is_empty() {
                self.script.title = comment.trim().to_owned();
            }
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => Ok(()),
            ["limits:"] => self.limits.begin(self.at),
            ["at", time, event @ ..] => self.at(duration(time)?, event),
            ["from", from, "to", to, rest @ ..] => self.while_(span(from, to)?, rest),
            ["measure", rest @ ..] => self.measure(rest),
            ["stream", name, attributes @ ..] => self.new_stream(stream(name, attributes)?),
            ["chart", limit, "from", from, "to", to] => {
                self.script.chart = Some(((*limit).to_owned(), span(from, to)?));
                self.chart_at = self.at;
                Ok(())
            }
            ["zones", zones @ ..] => self.zones(zones),
            ["step", step] => self.step(some_time(step)?),
            ["run", length] => {
                self.script.length = some_time(length)?;
                self.run_at = Some(self.at);
                Ok(())
            }
            settings => self.setting(settings),
        }
    }

    fn setting(&mut self, words: &[&str]) -> Parsed<()> {
        let script = &mut self.script;
        match words {
            ["seed", seed] => script.seed = number(seed)?,
            ["controllers", n] => script.controllers = count(n, MOST_CONTROLLERS)?,
            ["arrivals", "poisson"] => script.arrivals = Arrivals::Poisson,
            ["arrivals", "even"] => script.arrivals = Arrivals::Even,
            ["arrivals", "pulses", size] => script.arrivals = Arrivals::Pulses(amount(size, 1.0)?),
            ["arrivals", "batches", mean] => script.arrivals = Arrivals::Batches(amount(mean, 1.0)?),
            ["zipf", exponent] => script.zipf = amount(exponent, 0.0)?,
            ["retry", part, "after", after, "at", "most", times] => {
                let (part, after, at_most) = (percent(part)?, some_time(after)?, number(times)?);
                script.retries = Some(Retries { part, after, at_most });
            }
            ["delay", delay] => script.delay = durations(delay)?,
            ["loss", part] => script.loss = percent(part)?,
            ["repeat", part] => script.repeats = percent(part)?,
            ["spacing", spacing] => script.spacing = duration(spacing)?,
            ["pushes", "off"] => script.pushes = false,
            ["hold", hold] => script.hold = duration(hold)?,
            _ => return Err(format!("`{}` makes no sense: {HINT}", words.join(" "))),
        }
        Ok(())
    }

    fn zones(&mut self, words: &[&str]) -> Parsed<()> {
        let (words, aggregators) = match words {
            [words @ .., "aggregators", n] => (words, count(n, MOST_AGGREGATORS)?),
            words => (words, 1),
        };
        let zones = match words {
            [zones, "x", hosts] => vec![count(hosts, MOST_HOSTS)?; count(zones, MOST_HOSTS)?],
            hosts => hosts.iter().map(|hosts| count(hosts, MOST_HOSTS)).collect::<Parsed<_>>()?,
        };
        let hosts = zones.iter().fold(0, |sum: usize, hosts| sum.saturating_add(*hosts));
        if hosts == 0 || hosts > MOST_HOSTS {
            return Err(format!(
                "{hosts} hosts: write `zones 50 50` for two zones of 50, at most {MOST_HOSTS} in all"
            ));
        }
        (self.script.zones, self.script.aggregators) = (zones, aggregators);
        Ok(())
    }

    /// What goes on for a while is laid out in steps as it is read.
    fn step(&mut self, step: Duration) -> Parsed<()> {
        if !self.script.events.is_empty() {
            return Err("`step` comes too late: write it before anything that happens".to_owned());
        }
        self.script.step = step;
        Ok(())
    }

    fn new_stream(&mut self, stream: Stream) -> Parsed<()> {
        if self.script.streams.iter().any(|known| known.name == stream.name) {
            return Err(format!("there is a stream {} already: give it another name", stream.name));
        }
        self.script.streams.push(stream);
        Ok(())
    }

    fn at(&mut self, time: Duration, words: &[&str]) -> Parsed<()> {
        let event = match words {
            ["offer", rate] => Event::Offer { stream: 0, rate: amount(rate, 0.0)? },
            ["offer", stream, rate] => {
                Event::Offer { stream: self.stream(stream)?, rate: amount(rate, 0.0)? }
            }
            ["kill", who @ ..] => Event::Kill(self::who(who)?),
            ["start", who @ ..] => Event::Start(self::who(who)?),
            ["drain", "hosts", range] => Event::Drain(hosts(range)?),
            ["restore", "hosts", range] => Event::Restore(hosts(range)?),
            ["weight", "hosts", range, weight] => Event::Weight(hosts(range)?, amount(weight, 0.0)?),
            ["pause", who @ .., "for", time] => Event::Pause(self::who(who)?, duration(time)?),
            ["cut", link @ ..] => link_and_way(link).map(|(link, way)| Event::Cut(link, way))?,
            ["slow", link @ .., "by", delay] => Event::Slow(self::link(link)?, durations(delay)?),
            ["heal", link @ ..] => Event::Heal(self::link(link)?),
            ["clock", who @ .., seconds] => Event::Clock(self::who(who)?, jump(seconds)?),
            ["delay", delay] => durations(delay).map(|(least, most)| Event::Delay(least, most))?,
            ["loss", part] => Event::Loss(percent(part)?),
            ["repeat", part] => Event::Repeat(percent(part)?),
            _ => return Err(format!("`{}` is nothing that can happen: {HINT}", words.join(" "))),
        };
        self.happens(time, event)
    }

    fn happens(&mut self, time: Duration, event: Event) -> Parsed<()> {
        if self.script.events.len() >= MOST_EVENTS {
            return Err(format!("more than {MOST_EVENTS} events: write a longer period, or a shorter time"));
        }
        self.script.events.push((time, event));
        self.happens_at.push(self.at);
        Ok(())
    }

    fn while_(&mut self, span: Span, words: &[&str]) -> Parsed<()> {
        match words {
            ["ramp", from, "to", to] => self.ramp(span, amount(from, 0.0)?, amount(to, 0.0)?),
            ["square", low, high, "every", period] => {
                self.square(span, [amount(low, 0.0)?, amount(high, 0.0)?], duration(period)?)
            }
            ["replace", "a", "host", "every", period] => {
                self.repeat(span, duration(period)?, |_| Event::Replace)
            }
            ["kill", "controller", which, "for", down, "every", period] => {
                self.restarts(span, number(which)?, duration(down)?, duration(period)?)
            }
            ["batch", size, "every", period] => self.batches(span, amount(size, 0.0)?, duration(period)?),
            ["clock", "hosts", range, one, "and", other, "every", period] => {
                let (who, steps) = (Who::Hosts(hosts(range)?), [jump(one)?, jump(other)?]);
                self.repeat(span, duration(period)?, |i| Event::Clock(who.clone(), steps[i % 2]))
            }
            ["random", "faults", "every", every, "at", "most", n] => {
                let (every, at_most) = (durations(every)?, count(n, MOST_FAULTS)?);
                self.random.push((self.at, Random { span, every, at_most }));
                Ok(())
            }
            ["restart", "hosts", range, "for", down, "every", period] => {
                let (range, down, period) = (hosts(range)?, duration(down)?, duration(period)?);
                self.one_by_one(span, range.map(|host| Who::Hosts(host..host + 1)).collect(), down, period)
            }
            ["restart", "aggregators", "for", down, "every", period] => {
                let (down, period) = (duration(down)?, duration(period)?);
                self.one_by_one(span, faults::aggregators(&self.script), down, period)
            }
            _ => Err(format!("`{}` is nothing that goes on for a while: {HINT}", words.join(" "))),
        }
    }

    /// A hundred small steps.
    fn ramp(&mut self, span: Span, from: f64, to: f64) -> Parsed<()> {
        for step in 0..=100 {
            let part = f64::from(step) / 100.0;
            let time = span.from + (span.to.saturating_sub(span.from)).mul_f64(part);
            self.happens(time, Event::Offer { stream: 0, rate: from + part * (to - from) })?;
        }
        Ok(())
    }

    fn square(&mut self, span: Span, rates: [f64; 2], period: Duration) -> Parsed<()> {
        self.repeat(span, period / 2, |i| Event::Offer { stream: 0, rate: rates[i % 2] })
    }

    fn restarts(&mut self, span: Span, which: usize, down: Duration, period: Duration) -> Parsed<()> {
        self.repeat(span, period, |_| Event::Kill(Who::Controller(which)))?;
        let later = Span { from: span.from + down, to: span.to };
        self.repeat(later, period, |_| Event::Start(Who::Controller(which)))
    }

    /// One after the other is killed and comes back, as in a release.
    fn one_by_one(&mut self, span: Span, nodes: Vec<Who>, down: Duration, period: Duration) -> Parsed<()> {
        let mut time = span.from;
        for node in nodes {
            if time + down > span.to {
                return Err("the time is too short for all of them: write a later end".to_owned());
            }
            self.happens(time, Event::Kill(node.clone()))?;
            self.happens(time + down, Event::Start(node))?;
            time += period;
        }
        Ok(())
    }

    /// All of a batch comes in one step.
    fn batches(&mut self, span: Span, size: f64, period: Duration) -> Parsed<()> {
        let rate = size / self.script.step.as_secs_f64();
        self.repeat(span, period, |_| Event::Offer { stream: 0, rate })?;
        let after = Span { from: span.from + self.script.step, to: span.to };
        self.repeat(after, period, |_| Event::Offer { stream: 0, rate: 0.0 })
    }

    fn repeat(&mut self, span: Span, period: Duration, event: impl Fn(usize) -> Event) -> Parsed<()> {
        if period < self.script.step {
            return Err(format!(
                "a period below the step of {:?} cannot be simulated: write a longer one",
                self.script.step
            ));
        }
        let mut time = span.from;
        for i in 0.. {
            if time >= span.to {
                break;
            }
            self.happens(time, event(i))?;
            time += period;
        }
        Ok(())
    }

    fn stream(&self, name: &str) -> Parsed<usize> {
        let known = self.script.streams.iter().position(|stream| stream.name == name);
        known.ok_or_else(|| format!("no stream {name}: write `stream {name} key=value` before"))
    }

    fn measure(&mut self, words: &[&str]) -> Parsed<()> {
        let (words, expected) = match words.iter().position(|word| *word == "expect") {
            Some(at) => (&words[..at], expectations(&words[at + 1..])?),
            None => (words, Vec::new()),
        };
        let (what, from, to) = match words {
            [what @ .., "from", from, "to", to] => (what, from, to),
            _ => return Err(MEASURE.to_owned()),
        };
        let (word, name, hosts) = match what {
            [word] => (*word, "", None),
            [word, name] => (*word, *name, None),
            [word @ "dropped", name, "hosts", range] => (*word, *name, Some(hosts(range)?)),
            _ => return Err(MEASURE.to_owned()),
        };
        let counted = word == "counted";
        let of = match &hosts {
            _ if counted => format!("{name}, counted"),
            Some(range) => format!("{name} hosts {}..{}", range.start, range.end),
            None => name.to_owned(),
        };
        let (kind, name, span) = (words::kind(word)?, name.to_owned(), span(from, to)?);
        self.script.measures.push(Measure { kind, of, name, hosts, counted, span, expected });
        self.measured_at.push(self.at);
        Ok(())
    }

    fn finish(mut self) -> Result<Script, (Line, String)> {
        let last = self.at.max(1);
        self.script.limits = self.limits.parse()?;
        let script = &mut self.script;
        if script.streams.is_empty() {
            script.streams.push(Stream { name: "all".to_owned(), attributes: Vec::new() });
        }
        if script.zones.is_empty() {
            return Err((last, "no hosts: write `zones 50 50` for two zones of 50".to_owned()));
        }
        let Some(run_at) = self.run_at else {
            return Err((last, "how long does it run? write `run 30s`".to_owned()));
        };
        if script.length.as_nanos() / script.step.as_nanos().max(1) > MOST_STEPS {
            return Err((run_at, "the run is too long for its step: write a longer `step`".to_owned()));
        }
        for (line, random) in &self.random {
            let drawn = faults::draw(script, random).map_err(|message| (*line, message))?;
            self.happens_at.extend(drawn.iter().map(|_| line));
            script.drawn.extend(drawn.iter().cloned());
            script.events.extend(drawn);
        }
        check::all(&script.events, &self.happens_at, |event| check::event(script, event))?;
        check::all(&script.measures, &self.measured_at, |measure| check::measure(script, measure))?;
        check::chart(script).map_err(|message| (self.chart_at, message))?;
        script.events.sort_by_key(|(time, _)| *time);
        Ok(self.script)
    }
}

const HINT: &str = "see `headworks simulate --language`";
const MEASURE: &str = "write `measure WHAT [OF] from TIME to TIME [expect FIGURE <= BOUND, …]`";
