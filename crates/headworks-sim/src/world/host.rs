//! A host: its agent, its traffic, and decisions in bulk.

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Agent, InForce};
use headworks_core::attributes::Attributes;
use headworks_core::backoff::Backoff;
use headworks_core::bucket::{BucketKey, Counts, Values};
use headworks_core::decision::{Draw, Threshold};
use headworks_core::guard::Allowance;
use headworks_core::limits::{LimitSet, Mode};
use headworks_core::matching::Encounter;
use headworks_core::message::{BucketNumber, Incarnation, Plan};
use headworks_core::units::Moment;

use super::choice::Choice;
use super::links::{Parcel, Pause, Stream, Uplink, Wire};
use super::load::Part;
use super::{BEAT, World};
use crate::chance::{Chance, round};
use crate::log::Cell;

/// One host.
pub(super) struct Host {
    /// `None` while it is dead.
    pub(super) agent: Option<Agent>,
    /// Tells its lives apart.
    pub(super) life: Incarnation,
    /// The aggregator that it is attached to, or tries.
    pub(super) site: usize,
    pub(super) zone: usize,
    pub(super) part: Part,
    pub(super) uplink: Uplink,
    /// To each aggregator of its zone.
    pub(super) wires: Vec<Wire>,
    pub(super) choice: Choice,
    pub(super) backoff: Backoff,
    pub(super) pause: Pause,
    /// Its own clock is this far ahead, in nanoseconds of an origin far from zero.
    pub(super) clock: i64,
    beat_at: Duration,
    woken: bool,
    buckets: Vec<Bucket>,
    /// Places of buckets that counted something since the agent was told.
    moved: Vec<usize>,
    /// By stream: the buckets that its requests meet, in pipeline order.
    paths: Vec<Vec<usize>>,
    chance: Chance,
}

/// One bucket at one host, as its requests see it.
struct Bucket {
    key: Box<BucketKey>,
    /// The place of its limit in the log.
    limit: usize,
    /// `None` once the agent has forgotten it, until it counts again.
    number: Option<BucketNumber>,
    enforced: bool,
    counts: Counts,
    /// Counted something since the agent was told.
    moved: bool,
    draw: Draw,
    threshold: Threshold,
    allowance: Option<Allowance>,
    tokens: f64,
    refilled: Duration,
    /// Of the requests decided last.
    passed: u32,
}

impl Host {
    /// The host's own idea of now. Origins lie a day back, so that a clock may jump backwards.
    pub(super) fn time(&self, now: Duration) -> Moment {
        const ORIGIN: i64 = 86_400_000_000_000;
        let nanos = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX).saturating_add(self.clock);
        Moment::after(Duration::from_nanos(nanos.saturating_add(ORIGIN).unsigned_abs()))
    }

    /// What its limiter has counted, by bucket and life of its counts.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&BucketKey, u32, u64)> {
        self.buckets.iter().filter_map(|bucket| {
            let life = self.agent.as_ref()?.life(bucket.number?);
            Some((&*bucket.key, life, bucket.counts.offered))
        })
    }

    fn is_up(&self, now: Duration) -> bool {
        self.agent.is_some() && !self.pause.is_on(now)
    }

    /// Finds out which buckets the requests of each stream meet.
    fn find_paths(&mut self, limits: &LimitSet, streams: &[Vec<(String, String)>], now: Moment) {
        let mut paths = Vec::new();
        for attributes in streams {
            let pairs: Vec<(&str, &str)> = attributes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let mut path = Vec::new();
            for (place, limit) in
                limits.limits().iter().enumerate().filter(|(_, limit)| limit.mode != Mode::Off)
            {
                let Encounter::Counted(values) = limit.encounter(Attributes::new(&pairs)) else { continue };
                let values = values.as_slice().iter().map(|value| (*value).to_owned()).collect();
                let key =
                    BucketKey { limit: limit.name.clone(), scope: Vec::new(), values: Values::Of(values) };
                let mode = limits.of_bucket(&key).map_or(limit.mode, |limit| limit.mode);
                // The agent opens none that an override turns off.
                path.extend(self.bucket(key, place, mode == Mode::Enforce, now));
            }
            paths.push(path);
        }
        self.paths = paths;
    }

    /// A bucket that was forgotten is made again by its first request.
    fn reopen(&mut self, place: usize, now: Duration) {
        let now = self.time(now);
        if let (bucket @ Bucket { number: None, .. }, Some(agent)) =
            (&mut self.buckets[place], &mut self.agent)
        {
            bucket.number = agent.open(&bucket.key, now);
        }
    }

    fn bucket(&mut self, key: BucketKey, limit: usize, enforced: bool, now: Moment) -> Option<usize> {
        let number = self.agent.as_mut()?.open(&key, now)?;
        if let Some(known) = self.buckets.iter().position(|bucket| *bucket.key == key) {
            self.buckets[known].number = Some(number);
            return Some(known);
        }
        self.buckets.push(Bucket {
            key: Box::new(key),
            limit,
            number: Some(number),
            enforced,
            counts: Counts::default(),
            moved: false,
            draw: Draw::new(self.chance.word()),
            threshold: Threshold::default(),
            allowance: None,
            tokens: 0.0,
            refilled: Duration::ZERO,
            passed: 0,
        });
        Some(self.buckets.len() - 1)
    }
}

/// What rests is forgotten, with what it had counted.
fn forget_idle(agent: &mut Agent, buckets: &mut [Bucket], now: Moment) {
    for number in agent.idle(now).collect::<Vec<_>>() {
        if agent.forget(number, now)
            && let Some(bucket) = buckets.iter_mut().find(|bucket| bucket.number == Some(number))
        {
            (bucket.number, bucket.counts, bucket.moved) = (None, Counts::default(), false);
            (bucket.threshold, bucket.allowance) = (Threshold::default(), None);
        }
    }
}

impl Bucket {
    /// Decides `n` requests that arrive in the step up to `now`: how many pass, and whether the allowance was spent.
    fn decide(&mut self, n: u32, now: Duration, chance: &mut Chance) -> (u32, bool) {
        self.counts.offered += u64::from(n);
        let (draw, mut over) = self.draw.step_many(self.threshold, n, || chance.word());
        self.draw = draw;
        let spent = self.spend(n - over, now);
        over += spent;
        if self.enforced {
            self.counts.dropped += u64::from(over);
        } else {
            self.counts.would_drop += u64::from(over);
        }
        self.passed = n - over;
        (self.passed, spent > 0)
    }

    /// How many of `n` the allowance holds back.
    fn spend(&mut self, n: u32, now: Duration) -> u32 {
        let Some(allowance) = self.allowance else { return 0 };
        let elapsed = now.saturating_sub(self.refilled);
        self.refilled = now;
        self.tokens = (self.tokens + allowance.rate * elapsed.as_secs_f64()).min(allowance.depth);
        let pass = f64::from(n).min(self.tokens.floor());
        self.tokens -= pass;
        n - round(pass)
    }

    fn set(&mut self, in_force: InForce) {
        self.threshold = Threshold::of(in_force.headroom.drop_ratio());
        if let (None, Some(new)) = (self.allowance, in_force.allowance) {
            self.tokens = new.depth;
        }
        self.allowance = in_force.allowance;
        self.tokens = self.tokens.min(in_force.allowance.map_or(0.0, |allowance| allowance.depth));
    }
}

impl World {
    pub(super) fn new_host(&mut self, place: usize, zone: usize) -> Host {
        let identity = self.identity(format!("agent-{place}-{}", self.lives), zone);
        let mut chance = self.chance.fork();
        let part = self.load.part(place, &mut chance);
        let mut host = Host {
            agent: None,
            life: identity.incarnation,
            site: zone * self.script.aggregators,
            zone,
            part,
            uplink: Uplink { retry_at: self.now, ..Uplink::default() },
            wires: (0..self.script.aggregators).map(|_| Wire::default()).collect(),
            choice: Choice::of(identity.incarnation, self.script.aggregators),
            backoff: Backoff::default(),
            pause: Pause::default(),
            clock: 0,
            beat_at: self.now + BEAT.mul_f64(chance.unit()),
            woken: false,
            buckets: Vec::new(),
            moved: Vec::new(),
            paths: vec![Vec::new(); self.script.streams.len()],
            chance,
        };
        host.site += host.choice.place();
        host.agent = Some(Agent::new(identity, self.script.hold, host.time(self.now)));
        host
    }

    /// One step of a host: requests, and when it is time, a round of its agent.
    pub(super) fn live_host(&mut self, index: usize) {
        if !self.hosts[index].is_up(self.now) {
            return;
        }
        for stream in 0..self.load.rates.len() {
            let host = &mut self.hosts[index];
            let n = self.load.arrivals(stream, &mut host.part, &mut host.chance);
            if n > 0 {
                self.offer(index, stream, n, None);
            }
        }
        while let Some((stream, n, left)) = self.hosts[index].part.next_again(self.now) {
            self.offer(index, stream, n, Some(left));
        }
        let host = &mut self.hosts[index];
        if self.now >= host.beat_at {
            host.woken = false;
            while host.beat_at <= self.now {
                host.beat_at += BEAT.max(self.script.step);
            }
            self.beat(index);
        } else if std::mem::take(&mut host.woken) {
            self.beat(index);
            // Once between two rounds.
            self.hosts[index].woken = false;
        }
    }

    fn offer(&mut self, index: usize, stream: usize, n: u32, left: Option<u8>) {
        let end = self.now + self.script.step;
        let host = &mut self.hosts[index];
        let mut passing = n;
        for place in 0..host.paths[stream].len() {
            let place = host.paths[stream][place];
            host.reopen(place, self.now);
            let bucket = &mut host.buckets[place];
            if !std::mem::replace(&mut bucket.moved, true) {
                host.moved.push(place);
            }
            let (passed, spent) = bucket.decide(passing, end, &mut host.chance);
            host.woken |= spent;
            self.log.decided(index, bucket.limit, Cell { offered: passing, admitted: passed });
            if bucket.enforced {
                passing = passed;
            }
        }
        // Budgets pay for what the whole pipeline lets through.
        for place in host.paths[stream].iter().filter(|_| passing < n) {
            let bucket = &mut host.buckets[*place];
            bucket.counts.refused_later += u64::from(bucket.passed.saturating_sub(passing));
        }
        self.log.answered(stream, n, passing);
        self.load.refuse(stream, n - passing, left, &mut host.part, self.now, &mut host.chance);
    }

    fn beat(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let time = host.time(self.now);
        let Some(agent) = &mut host.agent else { return };
        for place in host.moved.drain(..) {
            let bucket = &mut host.buckets[place];
            bucket.moved = false;
            if let Some(number) = bucket.number {
                agent.count(number, bucket.counts, time);
            }
        }
        forget_idle(agent, &mut host.buckets, time);
        if let (Some((stream, _)), Some(report)) = (host.uplink.attached, agent.report(time)) {
            self.log.reported(index, report.full);
            self.send(Parcel::HostReport { host: index, stream, report });
        }
        self.put_in_force(index);
    }

    fn put_in_force(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let time = host.time(self.now);
        let Some(agent) = &mut host.agent else { return };
        for (number, in_force) in agent.changes(time) {
            if let Some(bucket) = host.buckets.iter_mut().find(|bucket| bucket.number == Some(number)) {
                bucket.set(in_force);
            }
        }
    }

    pub(super) fn host_plan(&mut self, index: usize, stream: Stream, plan: Plan) {
        let host = &mut self.hosts[index];
        if host.uplink.attached.is_none_or(|(current, _)| current != stream) {
            return;
        }
        let time = host.time(self.now);
        let Some(agent) = &mut host.agent else { return };
        let effects = agent.plan(plan, time);
        if let Some(limits) = effects.limits {
            let limits: Arc<LimitSet> = limits;
            host.find_paths(&limits, &self.log.attributes, time);
        }
        self.put_in_force(index);
    }
}
