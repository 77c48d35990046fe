//! What lies between nodes: messages on their way, late, lost or cut off.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use headworks_core::message::{Plan, Report};

use crate::chance::Chance;
use crate::script::Script;

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

    pub(super) fn send(&mut self, now: Duration, parcel: Parcel) {
        // No draw where nothing is repeated: what else comes by chance stays the same.
        if parcel.is_report() && self.repeats > 0.0 && self.chance.unit() < self.repeats {
            self.send_once(now, parcel.clone());
        }
        self.send_once(now, parcel);
    }

    /// Each of two copies takes its own time, and may get lost on its own.
    fn send_once(&mut self, now: Duration, parcel: Parcel) {
        if parcel.is_report() && self.loss > 0.0 && self.chance.unit() < self.loss {
            return;
        }
        let (least, most) = self.delay;
        // A plan says what changed since the one before it, so a stream must not let it overtake that one.
        let late = if parcel.is_report() { self.chance.unit() } else { 0.5 };
        let arrives = now + least + (most.saturating_sub(least)).mul_f64(late);
        self.defer(arrives, parcel);
    }

    /// Hands a message over at this time.
    pub(super) fn defer(&mut self, arrives: Duration, parcel: Parcel) {
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
    pub(super) cut_since: Option<Duration>,
}

/// Keepalives find a link that carries nothing any more after this time.
const KEEPALIVE: Duration = Duration::from_secs(10);

impl Uplink {
    pub(super) fn carries(&self) -> bool {
        self.cut_since.is_none()
    }

    /// The stream is up, but has carried nothing for so long that both ends notice.
    pub(super) fn is_found_broken(&self, now: Duration) -> bool {
        self.attached.is_some() && self.cut_since.is_some_and(|cut| now.saturating_sub(cut) >= KEEPALIVE)
    }

    pub(super) fn may_attach(&self, now: Duration) -> bool {
        self.attached.is_none() && now >= self.retry_at
    }
}
