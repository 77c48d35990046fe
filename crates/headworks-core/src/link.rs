//! A child's side of its stream to one parent: what has been said, and when to speak again.

use std::time::Duration;

use crate::bucket::BucketKey;
use crate::ladder::PlanState;
use crate::message::{BucketNumber, BucketRef, Forgotten, Incarnation, Plan, View};
use crate::numbers::NumberMap;
use crate::units::Moment;

/// Time between full reports until a plan says otherwise.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Least time between two reports until a plan says otherwise.
pub const SPACING: Duration = Duration::from_millis(50);

/// Early reports that a node which decides requests may send at once, and each second after that. A surge is told in
/// three; in a storm of them a parent would drown.
const EARLY_AT_ONCE: f64 = 3.0;

/// Most bytes of names in one message. Messages are bounded, and names come from outside: ten thousand new values of a
/// kilobyte each must not make a report that the parent refuses, again and again.
const NAMES: usize = 1024 * 1024;

/// Most forgotten buckets in one report; the others wait for the next.
const FORGOTTEN: usize = 20_000;

/// What is left of the room for names in one message; those that find none wait for the next.
#[derive(Debug)]
pub(crate) struct NameRoom(usize);

impl Default for NameRoom {
    fn default() -> Self {
        Self(NAMES)
    }
}

impl NameRoom {
    /// Whether this name still fits; if so, its room is taken.
    pub(crate) fn takes(&mut self, key: &BucketKey) -> bool {
        let left = self.0.checked_sub(key.size());
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// Whether a child may report now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// No: not attached, or it spoke a moment ago.
    No,
    /// If it has news.
    IfNews,
    /// Yes, in full.
    Full,
}

/// What a child keeps of the plan it holds.
#[derive(Clone, Copy, Debug)]
pub struct HeldPlan {
    received: Moment,
    age: Duration,
    /// Below this age the plan is fresh.
    pub ttl: Duration,
    /// Least time between two reports of one node.
    pub spacing: Duration,
    /// What its controller heard.
    pub view: View,
    /// How many sets of limits its controller has had.
    pub generation: u64,
}

impl HeldPlan {
    /// A plan of an earlier life of this node, as old as it is by now; never fresh.
    pub(crate) fn kept(age: Duration, view: View, generation: u64, now: Moment) -> Self {
        Self { received: now, age, ttl: Duration::ZERO, spacing: SPACING, view, generation }
    }

    /// Time since the controller computed it.
    pub fn age(&self, now: Moment) -> Duration {
        self.age.saturating_add(now.since(self.received))
    }

    /// What the plan is worth now.
    pub fn state(&self, now: Moment, hold: Duration) -> PlanState {
        PlanState::of(Some(self.age(now)), self.ttl, hold)
    }
}

/// A child's side of its stream to one parent.
///
/// Local numbers are the child's own; the parent's numbers are valid within one incarnation of it.
#[derive(Debug)]
pub struct Link {
    attached: bool,
    greeting: bool,
    /// The parent has heard a full report of this stream: before that it may miss buckets that are idle now.
    introduced: bool,
    /// The last full report.
    said_in_full: u64,
    /// The last report had to leave something out.
    owing: bool,
    /// The parent gave numbers since then: the next report has room for more. Without any it would say the same names again.
    taught: bool,
    parent: Option<Incarnation>,
    heard: u64,
    said: u64,
    answered: u64,
    last_report: Moment,
    last_full: Moment,
    early: Early,
    interval: Duration,
    spacing: Duration,
    numbers: NumberMap<BucketNumber, BucketNumber>,
    locals: NumberMap<BucketNumber, BucketNumber>,
    /// By the parent's number: what it may not have heard yet.
    forgotten: NumberMap<BucketNumber, Farewell>,
    parent_forgets: bool,
    plan: Option<HeldPlan>,
    pause: Option<Pause>,
}

/// A bucket that was forgotten, until the parent is known to have heard of it.
#[derive(Clone, Copy, Debug)]
struct Farewell {
    life: u32,
    /// The first report that told of it; all that follow do.
    told_in: Option<u64>,
}

/// What is left of a time in which this node was suspended.
#[derive(Clone, Copy, Debug)]
struct Pause {
    lasted: Duration,
    /// The first report since then: a plan that accounts for it was made since then, too.
    ends_with: u64,
}

/// Early reports that may still be sent.
#[derive(Clone, Copy, Debug)]
struct Early {
    limited: bool,
    left: f64,
    at: Moment,
}

impl Default for Early {
    fn default() -> Self {
        Self { limited: false, left: EARLY_AT_ONCE, at: Moment::default() }
    }
}

impl Early {
    fn left(&self, now: Moment) -> f64 {
        (self.left + now.since(self.at).as_secs_f64()).min(EARLY_AT_ONCE)
    }

    fn allows(&self, now: Moment) -> bool {
        !self.limited || self.left(now) >= 1.0
    }

    fn take(&mut self, now: Moment) {
        (self.left, self.at) = (self.left(now) - 1.0, now);
    }
}

impl Default for Link {
    fn default() -> Self {
        Self {
            attached: false,
            greeting: false,
            introduced: false,
            said_in_full: 0,
            owing: false,
            taught: false,
            parent: None,
            heard: 0,
            said: 0,
            answered: 0,
            last_report: Moment::default(),
            last_full: Moment::default(),
            early: Early::default(),
            interval: INTERVAL,
            spacing: SPACING,
            numbers: NumberMap::default(),
            locals: NumberMap::default(),
            forgotten: NumberMap::default(),
            parent_forgets: false,
            plan: None,
            pause: None,
        }
    }
}

impl Link {
    /// The link of a node that decides requests: of those there are many.
    pub fn of_leaf() -> Self {
        Self { early: Early { limited: true, ..Early::default() }, ..Self::default() }
    }

    /// A stream opened: numbers of an earlier one are void, and a first full report is due. Whose stream it is the first plan
    /// tells: one that brings none may have been heard all the same, so that the parent before is not the last any more.
    pub fn attach(&mut self) {
        *self = Self {
            attached: true,
            greeting: true,
            said: self.said,
            plan: self.plan,
            early: self.early,
            ..Self::default()
        };
    }

    /// The node was suspended for so long: plans that came meanwhile waited unread, and are older than they say.
    pub fn resumed(&mut self, lasted: Duration) {
        self.pause = Some(Pause { lasted, ends_with: self.said + 1 });
    }

    /// The stream closed; the plan that came over it stays, and ages.
    pub fn detach(&mut self) {
        self.attached = false;
    }

    /// Whether a stream is open.
    pub fn is_attached(&self) -> bool {
        self.attached
    }

    /// Whether the next report is the first of this stream, which tells the parent what is in force here.
    pub fn is_greeting(&self) -> bool {
        self.greeting
    }

    /// Whether the parent knows all buckets of this child. The first report may get lost, and a bucket that is idle would be
    /// counted from its birth when it is heard of later.
    pub fn is_introduced(&self) -> bool {
        self.introduced
    }

    /// The last report that the plan in hand accounts for.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// The plan in hand.
    pub fn plan(&self) -> Option<&HeldPlan> {
        self.plan.as_ref()
    }

    /// Goes on from a plan that an earlier life of this node heard.
    pub(crate) fn resume(&mut self, plan: HeldPlan) {
        self.plan = Some(plan);
    }

    /// Whether a report is due. After a pause there is one, not one for each interval missed.
    pub fn due(&self, now: Moment) -> Due {
        if !self.attached {
            Due::No
        } else if self.greeting || now.since(self.last_full) >= self.interval {
            Due::Full
        } else if now.since(self.last_report) >= self.spacing {
            match (self.owing && self.taught, self.early.allows(now)) {
                (true, _) => Due::Full,
                (false, true) => Due::IfNews,
                (false, false) => Due::No,
            }
        } else {
            Due::No
        }
    }

    /// The life of the parent that was last heard.
    pub fn parent(&self) -> Option<Incarnation> {
        self.parent
    }

    /// The sequence number of the last report.
    pub fn said(&self) -> u64 {
        self.said
    }

    /// The last report left out on purpose what can be told at once.
    pub(crate) fn hurry(&mut self) {
        (self.owing, self.taught) = (true, true);
    }

    /// The sequence number for a report that goes out now; one that is not `complete` is followed by another soon.
    pub fn say(&mut self, now: Moment, full: bool, complete: bool) -> u64 {
        self.greeting = false;
        self.owing = !complete;
        self.taught = false;
        self.last_report = now;
        if full {
            self.last_full = now;
        } else if complete {
            self.early.take(now);
        }
        self.said += 1;
        if full {
            self.said_in_full = self.said;
        }
        self.said
    }

    /// Takes in what a plan says of the link itself. False for a plan that is older than one already heard, which
    /// must then be ignored.
    pub fn accept(&mut self, plan: &Plan, now: Moment) -> bool {
        if self.parent != Some(plan.incarnation) {
            self.parent = Some(plan.incarnation);
            self.numbers.clear();
            self.locals.clear();
            self.forgotten.clear();
        } else if plan.sequence <= self.heard {
            return false;
        }
        self.heard = plan.sequence;
        self.pause = self.pause.filter(|pause| plan.heard < pause.ends_with);
        let waited = self.pause.map_or(Duration::ZERO, |pause| pause.lasted);
        self.answered = plan.heard.min(self.said);
        let answered = self.answered;
        self.forgotten.retain(|_, farewell| farewell.told_in.is_none_or(|told_in| told_in > answered));
        self.parent_forgets = plan.forgets;
        self.introduced |= self.answered > 0 && self.answered == self.said_in_full;
        self.interval = plan.interval.clamp(Duration::from_millis(100), Duration::from_secs(60));
        self.spacing = plan.spacing.clamp(Duration::from_millis(10), self.interval);
        self.plan = Some(HeldPlan {
            received: now,
            age: plan.age.saturating_add(waited),
            ttl: plan.ttl,
            spacing: self.spacing,
            view: plan.view,
            generation: plan.generation,
        });
        true
    }

    /// The parent calls this bucket of ours by this number.
    pub fn learn(&mut self, local: BucketNumber, parents: BucketNumber) {
        self.taught |= self.numbers.insert(local, parents).is_none();
        self.locals.insert(parents, local);
    }

    /// Our number for a bucket that the parent speaks of.
    pub fn local(&self, parents: BucketNumber) -> Option<BucketNumber> {
        self.locals.get(&parents).copied()
    }

    /// Whether a bucket may be forgotten here: a parent that is attached to has to know its number, or a later plan could teach
    /// that number to what has come in its place.
    pub(crate) fn lets_go_of(&self, local: BucketNumber) -> bool {
        !self.attached || self.parent_forgets && self.introduced && self.numbers.contains_key(&local)
    }

    /// Whether the parent has given a bucket a number.
    pub(crate) fn is_numbered(&self, local: BucketNumber) -> bool {
        self.numbers.contains_key(&local)
    }

    /// A bucket was forgotten here, with this life of its counts.
    pub(crate) fn forget(&mut self, local: BucketNumber, life: u32) {
        let Some(parents) = self.numbers.remove(&local) else { return };
        self.locals.remove(&parents);
        if self.attached {
            self.forgotten.insert(parents, Farewell { life, told_in: None });
        }
    }

    /// Whether the parent may speak of this bucket only because it has not heard yet that it was forgotten.
    pub(crate) fn has_forgotten(&self, parents: BucketNumber) -> bool {
        self.forgotten.contains_key(&parents)
    }

    /// What the report of this number tells of forgotten buckets: the news, and what may have been lost.
    pub(crate) fn farewells(&mut self, sequence: u64) -> Vec<Forgotten> {
        let mut told = Vec::new();
        let waiting = self.forgotten.values().filter(|farewell| farewell.told_in.is_some()).count();
        let mut room = FORGOTTEN.saturating_sub(waiting);
        for (parents, farewell) in &mut self.forgotten {
            if farewell.told_in.is_none() && room > 0 {
                room -= 1;
                farewell.told_in = Some(sequence);
            }
            if farewell.told_in.is_some() {
                told.push(Forgotten { bucket: *parents, life: farewell.life });
            }
        }
        told
    }

    /// How to speak of a bucket to this parent.
    pub fn reference(&self, local: BucketNumber, key: &BucketKey) -> BucketRef {
        self.numbers
            .get(&local)
            .map_or_else(|| BucketRef::Named(key.clone()), |number| BucketRef::Number(*number))
    }
}
