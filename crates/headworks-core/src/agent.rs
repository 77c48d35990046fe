//! The agent as a state machine: counts and plans in, reports and headrooms out.
//!
//! The requests themselves are decided elsewhere, by atomics that this machine never sees: its driver brings it the
//! counts and takes away the headrooms.

mod bucket;
mod idle;
mod kept;
mod moving;

use std::sync::Arc;
use std::time::Duration;

use crate::awake::Awake;
use crate::bucket::{BucketKey, Counts};
use crate::guard::Allowance;
use crate::ladder::{PlanState, Rung, spread};
use crate::limits::{LimitSet, Mode};
use crate::link::{Due, Link, NameRoom};
use crate::message::{
    BucketNumber, BucketRef, Hello, Incarnation, News, Plan, PlanEntry, Report, ReportEntry, Tier,
};
use crate::meter::units;
use crate::readings::Beats;
use crate::registry::Registry;
use crate::significance::least_units;
use crate::switch::Switch;
use crate::units::{Headroom, Moment};

use bucket::Bucket;
use kept::Remembered;
pub use kept::{Kept, KeptBucket};

/// Most buckets of one agent, over all limits; each limit has its own `max_buckets` besides.
const MOST_BUCKETS: usize = 1_000_000;

/// Time between the reports of an agent at rest: a little under two intervals, so that its parent, which gives up on it
/// after three, misses none.
const RESTING: Duration = Duration::from_millis(1900);
/// Empty reports after which an agent is at rest.
const AT_REST_AFTER: u8 = 10;

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
    pub fn hello(
        &self,
        tier: Tier,
        previous_parent: Option<String>,
        previous_incarnation: Option<Incarnation>,
        limits: Option<&LimitSet>,
    ) -> Hello {
        Hello {
            node: self.node.clone(),
            incarnation: self.incarnation,
            tier,
            zone: self.zone.clone(),
            region: self.region.clone(),
            version: self.version.clone(),
            previous_parent,
            previous_incarnation,
            limits: limits.map(LimitSet::digest),
            switch: Switch::default(),
        }
    }
}

/// What decisions on a bucket go by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InForce {
    /// Its headroom, and so its drop ratio.
    pub headroom: Headroom,
    /// What may pass until the next plan; `None` where nothing but the ratio holds it.
    pub allowance: Option<Allowance>,
}

impl InForce {
    /// Whether decisions hardly notice the difference: own demand is noisy, and allowances follow it.
    fn is_near(self, other: Self) -> bool {
        let near = |one: f64, other: f64| (one - other).abs() <= 0.05 * other;
        let allowances = match (self.allowance, other.allowance) {
            (Some(one), Some(other)) => near(one.rate, other.rate) && near(one.depth, other.depth),
            (one, other) => one == other,
        };
        allowances && self.headroom == other.headroom
    }
}

/// How what is told of a bucket is to be multiplied in a zone.
pub(crate) fn scale_of(limits: &LimitSet, key: &BucketKey, zone: &str) -> f64 {
    limits.of_bucket(key).map_or(1.0, |limit| limit.scale_in(zone))
}

/// What a plan changed at an agent.
#[derive(Debug, Default)]
pub struct PlanEffects {
    /// New limits to match requests against, as they hold in the agent's zone.
    pub limits: Option<Arc<LimitSet>>,
    /// Entries for buckets that the agent does not know.
    pub unknown: u32,
    /// Buckets that have a headroom of their own for the first time.
    pub placed: Vec<BucketNumber>,
    /// Buckets that are not tracked, and no longer known here: their requests belong to the bucket that all such values share.
    pub untracked: Vec<Untracked>,
}

/// A bucket that the parents do not track.
#[derive(Clone, Copy, Debug)]
pub struct Untracked {
    /// Its number here, until then.
    pub bucket: BucketNumber,
    /// A parent has taken in what it had counted.
    pub was_counted: bool,
}

/// What came of an entry of a plan.
enum Taken {
    /// It is for no bucket that is known here.
    Unknown,
    /// It is the first for this bucket.
    First(BucketNumber),
    Known,
}

/// The state of one agent.
#[derive(Debug)]
pub struct Agent {
    identity: Identity,
    born: Moment,
    hold: Duration,
    limits: Arc<LimitSet>,
    /// The same as they hold in the agent's zone; all but headrooms goes by them.
    here: Arc<LimitSet>,
    buckets: Registry<Bucket>,
    link: Link,
    parent: Option<String>,
    /// The parent that was just greeted takes the place of another.
    takes_over: bool,
    /// The child's own time at its last report.
    last_told: Duration,
    /// The child's own time at its last full report.
    last_full: Duration,
    /// Full reports without anything to tell, in a row.
    empty: u8,
    beats: Beats,
    /// Units of all buckets since the last full report, and the highest rate of one as of then.
    counted: u64,
    busiest: f64,
    /// The fewest units that are news on one of the limits.
    least: f64,
    /// There are buckets that no parent was told of.
    untold: bool,
    /// The last report that the parents had taken in.
    answered: u64,
    awake: Awake,
    /// What an earlier life kept, until a parent is heard.
    remembered: Option<Remembered>,
    /// It has left a parent for another, which is to be greeted.
    moves: bool,
    /// Something changed of what is in force, or will by then.
    stale_from: Moment,
    switch: Switch,
}

impl Agent {
    /// An agent without limits. `hold` is how long the last ratios stay where a limit does not say.
    pub fn new(identity: Identity, hold: Duration, now: Moment) -> Self {
        Self {
            identity,
            born: now,
            hold,
            limits: Arc::default(),
            here: Arc::default(),
            buckets: Registry::with_room_for(MOST_BUCKETS),
            link: Link::of_leaf(),
            parent: None,
            takes_over: false,
            last_told: Duration::ZERO,
            last_full: Duration::ZERO,
            empty: 0,
            beats: Beats::default(),
            counted: 0,
            busiest: 0.0,
            least: least_units(None),
            untold: false,
            answered: 0,
            awake: Awake::since(now),
            remembered: None,
            moves: false,
            stale_from: now,
            switch: Switch::default(),
        }
    }

    /// What to say to a parent first.
    pub fn hello(&self) -> Hello {
        let limits = self.link.plan().map(|_| &*self.limits);
        self.identity.hello(Tier::Agent, self.parent.clone(), self.link.parent(), limits)
    }

    /// The stream to the parent at this address is open.
    pub fn attached(&mut self, parent: String) {
        self.takes_over = self.parent.replace(parent).is_some();
        self.link.attach();
    }

    /// The stream is closed.
    pub fn detached(&mut self) {
        self.link.detach();
    }

    /// The zone that it stands in.
    pub fn zone(&self) -> &str {
        &self.identity.zone
    }

    /// The address of the parent that was last attached to.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// The limits in force, as they are for the whole fleet.
    pub fn limits(&self) -> &Arc<LimitSet> {
        &self.limits
    }

    /// The limits in force, as they hold in its zone.
    pub fn limits_here(&self) -> &Arc<LimitSet> {
        &self.here
    }

    /// The number of a bucket that requests were first counted in; `None` when the agent has too many, or an override
    /// turns this one off.
    pub fn open(&mut self, key: &BucketKey, now: Moment) -> Option<BucketNumber> {
        let (limit, elapsed) = (self.here.of_bucket(key).cloned(), now.since(self.born));
        // One that an override turned off meanwhile counts nothing.
        if limit.as_ref().is_some_and(|limit| limit.mode == Mode::Off) {
            return None;
        }
        let known = self.buckets.number(key).is_some();
        let number = self.buckets.intern(key)?;
        let bucket = self.buckets.get_mut(number)?;
        if !known {
            bucket.open(&self.beats, elapsed);
            // Those without values come with every plan.
            bucket.untold = !key.is_whole();
            self.untold |= bucket.untold;
            if let Some(kept) = self.remembered.as_ref().and_then(|remembered| remembered.of(key)) {
                bucket.resume(kept);
            }
        }
        bucket.spread = spread(self.identity.incarnation, &key.limit);
        (bucket.limit, bucket.scale) = (limit, scale_of(&self.limits, key, &self.identity.zone));
        // Whoever opens it again goes by nothing yet.
        bucket.in_force = None;
        self.stale_from = now;
        Some(number)
    }

    /// What a bucket has counted by now. Need not be told of one that has counted nothing since.
    pub fn count(&mut self, number: BucketNumber, counts: Counts, now: Moment) {
        let elapsed = now.since(self.born);
        self.beats.read(elapsed);
        if let Some(bucket) = self.buckets.get_mut(number) {
            self.counted += counts.offered.saturating_sub(bucket.counts.offered);
            bucket.count(&self.beats, elapsed, counts);
        }
    }

    /// A plan arrived.
    pub fn plan(&mut self, plan: Plan, now: Moment) -> PlanEffects {
        let mut effects = PlanEffects::default();
        self.wake(now);
        let before = self.plan_state(now);
        if !self.link.accept(&plan, now) {
            return effects;
        }
        self.remembered = None;
        // Obeyed, and not merged: what the agent alone remembers, no controller could change any more.
        self.switch = plan.switch;
        if before != PlanState::Fresh {
            self.stale_from = Moment::default();
        }
        if let Some(limits) = plan.limits.filter(|limits| limits.digest() != self.limits.digest()) {
            self.adopt(limits);
            effects.limits = Some(self.here.clone());
            self.stale_from = Moment::default();
        }
        for (number, key) in plan.names {
            let local = if key.is_whole() { self.open(&key, now) } else { self.buckets.number(&key) };
            if let Some(local) = local {
                self.link.learn(local, number);
            }
        }
        for entry in plan.shared.iter().chain(&*plan.private) {
            match self.take(*entry, now) {
                Taken::Unknown => effects.unknown += 1,
                Taken::First(local) => effects.placed.push(local),
                Taken::Known => {}
            }
        }
        effects.untracked = plan.untracked.iter().filter_map(|key| self.turn_away(key)).collect();
        let answered = self.link.answered();
        if answered > self.answered {
            self.answered = answered;
            // What is the node's own demand from now on is no surge any more.
            self.stale_from = Moment::default();
            self.buckets.iter_mut().for_each(|(.., bucket)| bucket.answered(answered));
        }
        effects
    }

    fn adopt(&mut self, limits: Arc<LimitSet>) {
        let zone = &*self.identity.zone;
        let old = std::mem::replace(&mut self.here, limits.in_zone(zone));
        self.limits = limits;
        let new = &self.here;
        self.buckets.retain(|key, _| new.keeps_bucket(&old, key));
        for (_, key, bucket) in self.buckets.iter_mut() {
            bucket.limit = new.of_bucket(key).cloned();
            bucket.scale = scale_of(&self.limits, key, zone);
        }
        let each = new.for_all_buckets().map(|limit| least_units(Some(limit)));
        self.least = each.fold(least_units(None), f64::min);
    }

    fn take(&mut self, entry: PlanEntry, now: Moment) -> Taken {
        let known =
            self.link.local(entry.bucket).and_then(|local| Some((local, self.buckets.get_mut(local)?)));
        let Some((local, bucket)) = known else {
            let late = self.link.has_forgotten(entry.bucket);
            return if late { Taken::Known } else { Taken::Unknown };
        };
        let is_first = bucket.headroom.replace(entry.headroom).is_none();
        bucket.hear_tokens(entry.tokens, now.since(self.born));
        self.stale_from = Moment::default();
        if is_first { Taken::First(local) } else { Taken::Known }
    }

    /// What the plan in hand is worth by the node's own hold.
    pub fn plan_state(&self, now: Moment) -> PlanState {
        self.link.plan().map_or(PlanState::None, |plan| plan.state(now, self.hold))
    }

    /// Whether every limit only counts what it would drop.
    pub fn shadow_all(&self) -> bool {
        self.switch.shadow_all
    }

    /// The link to the parent, and the plan that came over it.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// What changed of what is in force since the last call, by news from the parent or by the plan's age.
    pub fn changes(&mut self, now: Moment) -> Vec<(BucketNumber, InForce)> {
        if now < self.stale_from {
            return Vec::new();
        }
        let (link, hold) = (&self.link, self.hold);
        let agents = link.plan().map_or(1, |plan| plan.view.agents);
        let mut changed = Vec::new();
        let mut lasts = Duration::MAX;
        for (number, _, bucket) in self.buckets.iter_mut() {
            let Some(limit) = &bucket.limit else { continue };
            let age = link.plan().map(|plan| plan.age(now));
            let ttl = link.plan().map_or(Duration::ZERO, |plan| plan.ttl);
            let rung = Rung::of(limit, age, ttl, hold, bucket.spread);
            lasts = rung.lasts.map_or(lasts, |until| until.min(lasts));
            let heard = bucket.headroom.map(|headroom| headroom.times(bucket.scale));
            let headroom = rung.headroom(limit, heard);
            // Of a bucket that no parent has spoken of yet, nobody knows who else has traffic for it.
            let otherwise = self.remembered.as_ref().and_then(Remembered::otherwise);
            let guarded = heard.or(otherwise).filter(|_| rung.holds());
            // Where all started again with nothing but their even parts, nobody may go beyond them.
            let state = if otherwise.is_some() { PlanState::Fresh } else { rung.state };
            let allowance = guarded.and_then(|headroom| bucket.allowance(limit, headroom, agents, state));
            let in_force = InForce { headroom, allowance };
            if !bucket.in_force.is_some_and(|told| in_force.is_near(told)) {
                bucket.in_force = Some(in_force);
                changed.push((number, in_force));
            }
        }
        self.stale_from = now + lasts;
        changed
    }

    /// The report to send now, if one is due: in full each interval, in part before that when demand moved.
    pub fn report(&mut self, now: Moment) -> Option<Report> {
        self.wake(now);
        self.beats.read(now.since(self.born));
        match self.link.due(now) {
            Due::No => None,
            Due::Full if self.goes_on_resting(now) => None,
            Due::Full => Some(self.full_report(now)),
            Due::IfNews => self.early_report(now),
        }
    }

    fn wake(&mut self, now: Moment) {
        if let Some(lasted) = self.awake.wake(now) {
            self.link.resumed(lasted);
        }
    }

    fn rests(&self) -> bool {
        self.empty >= AT_REST_AFTER
    }

    /// Whether nothing was counted for so long that every other report is enough to be known alive: a fleet at rest costs
    /// half.
    fn goes_on_resting(&self, now: Moment) -> bool {
        let quiet = now.since(self.born).saturating_sub(self.last_full);
        self.rests() && self.counted == 0 && quiet < RESTING && self.link.is_introduced()
    }

    /// All that was counted since the last full report. Also what an agent sends before it leaves.
    pub fn full_report(&mut self, now: Moment) -> Report {
        let elapsed = now.since(self.born);
        let interval = self.interval_up_to(elapsed);
        self.last_full = elapsed;
        self.counted = 0;
        self.busiest = 0.0;
        for (.., bucket) in self.buckets.iter_mut() {
            self.busiest = bucket.interval_passed(&self.beats, interval).max(self.busiest);
        }
        self.stale_from = now;
        let all = !self.link.is_introduced();
        self.build_report(now, true, |bucket, _| bucket.moved || bucket.untold || all)
    }

    fn early_report(&mut self, now: Moment) -> Option<Report> {
        let (elapsed, beats) = (now.since(self.born), &self.beats);
        // Most nodes are so quiet that no bucket of theirs can have news: they need not look at each.
        let missed = self.busiest * elapsed.saturating_sub(self.last_full).as_secs_f64();
        if !self.untold && units(self.counted).max(missed) < self.least {
            return None;
        }
        // A bucket that is new here may be known elsewhere: to ask is the way to its headroom.
        let is_news = |bucket: &Bucket, news: Option<News>| bucket.untold || news.is_some();
        let any = self.buckets.iter().any(|(.., bucket)| is_news(bucket, bucket.news(beats, elapsed)));
        any.then(|| self.build_report(now, false, is_news))
    }

    fn build_report(
        &mut self,
        now: Moment,
        full: bool,
        wanted: impl Fn(&Bucket, Option<News>) -> bool,
    ) -> Report {
        let elapsed = now.since(self.born);
        let greeting = self.link.is_greeting();
        let sequence = self.link.said() + 1;
        let mut entries = Vec::new();
        let (mut room, mut complete) = (NameRoom::default(), true);
        let (beats, rests) = (&self.beats, self.rests());
        self.untold = false;
        // A new parent counts from the first report. It is the last one that the old parent was sent; what came since then is
        // told right after it.
        let takes_over = std::mem::take(&mut self.takes_over);
        let lives = self.buckets.lives();
        for (number, key, bucket) in self.buckets.iter_mut() {
            let news = bucket.news(beats, elapsed);
            if !wanted(bucket, news) {
                if full {
                    bucket.rest(elapsed);
                }
                continue;
            }
            let reference = self.link.reference(number, key);
            let named = matches!(reference, BucketRef::Named(_));
            if named && !room.takes(key) {
                complete = false;
                continue;
            }
            // Nor can it see when the first request came after a rest in which it was told less often.
            let demand = (named || full && rests).then(|| bucket.rate_so_far(elapsed));
            let counts = bucket.counts_for(takes_over);
            bucket.tell(elapsed, counts, news, full, sequence);
            entries.push(ReportEntry {
                bucket: reference,
                counts,
                demand,
                news,
                in_force: bucket.headroom.filter(|_| greeting),
                tokens: bucket.tokens.filter(|_| greeting),
                life: lives.of(number),
            });
        }
        let forgotten = self.link.farewells(sequence);
        let tells_nothing = entries.is_empty() && forgotten.is_empty();
        self.empty = if full && complete && tells_nothing { self.empty.saturating_add(1) } else { 0 };
        // A report that had to leave something out must not say that it is idle.
        let full = full && complete;
        let sequence = self.link.say(now, full, complete);
        if takes_over {
            self.link.hurry();
        }
        let elapsed = if takes_over { self.last_told } else { elapsed };
        self.last_told = elapsed;
        Report { sequence, elapsed, full, agents: 1, entries, forgotten, switch: None }
    }
}
