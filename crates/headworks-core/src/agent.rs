//! The agent as a state machine: counts and plans in, reports and headrooms out.
//!
//! The requests themselves are decided elsewhere, by atomics that this machine never sees: its driver brings it the
//! counts and takes away the headrooms.

use std::sync::Arc;
use std::time::Duration;

use crate::bucket::{BucketKey, Counts};
use crate::ladder::{PlanState, headroom_in_force};
use crate::limits::{Limit, LimitSet};
use crate::link::{Due, Link, NameRoom};
use crate::message::{
    BucketNumber, BucketRef, Hello, Incarnation, Plan, PlanEntry, Report, ReportEntry, Tier,
};
use crate::meter::Meter;
use crate::registry::Registry;
use crate::significance::{AT_A_LEAF, is_news};
use crate::units::{Headroom, Moment};

/// Most buckets of one agent, over all limits; each limit has its own `max_buckets` besides.
const MOST_BUCKETS: usize = 1_000_000;

/// Who a node is; the same for its whole life.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Names the node for operators.
    pub node: String,
    /// This life of it.
    pub incarnation: Incarnation,
    /// Where it stands.
    pub zone: String,
    /// Where its zone stands; may be empty.
    pub region: String,
    /// The release it runs.
    pub version: String,
}

impl Identity {
    /// The hello of this node.
    pub fn hello(&self, tier: Tier, previous_parent: Option<String>, limits: Option<&LimitSet>) -> Hello {
        Hello {
            node: self.node.clone(),
            incarnation: self.incarnation,
            tier,
            zone: self.zone.clone(),
            region: self.region.clone(),
            version: self.version.clone(),
            previous_parent,
            limits: limits.map(LimitSet::digest),
        }
    }
}

#[derive(Debug, Default)]
struct Bucket {
    limit: Option<Arc<Limit>>,
    counts: Counts,
    reported: Counts,
    meter: Meter,
    headroom: Option<Headroom>,
    in_force: Option<Headroom>,
}

/// What a plan changed at an agent.
#[derive(Debug, Default)]
pub struct PlanEffects {
    /// New limits to match requests against.
    pub limits: Option<Arc<LimitSet>>,
    /// Entries for buckets that the agent does not know.
    pub unknown: u32,
}

/// The state of one agent.
#[derive(Debug)]
pub struct Agent {
    identity: Identity,
    born: Moment,
    hold: Duration,
    limits: Arc<LimitSet>,
    buckets: Registry<Bucket>,
    link: Link,
    parent: Option<String>,
}

impl Agent {
    /// An agent without limits. `hold` is how long the last ratios stay where a limit does not say.
    pub fn new(identity: Identity, hold: Duration, now: Moment) -> Self {
        Self {
            identity,
            born: now,
            hold,
            limits: Arc::default(),
            buckets: Registry::with_room_for(MOST_BUCKETS),
            link: Link::default(),
            parent: None,
        }
    }

    /// What to say to a parent first. `parent` names the one that is about to be tried.
    pub fn hello(&self) -> Hello {
        let limits = self.link.plan().map(|_| &*self.limits);
        self.identity.hello(Tier::Agent, self.parent.clone(), limits)
    }

    /// The stream to the parent at this address is open.
    pub fn attached(&mut self, parent: String) {
        self.parent = Some(parent);
        self.link.attach();
    }

    /// The stream is closed.
    pub fn detached(&mut self) {
        self.link.detach();
    }

    /// The address of the parent that was last attached to.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Arc<LimitSet> {
        &self.limits
    }

    /// The number of a bucket that requests were first counted in; `None` when the agent has too many.
    pub fn open(&mut self, key: &BucketKey, now: Moment) -> Option<BucketNumber> {
        let known = self.buckets.number(key).is_some();
        let number = self.buckets.intern(key)?;
        let (limit, elapsed) = (self.limits.get(&key.limit).cloned(), now.since(self.born));
        let bucket = self.buckets.get_mut(number)?;
        if !known {
            bucket.meter = Meter::starting(elapsed, 0, 0.0);
        }
        bucket.limit = limit;
        Some(number)
    }

    /// What a bucket has counted by now.
    pub fn count(&mut self, number: BucketNumber, counts: Counts, now: Moment) {
        if let Some(bucket) = self.buckets.get_mut(number) {
            bucket.meter.still_at_rest(now.since(self.born), counts.offered);
            bucket.counts = counts;
        }
    }

    /// A plan arrived.
    pub fn plan(&mut self, plan: Plan, now: Moment) -> PlanEffects {
        let mut effects = PlanEffects::default();
        if !self.link.accept(&plan, now) {
            return effects;
        }
        if let Some(limits) = plan.limits.filter(|limits| limits.digest() != self.limits.digest()) {
            self.adopt(limits.clone());
            effects.limits = Some(limits);
        }
        for (number, key) in plan.names {
            let local = if key.is_whole() { self.open(&key, now) } else { self.buckets.number(&key) };
            if let Some(local) = local {
                self.link.learn(local, number);
            }
        }
        for entry in plan.shared.into_iter().chain(plan.private) {
            effects.unknown += u32::from(!self.take(entry));
        }
        effects
    }

    fn adopt(&mut self, limits: Arc<LimitSet>) {
        let old = std::mem::replace(&mut self.limits, limits);
        let new = &self.limits;
        self.buckets.retain(|key, _| new.keeps_bucket(&old, key));
        for (_, key, bucket) in self.buckets.iter_mut() {
            bucket.limit = new.get(&key.limit).cloned();
        }
    }

    fn take(&mut self, entry: PlanEntry) -> bool {
        let local = self.link.local(entry.bucket);
        let Some(bucket) = local.and_then(|local| self.buckets.get_mut(local)) else { return false };
        bucket.headroom = Some(entry.headroom);
        true
    }

    /// What the plan in hand is worth by the node's own hold.
    pub fn plan_state(&self, now: Moment) -> PlanState {
        self.link.plan().map_or(PlanState::None, |plan| plan.state(now, self.hold))
    }

    /// The link to the parent, and the plan that came over it.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The headrooms in force that changed since the last call, by news from the parent or by the plan's age.
    pub fn changes(&mut self, now: Moment) -> Vec<(BucketNumber, Headroom)> {
        let (link, hold) = (&self.link, self.hold);
        let mut changed = Vec::new();
        for (number, _, bucket) in self.buckets.iter_mut() {
            let Some(limit) = &bucket.limit else { continue };
            let hold = limit.on_silence.hold.unwrap_or(hold);
            let state = link.plan().map_or(PlanState::None, |plan| plan.state(now, hold));
            let headroom = headroom_in_force(limit, bucket.headroom, state);
            if bucket.in_force != Some(headroom) {
                bucket.in_force = Some(headroom);
                changed.push((number, headroom));
            }
        }
        changed
    }

    /// The report to send now, if one is due: in full each interval, in part before that when demand moved.
    pub fn report(&mut self, now: Moment) -> Option<Report> {
        match self.link.due(now) {
            Due::No => None,
            Due::Full => Some(self.full_report(now)),
            Due::IfNews => self.early_report(now),
        }
    }

    /// All that was counted since the last full report. Also what an agent sends before it leaves.
    pub fn full_report(&mut self, now: Moment) -> Report {
        let greeting = self.link.is_greeting();
        self.build_report(now, true, |bucket, _| bucket.counts != bucket.reported || greeting)
    }

    fn early_report(&mut self, now: Moment) -> Option<Report> {
        let elapsed = now.since(self.born);
        let has_news = |bucket: &Bucket| {
            is_news(bucket.meter.expected(elapsed), bucket.meter.counted(bucket.counts.offered), AT_A_LEAF)
        };
        let any = self.buckets.iter().any(|(_, _, bucket)| has_news(bucket));
        any.then(|| self.build_report(now, false, |bucket, _| has_news(bucket)))
    }

    fn build_report(
        &mut self,
        now: Moment,
        full: bool,
        wanted: impl Fn(&Bucket, BucketNumber) -> bool,
    ) -> Report {
        let elapsed = now.since(self.born);
        let greeting = self.link.is_greeting();
        let mut entries = Vec::new();
        let (mut room, mut complete) = (NameRoom::default(), true);
        for (number, key, bucket) in self.buckets.iter_mut() {
            if !wanted(bucket, number) {
                if full {
                    bucket.meter.rest(elapsed);
                }
                continue;
            }
            let reference = self.link.reference(number, key);
            let named = matches!(reference, BucketRef::Named(_));
            if named && !room.takes(key) {
                complete = false;
                continue;
            }
            bucket.meter.observe(elapsed, bucket.counts.offered, !full);
            bucket.reported = bucket.counts;
            entries.push(ReportEntry {
                bucket: reference,
                counts: bucket.counts,
                // The parent cannot measure what it hears of for the first time, nor see as finely when news began.
                demand: (named || !full).then(|| bucket.meter.rate()),
                in_force: bucket.headroom.filter(|_| greeting),
            });
        }
        // A report that had to leave something out must not say that it is idle.
        let full = full && complete;
        Report { sequence: self.link.say(now, full, complete), elapsed, full, agents: 1, entries }
    }
}
