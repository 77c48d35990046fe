//! Scenario scripts: a fleet, what happens to it, and what is measured.

mod parse;

use std::time::Duration;

use headworks_core::limits::LimitSet;

pub use parse::{ScriptError, parse};

/// A scenario, read and checked.
#[derive(Clone, Debug)]
pub struct Script {
    /// The first comment line: what the scenario is about.
    pub title: String,
    pub(crate) seed: u64,
    pub(crate) step: Duration,
    /// Hosts in each zone.
    pub(crate) zones: Vec<usize>,
    pub(crate) controllers: usize,
    pub(crate) limits: LimitSet,
    pub(crate) streams: Vec<Stream>,
    pub(crate) arrivals: Arrivals,
    pub(crate) zipf: f64,
    pub(crate) retries: Option<Retries>,
    pub(crate) delay: (Duration, Duration),
    pub(crate) loss: f64,
    pub(crate) spacing: Duration,
    pub(crate) pushes: bool,
    pub(crate) hold: Duration,
    pub(crate) length: Duration,
    /// In order of time.
    pub(crate) events: Vec<(Duration, Event)>,
    pub(crate) measures: Vec<Measure>,
    /// The limit to draw, and from when to when.
    pub(crate) chart: Option<(String, Span)>,
}

/// Requests that are alike.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrivals {
    Poisson,
    /// As regular as a clock.
    Even,
    /// In batches of this mean size, which follow each other as independent events.
    Batches(f64),
}

/// Refused calls that come again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retries {
    pub(crate) part: f64,
    pub(crate) after: Duration,
    pub(crate) at_most: u8,
}

/// From when to when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

/// Hosts from the first up to, and without, the second.
pub(crate) type Hosts = std::ops::Range<usize>;

/// A node that things happen to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Who {
    Hosts(Hosts),
    Zone(usize),
    Controller(usize),
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// A stream is offered at this rate from now on, over the whole fleet.
    Offer {
        stream: usize,
        rate: f64,
    },
    Kill(Who),
    Start(Who),
    /// No load goes there; it stays attached.
    Drain(Hosts),
    /// Load goes there again.
    Restore(Hosts),
    Weight(Hosts, f64),
    Pause(Who, Duration),
    /// Nothing passes between it and its parents.
    Cut(Who),
    Heal(Who),
    /// Its clock jumps; nobody else's does.
    Clock(Hosts, i64),
    Delay(Duration, Duration),
    /// A host is replaced by a new one.
    Replace,
}

/// Something measured, and what it has to be.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    pub(crate) kind: Kind,
    /// A limit or a stream; empty for what concerns all.
    pub(crate) of: String,
    pub(crate) span: Span,
    pub(crate) expected: Vec<Expectation>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// How a step in demand is taken.
    Surge,
    /// How near to the limit what is admitted stays.
    Held,
    /// What part is dropped.
    Dropped,
    /// The drop ratio that the controller computes.
    Ratio,
    /// Demand as the controller takes it, over what it is.
    Estimate,
    /// Reports of agents.
    Reports,
    /// What a stream gets through all limits.
    Stream,
    /// Agents that the controllers know.
    Agents,
    /// Attempts to attach.
    Attaching,
}

/// A bound on one figure of a measure.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    pub(crate) figure: String,
    pub(crate) at_most: bool,
    pub(crate) bound: f64,
}
