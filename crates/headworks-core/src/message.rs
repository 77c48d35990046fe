//! What nodes say to each other. The same messages travel at every hop; the wire crate gives them bytes.

use std::sync::Arc;
use std::time::Duration;

use crate::bucket::{BucketKey, Counts};
use crate::limits::{Digest, LimitSet};
use crate::switch::Switch;
use crate::units::Headroom;

/// A number that a parent gave to a bucket; valid within one incarnation of that parent, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketNumber(pub u32);

/// One life of a node: drawn at random when its process starts, so that a restart is never mistaken for a
/// counter that fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation(pub u64);

/// What kind of node this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// Decides requests.
    Agent,
    /// Sums a zone.
    Aggregator,
    /// Computes headrooms.
    Controller,
}

impl Tier {
    /// The tier as metrics, logs and flags write it.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Agent => "agent",
            Tier::Aggregator => "aggregator",
            Tier::Controller => "controller",
        }
    }
}

/// The first message of a child.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// Names the node for operators; unique among the live children of a parent.
    pub node: String,
    /// This life of the node.
    pub incarnation: Incarnation,
    /// What kind of node it is.
    pub tier: Tier,
    /// Where it stands.
    pub zone: String,
    /// Where its zone stands; may be empty.
    pub region: String,
    /// The release it runs.
    pub version: String,
    /// The parent it leaves, if it moves: its demand there moves with it.
    pub previous_parent: Option<String>,
    /// That parent's life: if it is the one that is greeted, it knows what it has heard already.
    pub previous_incarnation: Option<Incarnation>,
    /// The limits that it holds already, and need not be sent.
    pub limits: Option<Digest>,
    /// The switch as it knows it; only aggregators are believed.
    pub switch: Switch,
}

/// What a child counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Rises by one with each report of an incarnation.
    pub sequence: u64,
    /// The child's own time since its incarnation began: the parent divides by differences of this.
    pub elapsed: Duration,
    /// Whether buckets that are left out are idle; early reports are partial.
    pub full: bool,
    /// Agents counted here: 1 for an agent, the sum below an aggregator.
    pub agents: u32,
    /// The buckets that were counted.
    pub entries: Vec<ReportEntry>,
    /// Buckets that the child holds no longer, told until a plan accounts for it. Taken in before the entries.
    pub forgotten: Vec<Forgotten>,
    /// The switch as an aggregator knows it, while its parent says an earlier state.
    pub switch: Option<Switch>,
}

/// A bucket that a child has forgotten, since it was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The parent's number.
    pub bucket: BucketNumber,
    /// Which life of the child's counts is over; a later one is not.
    pub life: u32,
}

/// One bucket in a report.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportEntry {
    /// Which bucket; by name until the parent has given it a number.
    pub bucket: BucketRef,
    /// Counted since the child's incarnation began.
    pub counts: Counts,
    /// Offered rate in units a second, from a child that sums others and so knows better than the difference of
    /// its sums, which depends on whose reports came in between. From an agent only with a name: its parent cannot
    /// measure what it hears of for the first time.
    pub demand: Option<f64>,
    /// What makes this bucket news: an agent sees when demand moved more finely than its parent can.
    pub news: Option<News>,
    /// The headroom that the child holds, told once on attaching: a restarted controller learns from it what was
    /// in force.
    pub in_force: Option<Headroom>,
    /// The tokens of a budget as the child knows them, told with `in_force`.
    pub tokens: Option<f64>,
    /// A child that forgot this bucket and has it again counts from zero. This rises then, and is 0 the first time.
    pub life: u32,
}

/// The last stretch of time in which demand was not what it had been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// Units offered in it.
    pub units: u64,
    /// Its length, up to the report.
    pub window: Duration,
    /// So many units are at stake that chance matters little: worth believing from one child alone.
    pub solid: bool,
}

/// A bucket, by name or by the number that the parent gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BucketRef {
    /// By its identity.
    Named(BucketKey),
    /// By its parent's number.
    Number(BucketNumber),
}

/// What a parent wants its child to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// This life of the parent; numbers of another life are void.
    pub incarnation: Incarnation,
    /// Rises by one with each plan to this child.
    pub sequence: u64,
    /// The last report of this child that the headrooms account for, here and further up: a child that told of a
    /// surge learns from it that its new demand is part of the sum.
    pub heard: u64,
    /// Time since the controller computed what this plan carries, so that waiting does not add up tier by tier.
    pub age: Duration,
    /// Below this age the plan is fresh.
    pub ttl: Duration,
    /// Time between a child's full reports.
    pub interval: Duration,
    /// Least time between two reports of a child.
    pub spacing: Duration,
    /// What the controller heard when it computed.
    pub view: View,
    /// The limits that the entries are for.
    pub digest: Digest,
    /// A number for humans: how many sets of limits this controller has had.
    pub generation: u64,
    /// The limits themselves, if the child does not hold them yet.
    pub limits: Option<Arc<LimitSet>>,
    /// Numbers given to buckets that the child named, or that all children hear of.
    pub names: Vec<(BucketNumber, BucketKey)>,
    /// Headrooms of buckets that all children hear of: limits without `per`.
    pub shared: Arc<[PlanEntry]>,
    /// Headrooms of buckets that this child holds. Children that hold the same buckets have the same list: whoever encodes it
    /// need not do so for each of them.
    pub private: Arc<[PlanEntry]>,
    /// The switch of the fleet.
    pub switch: Switch,
    /// Buckets that the child named and that are not tracked, since their limit has its `max_buckets` already: what they count
    /// belongs to the one bucket that all such values share.
    pub untracked: Vec<BucketKey>,
    /// Whether the parent can be told of forgotten buckets. One of an earlier release would take what is counted anew for a
    /// count that fell.
    pub forgets: bool,
}

/// How much of the fleet a controller heard; of two controllers, a child obeys the one that hears more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct View {
    /// Aggregators attached to the controller.
    pub aggregators: u32,
    /// Agents below them.
    pub agents: u32,
    /// Offered rate over all buckets, in units a second.
    pub demand: f64,
}

/// One bucket in a plan. Absolute: the wanted value, never a change to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanEntry {
    /// Which bucket.
    pub bucket: BucketNumber,
    /// Its headroom.
    pub headroom: Headroom,
    /// The tokens that a budget has left, in cost units; below zero when it is in debt. `None` for limits per second.
    pub tokens: Option<f64>,
}
