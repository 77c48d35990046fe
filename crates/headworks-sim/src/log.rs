//! What a run leaves behind: counts by step, from which everything else is computed.

use std::time::Duration;

use headworks_core::bucket::BucketKey;
use headworks_core::fleet::Fleet;
use headworks_core::node::Node;

use crate::script::{Hosts, Measure, Script, Span};
use crate::world::Kept;

/// Counts of one limit, or of one stream, in one step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) offered: u32,
    pub(crate) admitted: u32,
}

impl Cell {
    fn add(&mut self, more: Self) {
        self.offered += more.offered;
        self.admitted += more.admitted;
    }
}

/// What the controller made of a limit by one step: its drop ratio, the demand it goes by, and all it has counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) ratio: f32,
    pub(crate) demand: f32,
    pub(crate) counted: u64,
}

/// What all parents counted of a limit, against what they could know (`world/ledger.rs` says what that is).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settled {
    /// What reached the parents, over all their lives.
    pub(crate) reached: u64,
    /// What those that counted more had too much.
    pub(crate) over: u64,
    /// What those that counted less missed.
    pub(crate) short: u64,
    /// What hosts counted since the start of the controller that has lived longest.
    pub(crate) truth: u64,
    /// What that one counted.
    pub(crate) counted: u64,
}

/// Counts of one limit at some of the hosts, for a measure that asks for them.
#[derive(Debug)]
struct Part {
    hosts: Hosts,
    limit: usize,
    /// By step.
    cells: Vec<Cell>,
    now: Cell,
}

/// All that was seen.
pub(crate) struct Log {
    pub(crate) step: Duration,
    /// By stream: the attributes of its requests.
    pub(crate) attributes: Vec<Vec<(String, String)>>,
    /// By limit, in pipeline order, by step.
    pub(crate) limits: Vec<Vec<Cell>>,
    /// By stream, by step.
    pub(crate) streams: Vec<Vec<Cell>>,
    /// By limit, by step.
    pub(crate) readings: Vec<Vec<Reading>>,
    parts: Vec<Part>,
    names: Vec<String>,
    keys: Vec<BucketKey>,
    now: Vec<Cell>,
    now_streams: Vec<Cell>,
    /// By step: full and early reports of agents.
    pub(crate) reports: Vec<(u32, u32)>,
    /// By step: attempts to attach.
    pub(crate) attempts: Vec<u32>,
    /// By tick of a controller: agents it knows.
    pub(crate) agents: Vec<(Duration, u32)>,
    /// Early reports, one by one: when, and whose.
    pub(crate) early: Vec<(Duration, u32)>,
    /// By second: what parents remember, if a measure asks for it.
    pub(crate) kept: Vec<(Duration, Kept)>,
    /// By limit, at the end, if a measure asks for it.
    pub(crate) settled: Vec<Settled>,
    full: u32,
    early_now: u32,
    attempts_now: u32,
    time: Duration,
}

impl Log {
    pub(crate) fn new(script: &Script) -> Self {
        let limits = script.limits.limits();
        Self {
            step: script.step,
            attributes: script.streams.iter().map(|stream| stream.attributes.clone()).collect(),
            limits: vec![Vec::new(); limits.len()],
            streams: vec![Vec::new(); script.streams.len()],
            readings: vec![Vec::new(); limits.len()],
            parts: parts(script),
            names: limits.iter().map(|limit| limit.name.to_string()).collect(),
            keys: limits.iter().map(|limit| BucketKey::whole(limit.name.clone())).collect(),
            now: vec![Cell::default(); limits.len()],
            now_streams: vec![Cell::default(); script.streams.len()],
            reports: Vec::new(),
            attempts: Vec::new(),
            agents: Vec::new(),
            early: Vec::new(),
            kept: Vec::new(),
            settled: Vec::new(),
            full: 0,
            early_now: 0,
            attempts_now: 0,
            time: Duration::ZERO,
        }
    }

    pub(crate) fn limit(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// By step, what some of the hosts decided of a limit.
    pub(crate) fn part(&self, hosts: &Hosts, limit: usize) -> Option<&[Cell]> {
        let part = self.parts.iter().find(|part| part.hosts == *hosts && part.limit == limit);
        part.map(|part| part.cells.as_slice())
    }

    pub(crate) fn decided(&mut self, host: usize, limit: usize, decided: Cell) {
        self.now[limit].add(decided);
        for part in self.parts.iter_mut().filter(|part| part.limit == limit && part.hosts.contains(&host)) {
            part.now.add(decided);
        }
    }

    pub(crate) fn answered(&mut self, stream: usize, offered: u32, admitted: u32) {
        self.now_streams[stream].add(Cell { offered, admitted });
    }

    pub(crate) fn reported(&mut self, host: usize, full: bool) {
        if full {
            self.full += 1;
        } else {
            self.early_now += 1;
            self.early.push((self.time, u32::try_from(host).unwrap_or(u32::MAX)));
        }
    }

    pub(crate) fn attempted(&mut self) {
        self.attempts_now += 1;
    }

    pub(crate) fn agents(&mut self, agents: u32) {
        self.agents.push((self.time, agents));
    }

    pub(crate) fn end_of_step(&mut self, now: Duration, fleet: Option<&Fleet>) {
        for (limit, cell) in self.now.iter_mut().enumerate() {
            self.limits[limit].push(std::mem::take(cell));
            let bucket = fleet.and_then(|fleet| {
                let buckets = fleet.children().buckets();
                buckets.number(&self.keys[limit]).and_then(|number| buckets.get(number))
            });
            let before = self.readings[limit].last().copied().unwrap_or_default();
            #[allow(clippy::cast_possible_truncation, reason = "to look at")]
            let reading = bucket.map_or(before, |bucket| Reading {
                ratio: bucket.headroom.map_or(0.0, |headroom| headroom.drop_ratio().value()) as f32,
                demand: bucket.demand as f32,
                counted: bucket.counts.offered,
            });
            self.readings[limit].push(reading);
        }
        for part in &mut self.parts {
            part.cells.push(std::mem::take(&mut part.now));
        }
        for (stream, cell) in self.now_streams.iter_mut().enumerate() {
            self.streams[stream].push(std::mem::take(cell));
        }
        self.reports.push((std::mem::take(&mut self.full), std::mem::take(&mut self.early_now)));
        self.attempts.push(std::mem::take(&mut self.attempts_now));
        self.time = now + self.step;
    }

    /// What was offered to a limit since then.
    pub(crate) fn offered_since(&self, limit: usize, since: Duration) -> u64 {
        let steps = self.steps(Span { from: since, to: Duration::MAX });
        self.limits[limit][steps].iter().map(|cell| u64::from(cell.offered)).sum()
    }

    /// The steps of a span.
    pub(crate) fn steps(&self, span: Span) -> std::ops::Range<usize> {
        let index = |time: Duration| {
            let index = time.as_nanos() / self.step.as_nanos().max(1);
            usize::try_from(index).unwrap_or(usize::MAX).min(self.reports.len())
        };
        index(span.from)..index(span.to)
    }
}

/// What measures ask for of some of the hosts.
fn parts(script: &Script) -> Vec<Part> {
    let limits = script.limits.limits();
    let limit = |name: &str| limits.iter().position(|limit| *limit.name == *name);
    let part = |measure: &Measure| {
        let (hosts, limit) = (measure.hosts.clone()?, limit(&measure.name)?);
        Some(Part { hosts, limit, cells: Vec::new(), now: Cell::default() })
    };
    script.measures.iter().filter_map(part).collect()
}
