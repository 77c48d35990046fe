//! The aggregator as a state machine: sums the counts of its zone's agents, and passes plans on to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::Identity;
use crate::bucket::Counts;
use crate::children::{Attachment, ChildId, Children, Header, Received};
use crate::ladder::PlanState;
use crate::limits::LimitSet;
use crate::link::{Due, HeldPlan, Link, NameRoom};
use crate::message::{BucketNumber, BucketRef, Hello, Plan, Report, ReportEntry, Tier};
use crate::node::Node;
use crate::significance::{AT_A_SUM, is_news};
use crate::units::{Headroom, Moment};

/// Where a controller stands in the aggregator's configured order.
pub type ParentIndex = usize;

#[derive(Clone, Copy, Debug, Default)]
struct Said {
    counts: Counts,
    demand: f64,
}

/// One controller, as the aggregator knows it.
#[derive(Debug, Default)]
struct Parent {
    link: Link,
    limits: Option<Arc<LimitSet>>,
    headrooms: HashMap<BucketNumber, Headroom>,
    said: HashMap<BucketNumber, Said>,
    was_attached: bool,
}

/// The state of one aggregator.
#[derive(Debug)]
pub struct Zone {
    identity: Identity,
    born: Moment,
    hold: Duration,
    children: Children,
    parents: Vec<Parent>,
    obeyed: Option<ParentIndex>,
    limits: Arc<LimitSet>,
}

impl Zone {
    /// An aggregator that attaches to this many controllers.
    pub fn new(identity: Identity, controllers: usize, hold: Duration, now: Moment) -> Self {
        Self {
            children: Children::new(identity.node.clone(), identity.incarnation),
            identity,
            born: now,
            hold,
            parents: (0..controllers).map(|_| Parent::default()).collect(),
            obeyed: None,
            limits: Arc::default(),
        }
    }

    /// What to say to a controller first.
    pub fn hello(&self, parent: ParentIndex) -> Hello {
        let known = &self.parents[parent];
        let previous = known.was_attached.then(|| format!("controller-{parent}"));
        self.identity.hello(Tier::Aggregator, previous, known.limits.as_deref())
    }

    /// The stream to a controller is open.
    pub fn parent_attached(&mut self, parent: ParentIndex) {
        let known = &mut self.parents[parent];
        known.link.attach();
        known.said.clear();
        known.was_attached = true;
    }

    /// The stream to a controller is closed.
    pub fn parent_detached(&mut self, parent: ParentIndex) {
        self.parents[parent].link.detach();
    }

    /// Controllers attached now.
    pub fn attached_parents(&self) -> usize {
        self.parents.iter().filter(|parent| parent.link.is_attached()).count()
    }

    /// A bucket that is new here may have a headroom already: another agent held it before.
    fn answer(&mut self, number: BucketNumber) {
        let headroom = self.obeyed.and_then(|parent| self.parents[parent].headrooms.get(&number)).copied();
        if headroom.is_some() {
            self.children.set_headroom(number, headroom);
        }
    }

    /// A plan of a controller arrived: takes it in, and obeys it if this is the controller to obey.
    pub fn plan(&mut self, parent: ParentIndex, plan: Plan, now: Moment) {
        let known = &mut self.parents[parent];
        if !known.link.accept(&plan, now) {
            return;
        }
        if let Some(limits) = plan.limits {
            known.limits = Some(limits);
        }
        // Names first: the buckets of limits without `per` become known here before any agent speaks of them.
        for (number, key) in &plan.names {
            let local = if key.is_whole() {
                self.children.intern_whole(key)
            } else {
                self.children.buckets().number(key)
            };
            if let Some(local) = local {
                known.link.learn(local, *number);
            }
        }
        let mut changed = Vec::new();
        for entry in plan.shared.iter().chain(&plan.private) {
            if let Some(local) = known.link.local(entry.bucket) {
                known.headrooms.insert(local, entry.headroom);
                changed.push(local);
            }
        }
        if self.choose(now) == Some(parent) {
            self.adopt_limits_of(parent);
            for local in changed {
                self.answer(local);
            }
        }
    }

    /// Chooses the controller to obey, and turns to it if it is another one.
    fn choose(&mut self, now: Moment) -> Option<ParentIndex> {
        let best = (0..self.parents.len())
            .filter(|index| self.parents[*index].link.plan().is_some())
            .reduce(|best, other| if self.is_better(other, best, now) { other } else { best });
        let chosen = match (self.obeyed, best) {
            (Some(current), Some(best)) if self.is_better(best, current, now) => Some(best),
            (Some(current), _) => Some(current),
            (None, best) => best,
        };
        if chosen != self.obeyed {
            self.obeyed = chosen;
            self.turn_to_obeyed();
        }
        chosen
    }

    /// A fresh plan before a stale one, then the wider view. Demand must be wider by a tenth, so that two views of
    /// the same fleet do not take turns.
    fn is_better(&self, one: ParentIndex, other: ParentIndex, now: Moment) -> bool {
        let plan = |index: ParentIndex| self.parents[index].link.plan();
        let fresh = |index| plan(index).is_some_and(|plan| plan.state(now, self.hold) == PlanState::Fresh);
        let view = |index| plan(index).map(|plan| plan.view).unwrap_or_default();
        if fresh(one) != fresh(other) {
            return fresh(one);
        }
        let (a, b) = (view(one), view(other));
        a.aggregators > b.aggregators || a.aggregators == b.aggregators && a.demand > 1.1 * b.demand
    }

    fn turn_to_obeyed(&mut self) {
        let Some(parent) = self.obeyed else { return };
        self.adopt_limits_of(parent);
        let numbers: Vec<BucketNumber> = self.children.buckets().iter().map(|(number, ..)| number).collect();
        for number in numbers {
            self.answer(number);
        }
    }

    fn adopt_limits_of(&mut self, parent: ParentIndex) {
        let Some(limits) = self.parents[parent].limits.clone() else { return };
        if limits.digest() != self.limits.digest() {
            let old = std::mem::replace(&mut self.limits, limits);
            self.children.adopt(&old, &self.limits);
            let buckets = self.children.buckets();
            for parent in &mut self.parents {
                parent.headrooms.retain(|number, _| buckets.get(*number).is_some());
                parent.said.retain(|number, _| buckets.get(*number).is_some());
            }
        }
    }

    /// The plan that is obeyed.
    pub fn obeyed_plan(&self) -> Option<&HeldPlan> {
        self.obeyed.and_then(|parent| self.parents[parent].link.plan())
    }

    /// What the plan that is obeyed is worth.
    pub fn plan_state(&self, now: Moment) -> PlanState {
        self.obeyed_plan().map_or(PlanState::None, |plan| plan.state(now, self.hold))
    }

    /// The limits in force.
    pub fn limits(&self) -> &Arc<LimitSet> {
        &self.limits
    }

    /// The report for a controller, if one is due.
    pub fn report_for(&mut self, parent: ParentIndex, now: Moment) -> Option<Report> {
        match self.parents[parent].link.due(now) {
            Due::No => None,
            Due::Full => Some(self.full_report(parent, now)),
            Due::IfNews => self.early_report(parent, now),
        }
    }

    /// All that changed since the last full report. Also what an aggregator sends before it leaves.
    pub fn full_report(&mut self, parent: ParentIndex, now: Moment) -> Report {
        let greeting = self.parents[parent].link.is_greeting();
        self.build_report(parent, now, true, |said, counts, demand| {
            counts != said.counts || demand > 0.0 || greeting
        })
    }

    fn early_report(&mut self, parent: ParentIndex, now: Moment) -> Option<Report> {
        let said = &self.parents[parent].said;
        let any = self.children.buckets().iter().any(|(number, _, bucket)| {
            is_news(said.get(&number).map_or(0.0, |said| said.demand), bucket.demand, AT_A_SUM)
        });
        any.then(|| {
            self.build_report(parent, now, false, |said, _, demand| is_news(said.demand, demand, AT_A_SUM))
        })
    }

    fn build_report(
        &mut self,
        parent: ParentIndex,
        now: Moment,
        full: bool,
        wanted: impl Fn(Said, Counts, f64) -> bool,
    ) -> Report {
        let parent = &mut self.parents[parent];
        let greeting = parent.link.is_greeting();
        let mut entries = Vec::new();
        let (mut room, mut complete) = (NameRoom::default(), true);
        for (number, key, bucket) in self.children.buckets().iter() {
            let said = parent.said.entry(number).or_default();
            if !wanted(*said, bucket.counts, bucket.demand) {
                continue;
            }
            let reference = parent.link.reference(number, key);
            if matches!(reference, BucketRef::Named(_)) && !room.takes(key) {
                complete = false;
                continue;
            }
            *said = Said { counts: bucket.counts, demand: bucket.demand };
            entries.push(ReportEntry {
                bucket: reference,
                counts: bucket.counts,
                demand: Some(bucket.demand),
                in_force: bucket.headroom.or(bucket.in_force).filter(|_| greeting),
            });
        }
        // A report that had to leave something out must not say that it is idle.
        let full = full && complete;
        Report {
            sequence: parent.link.say(now, full, complete),
            elapsed: now.since(self.born),
            full,
            agents: self.children.agents(),
            entries,
        }
    }
}

impl Node for Zone {
    fn children(&self) -> &Children {
        &self.children
    }

    fn attach(&mut self, hello: Hello, now: Moment) -> Attachment {
        self.children.attach(hello, now)
    }

    fn report(&mut self, child: ChildId, report: &Report, now: Moment) -> Received {
        let received = self.children.report(child, report, now);
        for number in &received.touched {
            self.answer(*number);
        }
        received
    }

    fn detach(&mut self, child: ChildId, now: Moment) {
        self.children.detach(child, now);
    }

    fn tick(&mut self, now: Moment) {
        self.children.end_silent(now);
        self.choose(now);
    }

    fn has_news_for(&self, child: ChildId) -> bool {
        self.obeyed_plan().is_some() && self.children.has_news_for(child)
    }

    fn plan_for(&mut self, child: ChildId, now: Moment) -> Option<Plan> {
        let plan = *self.obeyed_plan()?;
        let header = Header {
            age: plan.age(now),
            ttl: plan.ttl,
            view: plan.view,
            generation: plan.generation,
            spacing: plan.spacing,
            limits: &self.limits,
        };
        self.children.plan_for(child, header)
    }
}
