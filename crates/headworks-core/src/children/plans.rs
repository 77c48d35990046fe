//! What children are told: plans made when there is room to send them, of what changed since the last one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Bucket, Child, ChildId, Children};
use crate::bucket::BucketKey;
use crate::limits::LimitSet;
use crate::link::{INTERVAL, NameRoom};
use crate::message::{BucketNumber, Plan, PlanEntry, View};
use crate::registry::Registry;
use crate::switch::Switch;
use crate::units::Moment;

/// A child that heard a plan within this time needs no other for the sake of it. With half an interval a tick right
/// after a push is left out, and no child waits for more than one and a half.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// What every plan of a moment has in common.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Time since the controller computed.
    pub age: Duration,
    /// Below this age the plan is fresh.
    pub ttl: Duration,
    /// What the controller heard.
    pub view: View,
    /// How many sets of limits the controller has had.
    pub generation: u64,
    /// Least time between two reports of a child, however few the children are.
    pub spacing: Duration,
    /// The limits in force.
    pub limits: &'a Arc<LimitSet>,
    /// The switch of the fleet.
    pub switch: Switch,
}

impl Children {
    /// Whether a child has something to hear besides the heartbeat.
    pub fn has_news_for(&self, id: ChildId) -> bool {
        self.children.get(&id).is_some_and(|child| {
            let answer = child.waits && child.answered >= child.heard();
            answer || child.told < self.revision || child.unnamed || !child.turned_away.is_empty()
        })
    }

    /// Whether a child has heard nothing for about an interval.
    pub fn owes_heartbeat(&self, id: ChildId, now: Moment) -> bool {
        self.children.get(&id).is_some_and(|child| now.since(child.last_plan) >= HEARTBEAT)
    }

    /// The next plan for a child: `header` with what has changed since the last one sent to it; everything the
    /// first time. Nothing queues: a slow child gets the newest state when it is ready.
    pub fn plan_for(&mut self, id: ChildId, header: Header<'_>, now: Moment) -> Option<Plan> {
        let child = self.children.get_mut(&id)?;
        let sections = Sections::of(child, &self.buckets, &self.whole, self.revision);
        child.unnamed &= !sections.complete;
        let untracked = tell_turned_away(&mut child.turned_away);
        child.told = self.revision;
        child.waits &= child.answered < child.heard();
        child.plans_sent += 1;
        child.last_plan = now;
        let knows_limits = child.limits == Some(header.limits.digest());
        child.limits = Some(header.limits.digest());
        Some(Plan {
            incarnation: self.incarnation,
            sequence: child.plans_sent,
            heard: child.answered,
            age: header.age,
            ttl: header.ttl,
            interval: INTERVAL,
            spacing: spacing(self.children.len()).max(header.spacing),
            view: header.view,
            digest: header.limits.digest(),
            generation: header.generation,
            limits: (!knows_limits).then(|| header.limits.clone()),
            names: sections.names,
            shared: sections.shared,
            private: sections.private,
            switch: header.switch,
            untracked,
            forgets: true,
        })
    }
}

/// What a plan says of buckets.
#[derive(Default)]
struct Sections {
    names: Vec<(BucketNumber, BucketKey)>,
    shared: Vec<PlanEntry>,
    private: Vec<PlanEntry>,
    /// Nothing had to be left for the next plan.
    complete: bool,
}

impl Sections {
    /// What has changed since the last plan for this child; all that it holds, with names, if it has heard of none of it.
    fn of(
        child: &mut Child,
        buckets: &Registry<Bucket>,
        whole: &BTreeSet<BucketNumber>,
        revision: u64,
    ) -> Self {
        let mut sections = Self { complete: true, ..Self::default() };
        let (told, news) = (child.told, child.told < revision || child.unnamed);
        let mut room = NameRoom::default();
        let others = child.held.keys().filter(|number| !whole.contains(number)).copied();
        let all: Vec<BucketNumber> =
            if news { whole.iter().copied().chain(others).collect() } else { Vec::new() };
        for number in all {
            let (Some(key), Some(bucket)) = (buckets.key(number), buckets.get(number)) else { continue };
            let new_to_child = !child.names.contains(&number);
            if new_to_child {
                if !room.takes(key) {
                    sections.complete = false;
                    continue;
                }
                child.names.insert(number);
                sections.names.push((number, child.as_it_says(key)));
            }
            if let Some(headroom) = bucket.headroom
                && (new_to_child || bucket.changed > told)
            {
                let section =
                    if whole.contains(&number) { &mut sections.shared } else { &mut sections.private };
                section.push(PlanEntry { bucket: number, headroom, tokens: bucket.tokens });
            }
        }
        sections
    }
}

/// As many as have room in one message.
fn tell_turned_away(waiting: &mut Vec<BucketKey>) -> Vec<BucketKey> {
    let mut room = NameRoom::default();
    let fit = waiting.iter().take_while(|key| room.takes(key)).count();
    waiting.drain(..fit).collect()
}

/// The spacing that keeps early reports of a surge below 20 000 a second at one parent.
fn spacing(children: usize) -> Duration {
    Duration::from_micros(50).saturating_mul(u32::try_from(children).unwrap_or(u32::MAX))
}
