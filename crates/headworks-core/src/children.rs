//! A parent's side: the children it hears, what they count together, and what each has yet to be told.

mod child;
mod departed;
mod idle;
mod kept;
mod plans;
mod rumours;
mod scope;
mod tracked;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

pub use child::{Child, ChildId, Held};
pub use kept::Kept;
pub use plans::Header;

use crate::bucket::{BucketKey, Counts};
use crate::limits::{LimitSet, Scope};
use crate::link::INTERVAL;
use crate::message::{BucketNumber, BucketRef, Hello, Incarnation, Report, ReportEntry, Tier};
use crate::numbers::NumberMap;
use crate::registry::Registry;
use crate::units::{Headroom, Moment};

use child::Told;
use departed::Departed;
use rumours::Rumours;
use scope::Stand;
use tracked::Places;

/// Intervals of silence after which a child's demand no longer counts.
const SILENT_AFTER: u32 = 3;
/// Most buckets that one parent numbers; bounds its memory, whatever names children send.
const MOST_BUCKETS: usize = 1_000_000;
/// Most buckets that one child may hold.
const MOST_BUCKETS_OF_A_CHILD: usize = 100_000;
/// Units a second beyond which no agent is believed, whatever its limit says: sums that held such a term would be good for
/// nothing else.
const MOST_OF_AN_AGENT: f64 = 1e10;

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
    changed: u64,
}

/// What came of a child's report.
#[derive(Debug, Default)]
pub struct Received {
    /// Buckets whose demand it touched.
    pub touched: Vec<BucketNumber>,
    /// Entries that made no sense or had no room.
    pub refused: u32,
    /// Entries that told of more than is plausible, and count as what is.
    pub clipped: u32,
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
    children: NumberMap<ChildId, Child>,
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
    next_child: u64,
}

impl Children {
    /// No children yet. `node` and `incarnation` are the parent's own.
    pub fn new(node: String, incarnation: Incarnation) -> Self {
        Self {
            node,
            incarnation,
            children: NumberMap::default(),
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
            next_child: 0,
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
        self.children.iter().map(|(id, child)| (*id, child))
    }

    /// One child.
    pub fn get(&self, id: ChildId) -> Option<&Child> {
        self.children.get(&id)
    }

    /// Agents at or below the children.
    pub fn agents(&self) -> u32 {
        u32::try_from(self.agents).unwrap_or(u32::MAX)
    }

    /// Children of a tier.
    pub fn of_tier(&self, tier: Tier) -> usize {
        self.children.values().filter(|child| child.hello.tier == tier).count()
    }

    /// A child says hello.
    pub fn attach(&mut self, hello: Hello, now: Moment) -> Attachment {
        let child = ChildId(self.next_child);
        self.next_child += 1;
        let was_ours = hello.previous_incarnation == Some(self.incarnation);
        let earlier = self.take_earlier_stream(&hello);
        let twin = self.children.values().any(|other| other.hello.node == hello.node);
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
        self.children.insert(child, new);
        Attachment { child, twin }
    }

    /// The same life on another stream: it has left the one it had, or is about to, though that end is not known here yet. Until
    /// it reports on the new one, what it said on the old one counts, once.
    fn take_earlier_stream(&mut self, hello: &Hello) -> Option<Child> {
        let same =
            |child: &Child| child.hello.node == hello.node && child.hello.incarnation == hello.incarnation;
        let id = self.children.iter().find(|(_, child)| same(child)).map(|(id, _)| *id)?;
        self.children.remove(&id)
    }

    /// A child reports. A report that is not newer than the last one changes nothing.
    pub fn report(&mut self, id: ChildId, report: &Report, now: Moment) -> Received {
        let mut received = Received::default();
        let Some(mut child) = self.children.remove(&id) else { return received };
        let agents = child.agents;
        if child.begin(report, now) {
            self.forget_at(&mut child, report, &mut received.touched);
            for entry in &report.entries {
                match self.resolve(&mut child, entry) {
                    Resolved::Bucket(number) if child.is_absurd(number, entry, report) => {
                        received.refused += 1;
                    }
                    Resolved::Bucket(number) => {
                        let telling = Telling { number, entry, report };
                        let clipped = self.take(id, &mut child, telling, now);
                        received.clipped += u32::from(clipped);
                        received.touched.push(number);
                    }
                    Resolved::Gone | Resolved::Untracked => {}
                    Resolved::Refused => received.refused += 1,
                }
            }
            if report.full && !child.is_greeted() {
                self.drop_those_left_out(&mut child, report, &mut received.touched);
            } else if report.full {
                self.rest_those_left_out(&mut child, report, &mut received.touched);
            }
            child.finish(report);
        }
        self.agents = self.agents - u64::from(agents) + u64::from(child.agents);
        self.children.insert(id, child);
        received
    }

    fn resolve(&mut self, child: &mut Child, entry: &ReportEntry) -> Resolved {
        match &entry.bucket {
            BucketRef::Named(key) => {
                let Some(key) = &self.localised(child, key) else { return Resolved::Gone };
                // Known ones first: names that are refused must not fill the registry either.
                let known = self.buckets.number(key).filter(|number| child.held.contains_key(number));
                if known.is_none() && child.held.len() >= MOST_BUCKETS_OF_A_CHILD {
                    return Resolved::Refused;
                }
                let is_new = self.buckets.number(key).is_none();
                if is_new && self.turns_away(child, key) {
                    return Resolved::Untracked;
                }
                let Some(number) = self.buckets.intern(key) else { return Resolved::Refused };
                if is_new {
                    self.places.take(key);
                }
                child.unnamed = true;
                // It has no number for it, whatever it was told before.
                child.names.remove(&number);
                Resolved::Bucket(number)
            }
            BucketRef::Number(number) if self.buckets.get(*number).is_none() => {
                if self.buckets.was_given(*number) { Resolved::Gone } else { Resolved::Refused }
            }
            // A number that it was told; one that it guessed would be a bucket of others.
            BucketRef::Number(number) if child.names.contains(number) => Resolved::Bucket(*number),
            BucketRef::Number(_) => Resolved::Refused,
        }
    }

    /// Most units a second that an agent can be offered of a bucket.
    fn most_of(&self, number: BucketNumber) -> f64 {
        if self.most_of_an_agent.is_empty() {
            return MOST_OF_AN_AGENT;
        }
        let limit = self.buckets.key(number).map(|key| &key.limit);
        limit.and_then(|limit| self.most_of_an_agent.get(limit)).copied().unwrap_or(MOST_OF_AN_AGENT)
    }

    /// Takes in what a child tells of one bucket, with its news, as far as it is plausible; whether it was not.
    fn take(&mut self, id: ChildId, child: &mut Child, telling: Telling<'_>, now: Moment) -> bool {
        let Telling { number, entry, report } = telling;
        let most = self.most_of(number) * f64::from(child.agents.max(1));
        if let Some(bucket) = self.buckets.get_mut(number).filter(|bucket| bucket.holders == 0) {
            bucket.first_holder = Some(id);
        }
        let mut clipped = self.count(child, telling, most);
        if let Some(news) = entry.news {
            let told = child.told(number, report.elapsed, entry.counts.offered, news);
            clipped |= told.rate() > most;
            self.hear(id, child, number, told.at_most(most), now);
        }
        clipped
    }

    /// Counts it, but no more demand than `most`; whether it told of more.
    fn count(&mut self, child: &mut Child, telling: Telling<'_>, most: f64) -> bool {
        let Telling { number, entry, report } = telling;
        let Some(bucket) = self.buckets.get_mut(number) else { return false };
        bucket.holders += u32::from(child.holds(number).is_none());
        let held = child.hold(number, entry, report.elapsed);
        let counted = entry.counts.since(held.counts);
        bucket.counts += counted;
        bucket.counted += counted;
        let before = held.demand();
        held.read(entry, report);
        let clipped = held.clip(most);
        bucket.shift(held.demand() - before);
        if let Some(told) = entry.in_force {
            bucket.in_force =
                Some(bucket.in_force.map_or(told, |other| if told < other { told } else { other }));
        }
        if let Some(told) = entry.tokens {
            bucket.tokens_told = Some(bucket.tokens_told.map_or(told, |other| other.min(told)));
        }
        clipped
    }

    /// News of a bucket: believed at once if it is solid, else when enough other children tell the like.
    fn hear(&mut self, id: ChildId, child: &mut Child, number: BucketNumber, told: Told, now: Moment) {
        let Some(bucket) = self.buckets.get_mut(number) else { return };
        let believed = self.rumours.hear(number, id, told, bucket.holders, now);
        for (teller, told) in believed {
            let teller = if teller == id { Some(&mut *child) } else { self.children.get_mut(&teller) };
            if let Some(held) = teller.and_then(|teller| teller.holds_mut(number)) {
                let before = held.demand();
                held.believe(&told);
                bucket.shift(held.demand() - before);
            }
        }
    }

    fn rest_those_left_out(&mut self, child: &mut Child, report: &Report, touched: &mut Vec<BucketNumber>) {
        for (number, held) in child.held.iter_mut().filter(|(_, held)| held.reported != report.sequence) {
            let before = held.demand();
            held.rest(report.elapsed);
            if before > 0.0
                && let Some(bucket) = self.buckets.get_mut(*number)
            {
                bucket.shift(-before);
                touched.push(*number);
            }
        }
    }

    /// A child is gone. What it offered no longer counts, and comes back by bucket for those who know better.
    pub fn detach(&mut self, id: ChildId, now: Moment) -> Option<(Child, NumberMap<BucketNumber, f64>)> {
        let mut child = self.children.remove(&id)?;
        self.agents -= u64::from(child.agents);
        let demand = self.silence_child(&mut child);
        for number in child.held.keys() {
            if let Some(bucket) = self.buckets.get_mut(*number) {
                bucket.holders = bucket.holders.saturating_sub(1);
            }
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
        let mut names: HashMap<&str, usize> = HashMap::new();
        for child in self.children.values() {
            *names.entry(&child.hello.node).or_default() += 1;
        }
        names.into_values().filter(|children| *children > 1).sum()
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
            if let Some(bucket) = self.buckets.get_mut(*number) {
                bucket.shift(-held.demand());
                ended.insert(*number, held.demand());
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
            child.held.retain(|number, _| buckets.get(*number).is_some());
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
        self.whole.insert(number);
        Some(number)
    }

    /// The parent's own node id.
    pub fn node(&self) -> &str {
        &self.node
    }
}

/// What a report tells of one bucket.
#[derive(Clone, Copy)]
struct Telling<'a> {
    number: BucketNumber,
    entry: &'a ReportEntry,
    report: &'a Report,
}

enum Resolved {
    Bucket(BucketNumber),
    /// Its limit was removed, or it was forgotten, while the report was under way.
    Gone,
    /// Its limit has as many as it may; the child is told.
    Untracked,
    Refused,
}

impl Bucket {
    /// Floats that are added and taken away again leave dust, which is no demand.
    fn shift(&mut self, change: f64) {
        self.heard = true;
        self.demand = (self.demand + change).max(0.0);
        if self.demand < 1e-9 {
            self.demand = 0.0;
        }
    }
}
