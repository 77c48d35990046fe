//! What lies between nodes: messages on their way, late, lost or cut off.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use headworks_core::message::{Plan, Report};

use crate::chance::Chance;
use crate::script::{Script, Way};

/// Tells streams apart: what was sent on an earlier one is not heard on a later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Stream(u64);

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) enum Parcel {
    HostReport { host: usize, stream: Stream, report: Report },
    HostPlan { host: usize, stream: Stream, plan: Plan },
    SiteReport { site: usize, controller: usize, stream: Stream, report: Report },
    SitePlan { site: usize, controller: usize, stream: Stream, plan: Plan },
}

impl Parcel {
    /// Reports may get lost, or overtake each other, and no harm is done; plans come over streams that lose nothing.
    fn is_report(&self) -> bool {
        matches!(self, Parcel::HostReport { .. } | Parcel::SiteReport { .. })
    }
}

/// All messages on their way.
pub(super) struct Links {
    /// By the step in which they arrive, in the order in which they were sent.
    on_the_way: BTreeMap<u128, VecDeque<Parcel>>,
    step: Duration,
    streams: u64,
    pub(super) delay: (Duration, Duration),
    pub(super) loss: f64,
    pub(super) repeats: f64,
    chance: Chance,
}

impl Links {
    pub(super) fn new(script: &Script, chance: Chance) -> Self {
        Self {
            on_the_way: BTreeMap::new(),
            step: script.step,
            streams: 0,
            delay: script.delay,
            loss: script.loss,
            repeats: script.repeats,
            chance,
        }
    }

    pub(super) fn new_stream(&mut self) -> Stream {
        self.streams += 1;
        Stream(self.streams)
    }

    /// Sends a message over a link.
    pub(super) fn send(&mut self, now: Duration, wire: &mut Wire, parcel: Parcel) {
        let lane = if parcel.is_report() { &mut wire.up } else { &mut wire.down };
        if lane.cut_since.is_some() {
            lane.waiting.push(parcel);
            return;
        }
        // No draw where nothing is repeated: what else comes by chance stays the same.
        if parcel.is_report() && self.repeats > 0.0 && self.chance.unit() < self.repeats {
            self.send_once(now, lane, parcel.clone());
        }
        self.send_once(now, lane, parcel);
    }

    /// Each of two copies takes its own time, and may get lost on its own.
    fn send_once(&mut self, now: Duration, lane: &mut Lane, parcel: Parcel) {
        if parcel.is_report() && self.loss > 0.0 && self.chance.unit() < self.loss {
            return;
        }
        let (least, most) = (self.delay.0 + lane.slow.0, self.delay.1 + lane.slow.1);
        // A plan says what changed since the one before it, so a stream must not let it overtake that one.
        let late = if parcel.is_report() { self.chance.unit() } else { 0.5 };
        let mut arrives = now + least + (most.saturating_sub(least)).mul_f64(late);
        if !parcel.is_report() {
            arrives = arrives.max(lane.last_arrives);
            lane.last_arrives = arrives;
        }
        self.hand_over(arrives, parcel);
    }

    fn hand_over(&mut self, arrives: Duration, parcel: Parcel) {
        self.on_the_way.entry(self.step_of(arrives)).or_default().push_back(parcel);
    }

    /// The next message that has arrived by now.
    pub(super) fn arrived(&mut self, now: Duration) -> Option<Parcel> {
        let mut first = self
            .on_the_way
            .first_entry()
            .filter(|first| *first.key() <= now.as_nanos() / self.step.as_nanos())?;
        let parcel = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        parcel
    }

    fn step_of(&self, time: Duration) -> u128 {
        time.as_nanos().div_ceil(self.step.as_nanos())
    }
}

/// A child's end of its stream to one parent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uplink {
    /// The stream, and what the parent calls the child on it.
    pub(super) attached: Option<(Stream, headworks_core::children::ChildId)>,
    pub(super) retry_at: Duration,
}

impl Uplink {
    pub(super) fn may_attach(&self, now: Duration) -> bool {
        self.attached.is_none() && now >= self.retry_at
    }
}

/// What lies between a child and one parent, whichever streams go over it.
#[derive(Debug, Default)]
pub(super) struct Wire {
    up: Lane,
    down: Lane,
}

/// One way of a wire.
#[derive(Debug, Default)]
struct Lane {
    cut_since: Option<Duration>,
    /// What was sent since: a connection sends it again until it is given up, so that nothing is missing in between.
    waiting: Vec<Parcel>,
    slow: (Duration, Duration),
    /// When the last plan arrives.
    last_arrives: Duration,
}

impl Wire {
    pub(super) fn carries(&self) -> bool {
        self.up.cut_since.is_none() && self.down.cut_since.is_none()
    }

    /// For how long it has not carried something: keepalives need both ways.
    pub(super) fn dead_for(&self, now: Duration) -> Duration {
        let since = [self.up.cut_since, self.down.cut_since].into_iter().flatten().min();
        since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    pub(super) fn cut(&mut self, way: Way, now: Duration) {
        if way != Way::Down {
            self.up.cut_since.get_or_insert(now);
        }
        if way != Way::Up {
            self.down.cut_since.get_or_insert(now);
        }
    }

    pub(super) fn slow(&mut self, by: (Duration, Duration)) {
        (self.up.slow, self.down.slow) = (by, by);
    }

    /// Whole again: what has waited comes back, to be sent.
    pub(super) fn heal(&mut self) -> Vec<Parcel> {
        let mut waiting = Vec::new();
        for lane in [&mut self.up, &mut self.down] {
            (lane.cut_since, lane.slow) = (None, Default::default());
            waiting.append(&mut lane.waiting);
        }
        waiting
    }

    /// The stream over it is given up, with all that waits on it.
    pub(super) fn forget_waiting(&mut self) {
        self.up.waiting.clear();
        self.down.waiting.clear();
    }
}

/// When a node stands still.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    from: Duration,
    until: Duration,
}

impl Pause {
    pub(super) fn is_on(&self, now: Duration) -> bool {
        now < self.until
    }

    pub(super) fn extend(&mut self, now: Duration, time: Duration) {
        if !self.is_on(now) {
            self.from = now;
        }
        self.until = now + time;
    }

    /// For how long it has answered no keepalive.
    pub(super) fn lasted(&self, now: Duration) -> Duration {
        if self.is_on(now) { now.saturating_sub(self.from) } else { Duration::ZERO }
    }
}

/// Keepalives find a stream that carries nothing any more, and a node that does not answer, after this time.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(10);
