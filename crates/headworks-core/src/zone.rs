//! The aggregator as a state machine: sums the counts of its zone's agents, and passes plans on to them.

mod choice;
mod idle;
mod parent;

use std::sync::Arc;
use std::time::Duration;

use crate::agent::Identity;
use crate::awake::Awake;
use crate::bucket::MOST_RATE;
use crate::children::{Attachment, ChildId, Children, Header, Received};
use crate::guard;
use crate::ladder::PlanState;
use crate::limits::{Limit, LimitSet, Scope};
use crate::link::{Due, HeldPlan, NameRoom};
use crate::message::{BucketNumber, BucketRef, Hello, Plan, Report, ReportEntry, Tier};
use crate::node::Node;
use crate::noise::Dispersion;
use crate::numbers::NumberMap;
use crate::significance::{AT_A_SUM, is_news, least_units};
use crate::switch::{Posted, Switch};
use crate::units::{Headroom, Moment};

use choice::{Candidate, Choice};
use parent::{Parent, Said, Wanted};

pub use choice::Disagreement;

/// Where a controller stands in the aggregator's configured order.
pub type ParentIndex = usize;

/// What the sum of a bucket was of late.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    last: f64,
    /// By the last tick at which the plan was fresh: the zone's share is this, times the headroom of that plan.
    known_above: f64,
    dispersion: Dispersion,
}

/// The state of one aggregator.
#[derive(Debug)]
pub struct Zone {
    identity: Identity,
    born: Moment,
    hold: Duration,
    children: Children,
    parents: Vec<Parent>,
    choice: Choice,
    limits: Arc<LimitSet>,
    past: NumberMap<BucketNumber, Past>,
    /// Children whose reports are answered when the controller has heard this report of ours.
    unanswered: NumberMap<ChildId, Unanswered>,
    awake: Awake,
    switch: Posted,
}

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    childs: u64,
    ours: u64,
}

impl Zone {
    /// An aggregator that attaches to this many controllers.
    pub fn new(identity: Identity, controllers: usize, hold: Duration, now: Moment) -> Self {
        Self {
            children: Children::new(identity.node.clone(), identity.incarnation)
                .standing_in(&identity.region, &identity.zone),
            identity,
            born: now,
            hold,
            parents: (0..controllers).map(|_| Parent::default()).collect(),
            choice: Choice::default(),
            limits: Arc::default(),
            past: NumberMap::default(),
            unanswered: NumberMap::default(),
            awake: Awake::since(now),
            switch: Posted::default(),
        }
    }

    /// What to say to a controller first.
    pub fn hello(&self, parent: ParentIndex) -> Hello {
        let known = &self.parents[parent];
        // Whichever controller it was: one has been told what was counted so far.
        let reported = self.parents.iter().any(|parent| parent.was_attached);
        let previous = reported.then(|| format!("controller-{parent}"));
        let limits = known.limits.as_deref();
        let hello = self.identity.hello(Tier::Aggregator, previous, known.link.parent(), limits);
        Hello { switch: self.switch(), ..hello }
    }

    /// The stream to a controller is open.
    pub fn parent_attached(&mut self, parent: ParentIndex) {
        let known = &mut self.parents[parent];
        known.link.attach();
        known.said.clear();
        known.was_attached = true;
        known.switch.greeted(self.switch.switch());
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
    fn pass_on(&mut self, number: BucketNumber, now: Moment) {
        let Some(wanted) = self.wanted(number) else { return };
        let buckets = self.children.buckets();
        let (Some(key), Some(bucket)) = (buckets.key(number), buckets.get(number)) else { return };
        let limit = self.limits.of_bucket(key).map(|limit| &**limit);
        let tokens = wanted.tokens(bucket.counts, limit, now);
        let headroom = match limit.filter(|_| self.plan_state(now) != PlanState::Fresh) {
            Some(limit) if limit.scope == Scope::Zone => {
                guard::headroom_of_own(limit, wanted.headroom, wanted.demand, bucket.demand)
            }
            Some(limit) => self.headroom_alone(limit, number, wanted.headroom, bucket.demand),
            None => wanted.headroom,
        };
        self.children.set_headroom(number, Some(headroom), tokens);
    }

    /// What a zone that hears of no controller tells its agents: the last headroom, as long as they keep to the guard of the
    /// zone's share. Load that moves between them loses nothing by it; load that comes from other zones, or is new, does.
    fn headroom_alone(&self, limit: &Limit, number: BucketNumber, last: Headroom, demand: f64) -> Headroom {
        let known = self.past.get(&number).map_or(0.0, |past| past.known_above);
        let everywhere = self.obeyed_plan().map_or(0, |plan| plan.view.agents).max(1);
        let part = f64::from(self.children.agents()) / f64::from(everywhere);
        guard::headroom_alone(limit, last, known, demand, part.min(1.0))
    }

    /// No controller is heard, so the zone goes on for itself; and nobody is left who has to hear of its reports first.
    fn compute_alone(&mut self, now: Moment) {
        self.pass_on_all(now);
        for (child, unanswered) in std::mem::take(&mut self.unanswered) {
            self.children.answer(child, unanswered.childs);
        }
    }

    fn pass_on_all(&mut self, now: Moment) {
        self.children.buckets().numbers().into_iter().for_each(|number| self.pass_on(number, now));
    }

    /// A controller that is greeted hears what is left of budgets by now.
    fn refresh_tokens(&mut self, now: Moment) {
        let budgets = self.children.buckets().iter().filter(|(.., bucket)| bucket.tokens.is_some());
        let numbers: Vec<BucketNumber> = budgets.map(|(number, ..)| number).collect();
        numbers.into_iter().for_each(|number| self.pass_on(number, now));
    }

    fn wake(&mut self, now: Moment) {
        if let Some(lasted) = self.awake.wake(now) {
            self.children.excuse_silence(lasted, now);
            self.parents.iter_mut().for_each(|parent| parent.link.resumed(lasted));
        }
    }

    fn wanted(&self, number: BucketNumber) -> Option<Wanted> {
        self.obeyed().and_then(|parent| self.parents[parent].wanted.get(&number)).copied()
    }

    /// A report is answered when all that it changes is known further up: now, if it changes nothing there.
    fn answer_when_heard(&mut self, child: ChildId, report: &Report, touched: &[BucketNumber], now: Moment) {
        let Some(parent) = self.obeyed().map(|parent| &self.parents[parent]) else { return };
        let is_heard = self.plan_state(now) == PlanState::Fresh;
        let news = is_heard && touched.iter().any(|number| self.has_news(parent, *number));
        let before = self.unanswered.get(&child).map(|unanswered| unanswered.ours);
        let ours = if news { Some(parent.link.said() + 1) } else { before };
        match ours {
            Some(ours) => {
                self.unanswered.insert(child, Unanswered { childs: report.sequence, ours });
            }
            None => self.children.answer(child, report.sequence),
        }
    }

    fn answer_those_heard(&mut self, parent: ParentIndex) {
        let (children, heard) = (&mut self.children, self.parents[parent].link.answered());
        self.unanswered.retain(|child, unanswered| {
            let answered = unanswered.ours <= heard;
            if answered {
                children.answer(*child, unanswered.childs);
            }
            !answered
        });
    }

    fn has_news(&self, parent: &Parent, number: BucketNumber) -> bool {
        let demand = self.children.buckets().get(number).map_or(0.0, |bucket| bucket.demand);
        let said = parent.said.get(&number).map_or(0.0, |said| said.demand);
        if (demand - said).abs() < 1.0 {
            return false;
        }
        let past = self.past.get(&number).copied().unwrap_or_default();
        let moves = |least| is_news(said, demand, AT_A_SUM, past.dispersion.value(), least);
        // Most changes are small: nobody has to know what their limit is.
        moves(0.0) && {
            let key = self.children.buckets().key(number);
            let limit = key.and_then(|key| self.limits.of_bucket(key));
            moves(least_units(limit.map(|limit| &**limit)))
        }
    }

    /// Tells every controller's side which buckets changed.
    fn spread_stirred(&mut self) {
        let stirred = self.children.take_stirred();
        for parent in &mut self.parents {
            parent.unlooked.extend(&stirred);
            parent.untold.extend(&stirred);
        }
    }

    fn remember_demand(&mut self, now: Moment) {
        let is_known_above = self.plan_state(now) == PlanState::Fresh;
        let lively = self.children.take_lively();
        for number in &lively {
            let Some(bucket) = self.children.buckets().get(*number) else { continue };
            let past = self.past.entry(*number).or_default();
            if bucket.demand > 0.0 {
                past.dispersion = past.dispersion.with(past.last, bucket.demand);
            }
            past.last = bucket.demand;
            if is_known_above {
                past.known_above = bucket.demand;
            }
        }
        // One that was known above when it had demand has to be looked at again when the plan is fresh.
        self.children.keep_lively(lively, |_, _| !is_known_above);
    }

    /// A plan of a controller arrived: takes it in, and obeys it if this is the controller to obey.
    pub fn plan(&mut self, parent: ParentIndex, mut plan: Plan, now: Moment) {
        self.wake(now);
        let was_fresh = self.plan_state(now) == PlanState::Fresh;
        let known = &mut self.parents[parent];
        if !known.link.accept(&plan, now) {
            return;
        }
        known.switch.hear(plan.switch);
        self.switch.hear_parent(plan.switch);
        let untracked = std::mem::take(&mut plan.untracked);
        let changed = known.take(plan, &mut self.children, now);
        if self.choose(now) == Some(parent) {
            self.turn_away(untracked);
            self.adopt_limits_of(parent);
            if was_fresh {
                changed.into_iter().for_each(|local| self.pass_on(local, now));
            } else {
                self.pass_on_all(now);
            }
            self.answer_those_heard(parent);
        }
    }

    /// Chooses the controller to obey, and turns to it if it is another one.
    fn choose(&mut self, now: Moment) -> Option<ParentIndex> {
        let views: Vec<Candidate> =
            self.parents.iter().map(|parent| parent.candidate(now, self.hold)).collect();
        let before = self.choice.obeyed();
        let chosen = self.choice.next(&views, now);
        if chosen != before {
            self.turn_to_obeyed(now);
        }
        chosen
    }

    /// In what the controllers that are heard differ.
    pub fn disagreement(&self, now: Moment) -> Disagreement {
        let heard = || self.parents.iter().filter(|parent| parent.candidate(now, self.hold).is_heard());
        let views = heard().filter_map(|parent| Some(parent.link.plan()?.view));
        let digests = heard().map(|parent| parent.limits.as_deref().map(LimitSet::digest));
        Disagreement { views: choice::differ(views), limits: choice::are_several(digests) }
    }

    /// The controllers, in their configured order: what each says, and whether it is attached.
    pub fn controllers(&self) -> impl Iterator<Item = (bool, Option<&HeldPlan>)> {
        self.parents.iter().map(|parent| (parent.link.is_attached(), parent.link.plan()))
    }

    /// The place of the controller that is obeyed.
    pub fn obeyed(&self) -> Option<ParentIndex> {
        self.choice.obeyed()
    }

    fn turn_to_obeyed(&mut self, now: Moment) {
        let Some(parent) = self.obeyed() else { return };
        // Each controller numbers our reports by itself.
        let next = self.parents[parent].link.said() + 1;
        self.unanswered.values_mut().for_each(|unanswered| unanswered.ours = next);
        self.adopt_limits_of(parent);
        self.pass_on_all(now);
    }

    fn adopt_limits_of(&mut self, parent: ParentIndex) {
        let Some(limits) = self.parents[parent].limits.clone() else { return };
        if limits.digest() != self.limits.digest() {
            let old = std::mem::replace(&mut self.limits, limits);
            self.children.adopt(&old, &self.limits);
            let buckets = self.children.buckets();
            for parent in &mut self.parents {
                parent.wanted.retain(|number, _| buckets.get(*number).is_some());
                parent.said.retain(|number, _| buckets.get(*number).is_some());
                parent.unlooked.retain(|number| buckets.get(*number).is_some());
                parent.untold.retain(|number| buckets.get(*number).is_some());
            }
            self.past.retain(|number, _| buckets.get(*number).is_some());
        }
    }

    /// The plan that is obeyed.
    pub fn obeyed_plan(&self) -> Option<&HeldPlan> {
        self.obeyed().and_then(|parent| self.parents[parent].link.plan())
    }

    /// What the plan that is obeyed is worth.
    pub fn plan_state(&self, now: Moment) -> PlanState {
        self.obeyed_plan().map_or(PlanState::None, |plan| plan.state(now, self.hold))
    }

    /// The switch of the fleet.
    pub fn switch(&self) -> Switch {
        self.switch.switch()
    }

    /// Children that told of news and have not been answered yet.
    pub fn unanswered(&self) -> usize {
        self.unanswered.len()
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
            Due::IfNews => {
                self.spread_stirred();
                self.early_report(parent, now)
            }
        }
    }

    /// All that changed since the last full report. Also what an aggregator sends before it leaves.
    pub fn full_report(&mut self, parent: ParentIndex, now: Moment) -> Report {
        if self.parents[parent].link.is_greeting() {
            self.refresh_tokens(now);
        }
        self.spread_stirred();
        let due = self.due_in_full(parent);
        self.build_report(parent, due, now, true)
    }

    fn early_report(&mut self, parent: ParentIndex, now: Moment) -> Option<Report> {
        let looked_at = std::mem::take(&mut self.parents[parent].unlooked);
        let known = &self.parents[parent];
        let due: Vec<BucketNumber> =
            looked_at.into_iter().filter(|number| self.has_news(known, *number)).collect();
        let any = !due.is_empty() || known.switch.is_news(self.switch());
        any.then(|| self.build_report(parent, due, now, false))
    }

    /// What a full report has to tell: what changed since the last one, and what still has demand.
    fn due_in_full(&mut self, parent: ParentIndex) -> Vec<BucketNumber> {
        let known = &mut self.parents[parent];
        known.unlooked.clear();
        let untold = std::mem::take(&mut known.untold);
        let known = &self.parents[parent];
        let candidates: Vec<BucketNumber> = if known.link.is_introduced() {
            let others = self.children.lively().map(|(number, _)| number);
            untold.iter().copied().chain(others.filter(|number| !untold.contains(number))).collect()
        } else {
            self.children.buckets().numbers()
        };
        let mut due: Vec<BucketNumber> =
            candidates.into_iter().filter(|number| self.is_due(known, *number)).collect();
        // In the order of their numbers, which the parent can follow from one to the next.
        due.sort_unstable();
        due
    }

    fn is_due(&self, parent: &Parent, number: BucketNumber) -> bool {
        // One that counted nothing may ask for a place all the same.
        let Some(said) = parent.said.get(&number) else { return true };
        let bucket = self.children.buckets().get(number);
        bucket.is_some_and(|bucket| bucket.counts != said.counts || bucket.demand > 0.0)
            || !parent.link.is_introduced()
    }

    fn build_report(
        &mut self,
        parent: ParentIndex,
        due: Vec<BucketNumber>,
        now: Moment,
        full: bool,
    ) -> Report {
        let parent = &mut self.parents[parent];
        let greeting = parent.link.is_greeting();
        let lives = self.children.buckets().lives();
        let mut entries = Vec::new();
        let (mut room, mut complete) = (NameRoom::default(), true);
        for number in due {
            let buckets = self.children.buckets();
            let (Some(key), Some(bucket)) = (buckets.key(number), buckets.get(number)) else { continue };
            let reference = parent.link.reference(number, key);
            if matches!(reference, BucketRef::Named(_)) && !room.takes(key) {
                complete = false;
                parent.untold.insert(number);
                continue;
            }
            parent.said.insert(number, Said { counts: bucket.counts, demand: bucket.demand });
            entries.push(ReportEntry {
                bucket: reference,
                counts: bucket.counts.made_sound(),
                demand: Some(bucket.demand.min(MOST_RATE)),
                news: None,
                in_force: bucket.headroom.or(bucket.in_force).filter(|_| greeting),
                tokens: bucket.tokens.or(bucket.tokens_told).filter(|_| greeting),
                life: lives.of(number),
            });
        }
        // A report that had to leave something out must not say that it is idle.
        let full = full && complete;
        let sequence = parent.link.say(now, full, complete);
        Report {
            sequence,
            elapsed: now.since(self.born),
            full,
            agents: self.children.agents(),
            entries,
            forgotten: parent.link.farewells(sequence),
            switch: parent.switch.tell(self.switch.switch()),
        }
    }
}

impl Node for Zone {
    fn children(&self) -> &Children {
        &self.children
    }

    fn attach(&mut self, hello: Hello, now: Moment) -> Attachment {
        self.switch.hear_child(hello.tier, hello.switch);
        self.children.attach(hello, now)
    }

    fn report(&mut self, child: ChildId, report: &Report, now: Moment) -> Received {
        if let (Some(told), Some(known)) = (report.switch, self.children.get(child)) {
            self.switch.hear_child(known.hello.tier, told);
        }
        let received = self.children.report(child, report, now, |_| true);
        // What a fresh plan wants of a bucket was passed on when the plan came; only budgets are spent in between.
        let is_fresh = self.plan_state(now) == PlanState::Fresh;
        for number in &received.touched {
            let bucket = self.children.buckets().get(*number);
            let is_told = bucket.is_some_and(|bucket| bucket.headroom.is_some() && bucket.tokens.is_none());
            if !(is_fresh && is_told) {
                self.pass_on(*number, now);
            }
        }
        self.answer_when_heard(child, report, &received.touched, now);
        received
    }

    fn detach(&mut self, child: ChildId, now: Moment) {
        self.children.detach(child, now);
        self.unanswered.remove(&child);
        self.switch.forget(child);
    }

    fn tick(&mut self, now: Moment) {
        self.wake(now);
        self.children.end_silent(now);
        self.remember_demand(now);
        self.choose(now);
        if self.plan_state(now) != PlanState::Fresh {
            self.compute_alone(now);
        }
        self.forget_idle(now);
    }

    fn has_news_for(&self, child: ChildId) -> bool {
        self.obeyed_plan().is_some() && (self.children.has_news_for(child) || self.switch.is_news_for(child))
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
            switch: self.switch.tell(child),
        };
        self.children.plan_for(child, header, now)
    }
}
