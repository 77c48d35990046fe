//! The controller as a state machine: demand of the whole fleet in, headrooms out.

mod demand;
mod followed;
mod idle;
mod orphans;

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::Identity;
use crate::awake::Awake;
use crate::bucket::Counts;
use crate::budget::Budget;
use crate::children::{Attachment, Bucket, Child, ChildId, Children, Header, Received};
use crate::history::History;
use crate::invariant::{headroom_is_sound, is_repeatable};
use crate::law::{self, Demand};
use crate::limits::{Limit, LimitSet};
use crate::link::{INTERVAL, SPACING};
use crate::message::{BucketNumber, Hello, Plan, Report, Tier, View};
use crate::node::Node;
use crate::numbers::NumberMap;
use crate::switch::{Posted, Switch};
use crate::units::{Headroom, Moment};

use orphans::Orphans;

/// Below this age a plan is fresh: five heartbeats, so that one lost stream does not make a fleet stand alone.
pub const TTL: Duration = Duration::from_secs(5);

/// How long a new controller goes by what its children say was in force. As long as they take to find it at worst, the cap
/// of their backoff and two intervals to report: of a zone that comes later than that, the share would be handed out.
const LEARNS: Duration = Duration::from_secs(12);
/// How long a new controller adopts the tokens of budgets that its children tell. Later they know less than it does.
const ADOPTS_FOR: Duration = Duration::from_secs(60);

/// The state of one controller.
#[derive(Debug)]
pub struct Fleet {
    children: Children,
    limits: Arc<LimitSet>,
    generation: u64,
    budgets: NumberMap<BucketNumber, Budget>,
    orphans: Orphans,
    hold: Duration,
    spacing: Duration,
    born: Moment,
    learns_until: Moment,
    computed: Moment,
    awake: Awake,
    switch: Posted,
    history: History,
}

impl Fleet {
    /// A controller of these limits, which has heard of nobody yet.
    pub fn new(identity: &Identity, limits: Arc<LimitSet>, hold: Duration, now: Moment) -> Self {
        let mut fleet = Self {
            children: Children::new(identity.node.clone(), identity.incarnation),
            limits: Arc::default(),
            generation: 0,
            budgets: NumberMap::default(),
            orphans: Orphans::default(),
            hold,
            spacing: SPACING,
            born: now,
            learns_until: now + LEARNS,
            computed: now,
            awake: Awake::since(now),
            switch: Posted::default(),
            history: History::new(now),
        };
        fleet.install(limits, now);
        fleet
    }

    /// Least time between two reports of one node, in the whole tree. As long as the report interval, it turns early
    /// reports off.
    #[must_use]
    pub fn with_spacing(self, spacing: Duration) -> Self {
        Self { spacing, ..self }
    }

    /// Puts other limits in force. The state of limits that did not change stays.
    pub fn install(&mut self, limits: Arc<LimitSet>, now: Moment) {
        let old = std::mem::replace(&mut self.limits, limits);
        self.children.adopt(&old, &self.limits);
        self.history.adopt(&old, &self.limits, now);
        let buckets = self.children.buckets();
        let limits = &self.limits;
        self.budgets.retain(|number, budget| {
            let limit = buckets.key(*number).and_then(|key| limits.of_bucket(key));
            limit.is_some_and(|limit| budget.follow(limit, now))
        });
        // A bucket that goes on counting under a limit that is a budget now.
        for (number, key, bucket) in buckets.iter() {
            let limit = limits.of_bucket(key);
            if let Entry::Vacant(new) = self.budgets.entry(number)
                && let Some(budget) = limit.and_then(|limit| Budget::of(limit, bucket.counts, now))
            {
                new.insert(budget);
            }
        }
        self.generation += 1;
        self.recompute(now);
    }

    /// Turns every limit of the fleet to shadow, or back to its own mode; `at` is now, in seconds since 1970.
    pub fn throw_switch(&mut self, shadow_all: bool, at: u64) {
        self.switch.throw(shadow_all, at);
    }

    /// The switch of the fleet.
    pub fn switch(&self) -> Switch {
        self.switch.switch()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Arc<LimitSet> {
        &self.limits
    }

    /// How many sets of limits were in force in this life, this one included.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the controller still goes by what its children say was in force before it started.
    pub fn is_learning(&self, now: Moment) -> bool {
        now < self.learns_until
    }

    fn orphan(&mut self, child: ChildId, zone: &str, demand: &NumberMap<BucketNumber, f64>, now: Moment) {
        let sums = |other: &Child| other.hello.tier == Tier::Aggregator && other.hello.zone == zone;
        let zone_lives = self.children.iter().any(|(_, other)| sums(other) && !other.silent);
        let buckets = self.children.buckets();
        self.orphans.add(child, zone, zone_lives, demand, now, |number| {
            buckets.get(number).map_or(0.0, |b| b.demand)
        });
    }

    /// Before what these died with is an orphan: what was heard until then.
    fn settle_orphans<'a>(&mut self, died: impl Iterator<Item = &'a NumberMap<BucketNumber, f64>>) {
        let mut heard: NumberMap<BucketNumber, f64> = NumberMap::default();
        for (number, own) in died.flatten() {
            let others = || self.children.buckets().get(*number).map_or(0.0, |bucket| bucket.demand);
            *heard.entry(*number).or_insert_with(others) += own;
        }
        self.orphans.settle(&heard);
    }

    /// At rest is what would not change however often it is computed again.
    fn keep_lively(&mut self, lively: Vec<BucketNumber>, now: Moment) {
        let learning = self.is_learning(now);
        let (budgets, orphans) = (&self.budgets, &self.orphans);
        self.children.keep_lively(lively, |number, bucket| {
            learning
                || bucket.law.rate() > 0.0
                || orphans.hold(number)
                || budgets.get(&number).is_some_and(|budget| !budget.is_full())
        });
    }

    fn recompute(&mut self, now: Moment) {
        for number in self.children.buckets().numbers() {
            self.children.stir(number);
            self.step(number, now, Demand::jump);
        }
        self.computed = now;
    }

    fn step(&mut self, number: BucketNumber, now: Moment, law: impl Fn(Demand, f64, f64) -> Demand) {
        let buckets = self.children.buckets();
        let (Some(key), Some(bucket)) = (buckets.key(number), buckets.get(number)) else { return };
        // A child may still count for a limit that is not in force here: there is nothing to tell it.
        let Some(limit) = self.limits.of_bucket(key).cloned() else { return };
        let hold = limit.on_silence.hold.unwrap_or(self.hold);
        let offered = bucket.demand + self.orphans.demand(number, bucket.demand, hold, now);
        let demand = law(bucket.law, offered, INTERVAL.as_secs_f64());
        let learning = self.is_learning(now) && !limit.rate.is_ban();
        let told = bucket.in_force.filter(|_| learning);
        if let Some(bucket) = self.children.buckets_mut().get_mut(number) {
            bucket.law = demand;
        }
        let (computed, tokens) = match self.spend(number, &limit, now) {
            Some((headroom, tokens)) => (headroom, Some(tokens)),
            None => (law::headroom(limit.rate, demand), None),
        };
        let headroom = told.map_or(computed, |told| if told < computed { told } else { computed });
        debug_assert!(headroom_is_sound(headroom), "{number:?} of {}: {headroom:?}", limit.name);
        debug_assert!(is_repeatable(demand, |demand| demand.jump(offered, INTERVAL.as_secs_f64())));
        self.children.set_headroom(number, Some(headroom), tokens);
    }

    /// The step of a budget: what its children say was admitted is paid for. `None` for a limit per second.
    fn spend(&mut self, number: BucketNumber, limit: &Limit, now: Moment) -> Option<(Headroom, f64)> {
        limit.budget()?;
        let young = now.since(self.born) < ADOPTS_FOR;
        let shared = self.tokens_of_rest(number);
        let bucket = self.children.buckets_mut().get_mut(number)?;
        let budget = match self.budgets.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let budget = new.insert(Budget::of(limit, Counts::default(), now)?);
                // It may have spent what all share that find no place.
                budget.adopt(shared.unwrap_or(f64::INFINITY));
                budget
            }
        };
        if let Some(told) = bucket.tokens_told.take().filter(|_| young) {
            budget.adopt(told);
        }
        let headroom = budget.step(bucket.counts.offered, bucket.counts.charged(), now);
        Some((headroom, budget.tokens()))
    }

    /// Time since the last computation; grows beyond an interval only when the tick is late.
    pub fn age(&self, now: Moment) -> Duration {
        now.since(self.computed)
    }

    /// Aggregators that died and whose demand is still remembered.
    pub fn orphans(&self) -> usize {
        self.orphans.len()
    }

    /// How much of the fleet this controller hears.
    pub fn view(&self) -> View {
        View {
            aggregators: u32::try_from(self.children.of_tier(Tier::Aggregator)).unwrap_or(u32::MAX),
            agents: self.children.agents(),
            demand: self.children.demand(),
        }
    }
}

impl Node for Fleet {
    fn children(&self) -> &Children {
        &self.children
    }

    fn attach(&mut self, hello: Hello, now: Moment) -> Attachment {
        if hello.tier == Tier::Aggregator {
            self.orphans.zone_is_back(&hello.zone, now);
        }
        self.switch.hear_child(hello.tier, hello.switch);
        self.children.attach(hello, now)
    }

    fn report(&mut self, child: ChildId, report: &Report, now: Moment) -> Received {
        if self.children.get(child).is_some_and(|child| child.silent) {
            self.orphans.are_heard_again(child);
        }
        if let (Some(told), Some(known)) = (report.switch, self.children.get(child)) {
            self.switch.hear_child(known.hello.tier, told);
        }
        // A change that the law takes for noise waits for the tick; most are.
        let young = self.is_learning(now) || self.orphans.len() > 0;
        let seconds = INTERVAL.as_secs_f64();
        let of_note = |bucket: &Bucket| {
            young
                || bucket.headroom.is_none()
                || bucket.tokens.is_some()
                || bucket.law.jump(bucket.demand, seconds) != bucket.law
        };
        let received = self.children.report(child, report, now, of_note);
        for number in &received.touched {
            self.step(*number, now, Demand::jump);
        }
        self.children.answer(child, report.sequence);
        received
    }

    /// A child is gone.
    ///
    /// Agents below an aggregator that died, or left for a restart, go on admitting by their last ratio. Their demand is still there, though
    /// nobody reports it: forgotten at once, it would be handed out a second time to everybody else.
    fn detach(&mut self, id: ChildId, now: Moment) {
        self.switch.forget(id);
        let Some((child, demand)) = self.children.detach(id, now) else { return };
        if child.hello.tier == Tier::Aggregator {
            self.settle_orphans(std::iter::once(&demand));
            self.orphan(id, &child.hello.zone, &demand, now);
        }
        for number in demand.keys() {
            self.step(*number, now, Demand::jump);
        }
    }

    fn tick(&mut self, now: Moment) {
        if let Some(lasted) = self.awake.wake(now) {
            self.children.excuse_silence(lasted, now);
        }
        let silent = self.children.end_silent(now);
        self.settle_orphans(silent.iter().map(|(_, demand)| demand));
        for (id, demand) in silent {
            let zone = self.children.get(id).map(|child| (child.hello.tier, child.hello.zone.clone()));
            if let Some((Tier::Aggregator, zone)) = zone {
                self.orphan(id, &zone, &demand, now);
            }
        }
        self.orphans.forget_old(now);
        self.follow(now);
        // Nobody asks what stirred: here all that moved is looked at.
        self.children.take_stirred();
        let lively = self.children.take_lively();
        for &number in &lively {
            let heard =
                self.children.buckets_mut().get_mut(number).is_some_and(|b| std::mem::take(&mut b.heard));
            // Without evidence a second step would average the same observation in again.
            self.step(number, now, if heard { Demand::settle } else { Demand::jump });
        }
        self.computed = now;
        self.keep_lively(lively, now);
        self.forget_idle(now);
    }

    fn has_news_for(&self, child: ChildId) -> bool {
        self.children.has_news_for(child) || self.switch.is_news_for(child)
    }

    fn plan_for(&mut self, child: ChildId, now: Moment) -> Option<Plan> {
        let header = Header {
            age: self.age(now),
            ttl: TTL,
            view: self.view(),
            generation: self.generation,
            spacing: self.spacing,
            limits: &self.limits,
            switch: self.switch.tell(child),
        };
        self.children.plan_for(child, header, now)
    }
}
