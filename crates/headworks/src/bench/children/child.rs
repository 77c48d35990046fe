//! One child: an uplink, and counters that rise by chance.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use headworks_agent::uplink::{Dialer, Event, Outbox, Parents, Stay, keep_attached};
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::link::INTERVAL;
use headworks_core::message::{BucketNumber, BucketRef, Hello, Plan, Report, ReportEntry, Tier};
use headworks_core::numbers::NumberMap;
use headworks_core::switch::Switch;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, interval};
use tokio_util::sync::CancellationToken;

use super::tally::Tally;
use super::{ChildTier, ChildrenArgs};

/// The limit that the buckets are of; its values are `c0`, `c1` and so on.
pub(in crate::bench) const LIMIT: &str = "per-caller";
/// Buckets that one report names: so many names have room in a message.
const NAMES_AT_ONCE: usize = 20_000;
/// Units that a bucket counts in an interval, at most; on average half of it.
const MOST_UNITS: u64 = 19;
/// Agents below an aggregator, as it says.
const AGENTS_OF_A_ZONE: u32 = 1000;

/// What all children said and heard.
#[derive(Debug, Default)]
pub(super) struct Books {
    ready: AtomicU64,
    pub(super) reports: AtomicU64,
    entries: AtomicU64,
    pub(super) answered: AtomicU64,
    plans: AtomicU64,
    headrooms: AtomicU64,
    steered: AtomicU64,
    detached: AtomicU64,
}

impl Books {
    pub(super) fn tally(&self) -> Tally {
        let read = |count: &AtomicU64| count.load(Relaxed);
        Tally {
            ready: read(&self.ready),
            reports: read(&self.reports),
            entries: read(&self.entries),
            answered: read(&self.answered),
            plans: read(&self.plans),
            headrooms: read(&self.headrooms),
            steered: read(&self.steered),
            detached: read(&self.detached),
        }
    }
}

pub(super) struct Child {
    hello: Hello,
    tier: Tier,
    /// The first `busy` of them count in every interval.
    buckets: Vec<Bucket>,
    busy: usize,
    /// Which bucket a number of the parent's is of; empty again once all are steered.
    by_number: NumberMap<BucketNumber, usize>,
    numbered: usize,
    /// It named buckets, and no plan has numbered any since: to name them again would only be more work for the parent.
    asked: bool,
    steered: usize,
    is_ready: bool,
    sequence: u64,
    answered: u64,
    born: Instant,
    outbox: Option<Outbox>,
    /// Its turn to attach, until it has.
    turn: Option<OwnedSemaphorePermit>,
    chance: fastrand::Rng,
    books: Arc<Books>,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    number: Option<BucketNumber>,
    counts: Counts,
    is_steered: bool,
}

impl Child {
    pub(super) fn new(args: &ChildrenArgs, number: u32, books: Arc<Books>) -> Self {
        let (zone, busy) = match args.tier {
            ChildTier::Agent => ("a".to_owned(), args.buckets as usize),
            ChildTier::Aggregator => (format!("zone-{number}"), args.buckets as usize),
        };
        let hello = Hello {
            node: format!("child-{number}"),
            incarnation: headworks_agent::draw_incarnation(),
            tier: args.tier.into(),
            zone,
            region: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            previous_parent: None,
            previous_incarnation: None,
            limits: None,
            switch: Switch::default(),
        };
        Self {
            tier: hello.tier,
            hello,
            buckets: vec![Bucket::default(); busy + args.resting as usize],
            busy,
            by_number: NumberMap::default(),
            numbered: 0,
            asked: false,
            steered: 0,
            is_ready: false,
            sequence: 0,
            answered: 0,
            born: Instant::now(),
            outbox: None,
            turn: None,
            chance: fastrand::Rng::with_seed(u64::from(number)),
            books,
        }
    }

    /// Reports each interval until `stop`; then it only listens. Others have their turn when all its buckets are numbered.
    pub(super) async fn run(
        mut self,
        parent: String,
        turn: Option<OwnedSemaphorePermit>,
        stop: CancellationToken,
    ) {
        self.turn = turn;
        let (events, mut inbox) = mpsc::channel(4);
        let dialer = match self.tier {
            Tier::Agent => Dialer::of_agent(None),
            Tier::Aggregator | Tier::Controller => Dialer::of_aggregator(None),
        };
        let parents =
            Parents { node: self.hello.node.clone(), urls: vec![parent], stay: Stay::default(), dialer };
        tokio::spawn(keep_attached(0, parents, events, CancellationToken::new()));
        let mut due = interval(INTERVAL);
        loop {
            tokio::select! {
                event = inbox.recv() => match event {
                    Some(event) => self.hear(event),
                    None => return,
                },
                _ = due.tick(), if !stop.is_cancelled() => self.speak(),
            }
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Greet { outbox, .. } => outbox.hello(&self.hello),
            Event::Attached { outbox, .. } => {
                self.asked = false;
                self.outbox = Some(outbox);
                self.speak();
            }
            Event::Plan { plan, .. } => self.take(&plan),
            Event::Detached { .. } => {
                self.outbox = None;
                self.books.detached.fetch_add(1, Relaxed);
            }
        }
    }

    fn take(&mut self, plan: &Plan) {
        for (number, key) in &plan.names {
            self.asked = false;
            if let Some(index) = index_of(key).filter(|index| *index < self.buckets.len()) {
                self.numbered += usize::from(self.buckets[index].number.replace(*number).is_none());
                self.by_number.insert(*number, index);
            }
        }
        if self.numbered == self.buckets.len() && !std::mem::replace(&mut self.is_ready, true) {
            self.books.ready.fetch_add(1, Relaxed);
            self.turn = None;
        }
        self.note_steered(plan);
        let heard = plan.heard.min(self.sequence);
        self.books.answered.fetch_add(heard.saturating_sub(self.answered), Relaxed);
        self.answered = self.answered.max(heard);
        self.books.plans.fetch_add(1, Relaxed);
        self.books.headrooms.fetch_add((plan.private.len() + plan.shared.len()) as u64, Relaxed);
    }

    fn note_steered(&mut self, plan: &Plan) {
        for entry in plan.private.iter() {
            if self.steered == self.buckets.len() {
                return;
            }
            if let Some(index) = self.by_number.get(&entry.bucket)
                && !std::mem::replace(&mut self.buckets[*index].is_steered, true)
            {
                self.steered += 1;
                self.books.steered.fetch_add(1, Relaxed);
            }
        }
    }

    fn speak(&mut self) {
        self.count();
        let Some(outbox) = self.outbox.clone().filter(Outbox::has_room) else { return };
        let report = self.report();
        self.books.reports.fetch_add(1, Relaxed);
        self.books.entries.fetch_add(report.entries.len() as u64, Relaxed);
        outbox.report(&report);
    }

    /// Half of what comes is dropped, as a limit does that is asked for twice its rate.
    fn count(&mut self) {
        for bucket in &mut self.buckets[..self.busy] {
            let units = self.chance.u64(1..=MOST_UNITS);
            bucket.counts.offered += units;
            bucket.counts.dropped += units / 2;
        }
    }

    /// What counted something, and what the parent has not numbered yet, as far as there is room for its name.
    fn report(&mut self) -> Report {
        let mut room = if self.asked { 0 } else { NAMES_AT_ONCE };
        let mut complete = true;
        let mut entries = Vec::with_capacity(self.busy);
        for (index, bucket) in self.buckets.iter().enumerate() {
            let reference = match bucket.number {
                Some(_) if index >= self.busy => continue,
                Some(number) => BucketRef::Number(number),
                None if room == 0 => {
                    complete = false;
                    continue;
                }
                None => {
                    room -= 1;
                    self.asked = true;
                    BucketRef::Named(key_of(index))
                }
            };
            let is_told = self.tier == Tier::Aggregator || bucket.number.is_none();
            let rate = if index < self.busy { MOST_UNITS.div_ceil(2) as f64 } else { 0.0 };
            entries.push(ReportEntry {
                bucket: reference,
                counts: bucket.counts,
                demand: is_told.then(|| rate * self.chance.f64().mul_add(0.1, 0.95)),
                news: None,
                in_force: None,
                tokens: None,
                life: 0,
            });
        }
        self.sequence += 1;
        Report {
            sequence: self.sequence,
            elapsed: self.born.elapsed(),
            full: complete,
            agents: if self.tier == Tier::Agent { 1 } else { AGENTS_OF_A_ZONE },
            entries,
            forgotten: Vec::new(),
            switch: None,
        }
    }
}

fn key_of(index: usize) -> BucketKey {
    BucketKey { limit: LIMIT.into(), scope: Vec::new(), values: Values::Of(vec![format!("c{index}")]) }
}

fn index_of(key: &BucketKey) -> Option<usize> {
    match &key.values {
        Values::Of(values) => values.first()?.strip_prefix('c')?.parse().ok(),
        Values::Rest => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_found_again_by_its_key() {
        for index in [0, 7, 99_999] {
            assert_eq!(index_of(&key_of(index)), Some(index));
        }
    }
}
