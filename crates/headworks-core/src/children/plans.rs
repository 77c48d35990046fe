//! What children are told: plans made when there is room to send them, of what changed since the last one.

use std::collections::HashMap;
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

/// A child that heard a plan within this time needs no other for the sake of it. A little less than an interval, so that where
/// something is pushed each second, at whatever moment of it, nothing is sent besides; and no child waits for two.
const HEARTBEAT: Duration = Duration::from_millis(900);

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
    /// Rises whenever there is something that all children may have to hear.
    pub fn revision(&self) -> u64 {
        self.revision
    }

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
        let mut child = self.children.remove(&id)?;
        let plan = self.plan_of(&mut child, header, now);
        self.children.insert(id, child);
        Some(plan)
    }

    fn plan_of(&mut self, child: &mut Child, header: Header<'_>, now: Moment) -> Plan {
        let sections = self.sections(child, now);
        child.unnamed = !sections.complete;
        let untracked = tell_turned_away(&mut child.turned_away);
        child.told = self.revision;
        child.waits &= child.answered < child.heard();
        child.plans_sent += 1;
        child.last_plan = now;
        let knows_limits = child.limits == Some(header.limits.digest());
        child.limits = Some(header.limits.digest());
        Plan {
            incarnation: self.incarnation,
            sequence: child.plans_sent,
            heard: child.answered,
            age: header.age,
            ttl: header.ttl,
            interval: INTERVAL,
            spacing: spacing(self.children.len() + 1).max(header.spacing),
            view: header.view,
            digest: header.limits.digest(),
            generation: header.generation,
            limits: (!knows_limits).then(|| header.limits.clone()),
            names: sections.names,
            shared: sections.headrooms.shared,
            private: sections.headrooms.private,
            switch: header.switch,
            untracked,
            forgets: true,
        }
    }
}

/// Which buckets changed, in the order of their changes: a child that hears of them often hears of few.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<(u64, BucketNumber)>);

impl Changes {
    pub(super) fn note(&mut self, revision: u64, number: BucketNumber) {
        self.0.push((revision, number));
    }

    /// Forgets changes that later ones of the same bucket have overtaken, once they are most of all.
    pub(super) fn tidy(&mut self, buckets: &Registry<Bucket>) {
        if self.0.len() > 2 * buckets.len() + 64 {
            self.0.retain(|(revision, number)| is_latest(buckets, *revision, *number));
        }
    }

    /// Changes after this revision.
    fn since(&self, told: u64) -> &[(u64, BucketNumber)] {
        &self.0[self.0.partition_point(|(revision, _)| *revision <= told)..]
    }
}

fn is_latest(buckets: &Registry<Bucket>, revision: u64, number: BucketNumber) -> bool {
    buckets.get(number).is_some_and(|bucket| bucket.changed == revision)
}

/// Headrooms of one moment, for children that hold the same buckets and have heard the same.
#[derive(Debug, Default)]
pub(super) struct Alike {
    at: Moment,
    revision: u64,
    /// By what a child was told so far, and what it holds.
    headrooms: HashMap<(u64, (usize, u64)), Headrooms>,
}

/// More lists of headrooms are not kept: where all children differ, to look for their like is of no use.
const MOST_ALIKE: usize = 64;

#[derive(Clone, Debug, Default)]
struct Headrooms {
    shared: Arc<[PlanEntry]>,
    private: Arc<[PlanEntry]>,
}

/// What a plan says of buckets.
#[derive(Default)]
struct Sections {
    names: Vec<(BucketNumber, BucketKey)>,
    headrooms: Headrooms,
    /// Nothing had to be left for the next plan.
    complete: bool,
}

impl Children {
    /// What has changed since the last plan for this child; all that it holds, with names, if it has heard of none of it.
    fn sections(&mut self, child: &mut Child, now: Moment) -> Sections {
        if child.unnamed || child.plans_sent == 0 || child.told < self.whole_since {
            return self.all_sections(child);
        }
        if child.told == self.revision {
            return Sections { complete: true, ..Sections::default() };
        }
        if (self.alike.at, self.alike.revision) != (now, self.revision) {
            self.alike = Alike { at: now, revision: self.revision, ..Alike::default() };
        }
        let like = (child.told, child.held.mark());
        if let Some(known) = self.alike.headrooms.get(&like) {
            return Sections { headrooms: known.clone(), complete: true, ..Sections::default() };
        }
        let headrooms = self.changed_headrooms(child);
        if self.alike.headrooms.len() < MOST_ALIKE {
            self.alike.headrooms.insert(like, headrooms.clone());
        }
        Sections { headrooms, complete: true, ..Sections::default() }
    }

    /// By what changed, or by what the child holds, whichever is less.
    fn changed_headrooms(&self, child: &Child) -> Headrooms {
        let changes = self.changes.since(child.told);
        let (mut shared, mut private) = (Vec::new(), Vec::new());
        if changes.len() <= child.held.len() + self.whole.len() {
            for (revision, number) in changes {
                if !is_latest(&self.buckets, *revision, *number) {
                    continue;
                }
                if self.whole.contains(number) {
                    shared.extend(self.entry_of(*number));
                } else if child.held.contains(*number) {
                    private.extend(self.entry_of(*number));
                }
            }
        } else {
            let is_new = |number: &BucketNumber| {
                self.buckets.get(*number).is_some_and(|bucket| bucket.changed > child.told)
            };
            let entries = |numbers: &mut dyn Iterator<Item = BucketNumber>| -> Vec<PlanEntry> {
                numbers.filter(is_new).filter_map(|number| self.entry_of(number)).collect()
            };
            shared = entries(&mut self.whole.iter().copied());
            private = entries(&mut child.held.numbers().filter(|number| !self.whole.contains(number)));
        }
        Headrooms { shared: shared.into(), private: private.into() }
    }

    fn entry_of(&self, number: BucketNumber) -> Option<PlanEntry> {
        let bucket = self.buckets.get(number)?;
        Some(PlanEntry { bucket: number, headroom: bucket.headroom?, tokens: bucket.tokens })
    }

    fn all_sections(&self, child: &mut Child) -> Sections {
        let mut sections = Sections { complete: true, ..Sections::default() };
        let (mut shared, mut private) = (Vec::new(), Vec::new());
        let mut room = NameRoom::default();
        let others = child.held.numbers().filter(|number| !self.whole.contains(number));
        let all: Vec<BucketNumber> = self.whole.iter().copied().chain(others).collect();
        for number in all {
            let (Some(key), Some(bucket)) = (self.buckets.key(number), self.buckets.get(number)) else {
                continue;
            };
            let new_to_child = !child.names.contains(&number);
            if new_to_child {
                if !room.takes(key) {
                    sections.complete = false;
                    continue;
                }
                child.name(number);
                sections.names.push((number, child.as_it_says(key)));
            }
            if new_to_child || bucket.changed > child.told {
                let section = if self.whole.contains(&number) { &mut shared } else { &mut private };
                section.extend(self.entry_of(number));
            }
        }
        sections.headrooms = Headrooms { shared: shared.into(), private: private.into() };
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
