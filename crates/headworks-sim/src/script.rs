//! Scenario scripts: a fleet, what happens to it, and what is measured.
//!
//! `script/language.txt` explains the language to those who write scripts, and `headworks simulate --language` prints
//! it. A line there is a field or a variant here.

mod faults;
mod parse;
mod say;

use std::time::Duration;

use headworks_core::limits::LimitSet;

pub use parse::{ScriptError, parse, parse_with_seed};

/// A scenario, read and checked.
#[derive(Clone, Debug)]
pub struct Script {
    /// The first comment line: what the scenario is about.
    pub title: String,
    /// `seed 7`: where all chance comes from.
    pub(crate) seed: u64,
    /// `step 10ms`: what happens within one happens at once.
    pub(crate) step: Duration,
    /// `zones 50 50` or `zones 4 x 250`: hosts in each zone. Hosts are numbered through, zone after zone.
    pub(crate) zones: Vec<usize>,
    /// `zones 2 x 20 aggregators 2`: so many in each zone; each host chooses one of them.
    pub(crate) aggregators: usize,
    /// `controllers 2`: each zone reports to all of them.
    pub(crate) controllers: usize,
    /// `limits:` and then lines with a blank before them, as in a limits file.
    pub(crate) limits: LimitSet,
    /// `stream hog caller=hog`; without any, one stream has all requests.
    pub(crate) streams: Vec<Stream>,
    /// `arrivals even`
    pub(crate) arrivals: Arrivals,
    /// `zipf 1`: the host of place n has a part of the load like 1/n to this power.
    pub(crate) zipf: f64,
    /// `retry 90% after 1s at most 3`
    pub(crate) retries: Option<Retries>,
    /// `delay 1ms..3ms`: the least and the most that a message takes.
    pub(crate) delay: (Duration, Duration),
    /// `loss 10%`: the part of all reports that gets lost.
    pub(crate) loss: f64,
    /// `repeat 10%`: the part of all reports that arrives twice.
    pub(crate) repeats: f64,
    /// `spacing 50ms`: the least time between two reports of a node.
    pub(crate) spacing: Duration,
    /// `pushes off`: plans come with the heartbeat alone.
    pub(crate) pushes: bool,
    /// `hold 60s`: how long the last ratio stays when nobody makes plans.
    pub(crate) hold: Duration,
    /// `run 60s`
    pub(crate) length: Duration,
    /// `at TIME …` and `from TIME to TIME …`, in order of time.
    pub(crate) events: Vec<(Duration, Event)>,
    /// Those of them that `random faults` drew.
    pub(crate) drawn: Vec<(Duration, Event)>,
    /// `measure …`
    pub(crate) measures: Vec<Measure>,
    /// `chart LIMIT from TIME to TIME`
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
    /// `arrivals pulses 20`: the same, so many at once.
    Pulses(f64),
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
    /// All aggregators of the zone.
    Zone(usize),
    /// `aggregator 1.0`: the first one of zone 1.
    Aggregator {
        zone: usize,
        place: usize,
    },
    Controller(usize),
}

/// What lies between nodes: `zone 1`, all that is between it and its parents; `zone 1 from controller 0`, only what is
/// between it and this one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) of: Who,
    pub(crate) from: Option<Who>,
}

/// The ways of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Both,
    /// From child to parent.
    Up,
    /// From parent to child.
    Down,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// `offer [STREAM] 1500`: requests a second from now on, over the whole fleet.
    Offer { stream: usize, rate: f64 },
    /// `kill hosts 0..5`: it dies, and its streams break. Load goes to the hosts that live.
    Kill(Who),
    /// `start hosts 0..5`: a new one comes up in its place.
    Start(Who),
    /// `drain hosts 0..5`: no load goes there; it stays attached.
    Drain(Hosts),
    /// `restore hosts 0..5`: load goes there again.
    Restore(Hosts),
    /// `weight hosts 0..5 2.5`: the part of the load that each has, against the parts of the others.
    Weight(Hosts, f64),
    /// `pause zone 1 for 30s`: it stands still. The load that a host has is not served.
    Pause(Who, Duration),
    /// `cut zone 1`: nothing passes between it and its parents, and for a controller its children.
    Cut(Link, Way),
    /// `slow zone 1 by 100ms..300ms`: each message takes so much longer there.
    Slow(Link, (Duration, Duration)),
    /// `heal zone 1`: messages pass again, as fast as elsewhere.
    Heal(Link),
    /// `clock hosts 0..5 -3600`: their clocks jump by so many seconds; nobody else's do.
    Clock(Who, i64),
    /// `delay 1s`
    Delay(Duration, Duration),
    /// `loss 10%`
    Loss(f64),
    /// `repeat 10%`
    Repeat(f64),
    /// A host is replaced by a new one.
    Replace,
}

/// Something measured, and what it has to be.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    pub(crate) kind: Kind,
    /// What it is of, as transcripts say it.
    pub(crate) of: String,
    /// The limit or the stream; empty for what concerns all.
    pub(crate) name: String,
    /// Only what these hosts decide.
    pub(crate) hosts: Option<Hosts>,
    /// Of an estimate: what is counted, instead of the rate.
    pub(crate) counted: bool,
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
    /// Demand as the controller takes it, or has counted it, over what it is.
    Estimate,
    /// Reports of agents.
    Reports,
    /// What a stream gets through all limits.
    Stream,
    /// Agents that the controllers know.
    Agents,
    /// Attempts to attach.
    Attaching,
    /// What parents have counted, against what reached them.
    Counts,
    /// What nodes remember.
    Kept,
}

/// A bound on one figure of a measure.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    pub(crate) figure: String,
    pub(crate) at_most: bool,
    pub(crate) bound: f64,
}

impl Script {
    /// What `random faults` does by the seed, as lines that do the same in its place.
    pub fn faults(&self) -> String {
        self.drawn.iter().map(|(time, event)| say::line(*time, event, &self.streams)).collect()
    }

    pub(crate) fn measures(&self, kind: Kind) -> bool {
        self.measures.iter().any(|measure| measure.kind == kind)
    }
}
