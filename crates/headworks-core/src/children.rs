//! A parent's side: the children it hears, what they count together, and what each has yet to be told.

mod activity;
mod child;
mod departed;
mod holding;
mod idle;
mod kept;
mod plans;
mod reports;
mod roll;
mod rumours;
mod scope;
mod tracked;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

pub use child::{Child, ChildId, Held};
pub use kept::Kept;
pub use plans::Header;
pub use reports::Received;

use crate::bucket::{BucketKey, Counts};
use crate::law;
use crate::limits::{LimitSet, Scope};
use crate::link::INTERVAL;
use crate::message::{BucketNumber, Hello, Incarnation, Tier};
use crate::numbers::{NumberMap, NumberSet};
use crate::registry::Registry;
use crate::units::{Headroom, Moment};

use activity::Activity;
use departed::Departed;
use roll::Roll;
use rumours::Rumours;
use scope::Stand;
use tracked::Places;

/// Intervals of silence after which a child's demand no longer counts.
const SILENT_AFTER: u32 = 3;
/// Most buckets that one parent numbers; bounds its memory, whatever names children send.
const MOST_BUCKETS: usize = 1_000_000;
/// What a parent knows of one bucket.
#[derive(Debug, Default)]
pub struct Bucket {
    /// Offered rate over all children, in units a second.
    pub demand: f64,
    /// Counted by all children since this parent's incarnation began.
    pub counts: Counts,
    /// The part of it that nobody has taken down yet.
    pub counted: Counts,
    /// What children are told; `None` until there is something to tell.
    pub headroom: Option<Headroom>,
    /// The lowest headroom that a child said was in force when it attached.
    pub in_force: Option<Headroom>,
    /// What children are told of the tokens of a budget.
    pub tokens: Option<f64>,
    /// The tokens that children were told of last.
    tokens_sent: f64,
    /// The lowest that a child said were left when it attached.
    pub tokens_told: Option<f64>,
    /// Children that count it.
    holders: u32,
    /// Who was the first of them: of most buckets, the only one.
    first_holder: Option<ChildId>,
    /// Since when no child does, as of the last look.
    unheld_since: Option<Moment>,
    /// Whether a report spoke of it since the last tick.
    pub heard: bool,
    /// What a controller's law remembers of it.
    pub(crate) law: law::Demand,
    changed: u64,
    /// In which lists of the activity it is.
    stirred: bool,
    lively: bool,
}

/// What came of a child's hello.
#[derive(Clone, Copy, Debug)]
pub struct Attachment {
    /// What this parent calls the child.
    pub child: ChildId,
    /// Another live child has the same node id.
    pub twin: bool,
}

/// The children of one parent.
#[derive(Debug)]
pub struct Children {
    node: String,
    incarnation: Incarnation,
    /// Boxed, since a child is taken out while it is heard.
    children: NumberMap<ChildId, Box<Child>>,
    roll: Roll,
    departed: Departed,
    buckets: Registry<Bucket>,
    /// Counted in buckets that were forgotten, by limit.
    forgotten: HashMap<Arc<str>, Counts>,
    places: Places,
    /// Limits that do not hold for the whole fleet.
    scopes: HashMap<Arc<str>, Scope>,
    /// Where all children stand; of a parent of several zones, they say.
    stands: Option<Stand>,
    rumours: Rumours,
    /// Agents at or below the children: asked for each bucket, of which there may be as many as children.
    agents: u64,
    /// What limits say that one agent can be offered, in units a second.
    most_of_an_agent: HashMap<Arc<str>, f64>,
    /// Buckets of limits without `per`, which every child hears of.
    whole: BTreeSet<BucketNumber>,
    /// Rises with every change that children have to hear of.
    revision: u64,
    /// Buckets changed by revision, since the oldest that a child may not have heard of.
    changes: plans::Changes,
    /// The revision that brought the last bucket which every child hears of.
    whole_since: u64,
    alike: plans::Alike,
    activity: Activity,
    /// Buckets that no child held at some time since the last look.
    unheld: NumberSet<BucketNumber>,
    /// Of all buckets together.
    demand: f64,
    next_child: u64,
    /// Reports taken in.
    reports: u64,
}

impl Children {
    /// No children yet. `node` and `incarnation` are the parent's own.
    pub fn new(node: String, incarnation: Incarnation) -> Self {
        Self {
            node,
            incarnation,
            children: NumberMap::default(),
            roll: Roll::default(),
            departed: Departed::default(),
            buckets: Registry::with_room_for(MOST_BUCKETS),
            forgotten: HashMap::new(),
            places: Places::default(),
            scopes: HashMap::new(),
            stands: None,
            rumours: Rumours::default(),
            agents: 0,
            most_of_an_agent: HashMap::new(),
            whole: BTreeSet::new(),
            revision: 0,
            changes: plans::Changes::default(),
            whole_since: 0,
            alike: plans::Alike::default(),
            activity: Activity::default(),
            unheld: NumberSet::default(),
            demand: 0.0,
            next_child: 0,
            reports: 0,
        }
    }

    /// The buckets that children hold, and those of limits without `per`.
    pub fn buckets(&self) -> &Registry<Bucket> {
        &self.buckets
    }

    /// The same, to change them; use [`Children::set_headroom`] for headrooms, which have to be told.
    pub fn buckets_mut(&mut self) -> &mut Registry<Bucket> {
        &mut self.buckets
    }

    /// Children attached now.
    pub fn iter(&self) -> impl Iterator<Item = (ChildId, &Child)> {
        self.children.iter().map(|(id, child)| (*id, &**child))
    }

    /// One child.
    pub fn get(&self, id: ChildId) -> Option<&Child> {
        self.children.get(&id).map(|child| &**child)
    }

    /// Agents at or below the children.
    pub fn agents(&self) -> u32 {
        u32::try_from(self.agents).unwrap_or(u32::MAX)
    }

    /// Reports taken in, of all children in the life of this parent.
    pub fn reports(&self) -> u64 {
        self.reports
    }

    /// Children of a tier.
    pub fn of_tier(&self, tier: Tier) -> usize {
        self.roll.of_tier(tier)
    }

    /// A child says hello.
    pub fn attach(&mut self, hello: Hello, now: Moment) -> Attachment {
        let child = ChildId(self.next_child);
        self.next_child += 1;
        let was_ours = hello.previous_incarnation == Some(self.incarnation);
        let earlier = self.take_earlier_stream(&hello);
        let twin = !self.roll.named(&hello.node).is_empty();
        let known = self.departed.take(&hello);
        let baseline = match (known, &hello.previous_parent) {
            (Some(counts), _) if was_ours => child::Baseline::Remembered(counts),
            (_, Some(_)) => child::Baseline::FirstReport,
            (_, None) => child::Baseline::Zero,
        };
        let mut new = Child::new(hello, baseline, now);
        if let Some(earlier) = earlier {
            new.succeed(earlier, was_ours);
        }
        self.roll.add(child, &new.hello);
        self.children.insert(child, Box::new(new));
        Attachment { child, twin }
    }

    /// The same life on another stream: it has left the one it had, or is about to, though that end is not known here yet. Until
    /// it reports on the new one, what it said on the old one counts, once.
    fn take_earlier_stream(&mut self, hello: &Hello) -> Option<Child> {
        let same =
            |id: &&ChildId| self.get(**id).is_some_and(|child| child.hello.incarnation == hello.incarnation);
        let id = self.roll.named(&hello.node).iter().find(same).copied()?;
        let earlier = *self.children.remove(&id)?;
        self.roll.remove(id, &earlier.hello);
        Some(earlier)
    }

    /// A child is gone. What it offered no longer counts, and comes back by bucket for those who know better.
    pub fn detach(&mut self, id: ChildId, now: Moment) -> Option<(Child, NumberMap<BucketNumber, f64>)> {
        let mut child = *self.children.remove(&id)?;
        self.roll.remove(id, &child.hello);
        self.agents -= u64::from(child.agents);
        let demand = self.silence_child(&mut child);
        for number in child.held.numbers() {
            self.let_go(number);
        }
        self.departed.remember(&child, now);
        Some((child, demand))
    }

    /// Children that left a short while ago, and whose counts are remembered.
    pub fn departed(&self) -> usize {
        self.departed.len()
    }

    /// This parent was suspended for `time`: its children could not be heard, and are not silent for it.
    pub fn excuse_silence(&mut self, time: Duration, now: Moment) {
        for child in self.children.values_mut() {
            child.last_report = now.min(child.last_report + time);
        }
    }

    /// Live children that have their node id in common with another one: two nodes were given one name.
    pub fn twins(&self) -> usize {
        self.roll.twins()
    }

    /// Ends the demand of children that have been silent too long: their names and what they offered.
    pub fn end_silent(&mut self, now: Moment) -> Vec<(ChildId, NumberMap<BucketNumber, f64>)> {
        self.rumours.forget_old(now);
        self.departed.forget_old(now);
        let silent: Vec<ChildId> = (self.children.iter())
            .filter(|(_, child)| !child.silent && now.since(child.last_report) > SILENT_AFTER * INTERVAL)
            .map(|(id, _)| *id)
            .collect();
        let mut ended = Vec::new();
        for id in silent {
            if let Some(mut child) = self.children.remove(&id) {
                ended.push((id, self.silence_child(&mut child)));
                child.silent = true;
                self.children.insert(id, child);
            }
        }
        ended
    }

    fn silence_child(&mut self, child: &mut Child) -> NumberMap<BucketNumber, f64> {
        let mut ended = NumberMap::default();
        for (number, held) in child.held.iter_mut().filter(|(_, held)| held.demand() > 0.0) {
            if let Some(bucket) = self.buckets.get_mut(number) {
                self.demand += bucket.shift(-held.demand());
                self.activity.note(number, bucket);
                ended.insert(number, held.demand());
            }
            held.forget_demand();
        }
        ended
    }

    /// What children shall hear of a bucket from now on. The tokens of a budget change all the time; they are worth
    /// telling again once they have moved by a unit and a twentieth.
    pub fn set_headroom(&mut self, number: BucketNumber, headroom: Option<Headroom>, tokens: Option<f64>) {
        if let Some(bucket) = self.buckets.get_mut(number) {
            bucket.tokens = tokens;
            let (now, told) = (tokens.unwrap_or_default(), bucket.tokens_sent);
            let moved = (now - told).abs() >= 1.0_f64.max(0.05 * now.abs());
            let near = match (headroom, bucket.headroom) {
                (Some(new), Some(told)) => new.is_near(told),
                (new, told) => new == told,
            };
            if !near || moved {
                bucket.tokens_sent = now;
                self.revision += 1;
                bucket.headroom = headroom;
                bucket.changed = self.revision;
                self.changes.note(self.revision, number);
                self.changes.tidy(&self.buckets);
            }
        }
    }

    /// The headrooms account for what this child reported, up to the report of this number.
    pub fn answer(&mut self, id: ChildId, sequence: u64) {
        if let Some(child) = self.children.get_mut(&id) {
            child.answered = child.answered.max(sequence);
        }
    }

    /// Adopts a new set of limits: buckets of limits that are gone, or that tell buckets apart by other keys, are
    /// forgotten; limits without `per` have a bucket before any child asks. The state of all others stays.
    pub fn adopt(&mut self, old: &LimitSet, new: &LimitSet) {
        self.buckets.retain(|key, _| new.keeps_bucket(old, key));
        let buckets = &self.buckets;
        for child in self.children.values_mut() {
            child.held.retain(|number| buckets.get(number).is_some());
        }
        self.whole.retain(|number| buckets.get(*number).is_some());
        self.forgotten.retain(|limit, _| new.get(limit).is_some());
        self.scopes = scope::narrow_ones(new);
        self.places = Places::of(new, self.buckets.iter().map(|(_, key, _)| key));
        let bounded = new.limits().iter();
        self.most_of_an_agent = bounded
            .filter_map(|limit| Some((limit.name.clone(), limit.max_rate_per_agent?.per_second())))
            .collect();
        // What is counted in one place has no part in plans.
        let planned = new.limits().iter().filter(|limit| limit.is_planned());
        for limit in planned.filter(|limit| limit.per.is_empty()) {
            if let Some(key) = self.whole_of(limit) {
                self.intern_whole(&key);
            }
        }
        self.revision += 1;
    }

    /// The bucket of a limit without `per`, known from now on to every child.
    pub fn intern_whole(&mut self, key: &BucketKey) -> Option<BucketNumber> {
        let number = self.buckets.intern(key)?;
        if self.whole.insert(number) {
            self.revision += 1;
            self.whole_since = self.revision;
            self.stir(number);
        }
        Some(number)
    }

    /// The parent's own node id.
    pub fn node(&self) -> &str {
        &self.node
    }
}

impl Bucket {
    /// Floats that are added and taken away again leave dust, which is no demand. By how much it changed.
    fn shift(&mut self, change: f64) -> f64 {
        self.heard = true;
        let before = self.demand;
        self.demand = (before + change).max(0.0);
        if self.demand < 1e-9 {
            self.demand = 0.0;
        }
        self.demand - before
    }
}
