//! What parents have counted, against what was really counted below them.
//!
//! **The truth** is what the hosts' own limiters count; it is known here of every host, dead or alive. How much of it a
//! parent can know is bounded by what reached it, and this is what its count is held against:
//!
//! - Of a child's life that no parent had heard before: all that its reports told, from its birth.
//! - Of one that comes from another parent: what it counted since its first report that arrived. What came before belongs
//!   to the other one.
//! - Of one that comes back, as long as the parent lives: what came in between, too.
//! - A life that ends has told what its last report told that arrived. What it counted after that, nobody can know; nor what
//!   an aggregator had heard when it died, and not passed on.
//!
//! A parent's count may never be above this (`over`), and hardly below it (`short`). It is settled for every life of every parent: when it is killed, and at the end. What reached
//! nobody shows as `unheard`: all that hosts counted since the controller started that has lived longest, less its count.

use std::collections::HashMap;

use headworks_core::bucket::BucketKey;
use headworks_core::children::Children;
use headworks_core::message::{BucketRef, Incarnation, Report};
use headworks_core::node::Node;

use super::World;
use crate::log::Settled;
use crate::script::Script;

/// A bucket, and the life of its counts: those of one that was forgotten begin at zero again.
type Counting = (BucketKey, u32);

/// Hosts speak of buckets without a scope, and one child stands in one place.
fn unscoped(key: &BucketKey) -> BucketKey {
    BucketKey { scope: Vec::new(), ..key.clone() }
}

/// What a child's life has told one parent's life.
#[derive(Debug, Default)]
struct Story {
    life: Option<Incarnation>,
    parent: Option<Incarnation>,
    /// What its reports told that arrived.
    told: HashMap<Counting, u64>,
    /// Of a life that other parents have heard: what it had counted when it attached.
    before: Option<HashMap<Counting, u64>>,
    /// A full report has arrived.
    greeted: bool,
}

/// The books of a run.
#[derive(Debug)]
pub(super) struct Ledger {
    limits: HashMap<String, usize>,
    /// By host.
    hosts: Vec<Story>,
    /// By aggregator, by controller.
    sites: Vec<Vec<Story>>,
    /// By life of a parent, by limit: what reached it.
    reached: HashMap<Incarnation, Vec<u64>>,
    settled: Vec<Settled>,
}

impl Ledger {
    pub(super) fn new(script: &Script) -> Self {
        let names = script.limits.limits().iter().map(|limit| limit.name.to_string());
        let limits: HashMap<String, usize> = names.zip(0..).collect();
        let sites = script.zones.len() * script.aggregators;
        Self {
            settled: vec![Settled::default(); limits.len()],
            limits,
            hosts: (0..script.zones.iter().sum()).map(|_| Story::default()).collect(),
            sites: (0..sites).map(|_| (0..script.controllers).map(|_| Story::default()).collect()).collect(),
            reached: HashMap::new(),
        }
    }

    pub(super) fn host_attached<'a>(
        &mut self,
        host: usize,
        life: Incarnation,
        parent: Incarnation,
        counted: impl Iterator<Item = (&'a BucketKey, u32, u64)>,
    ) {
        let story = &mut self.hosts[host];
        let known_elsewhere = story.life == Some(life);
        story.turn_to(life, parent, known_elsewhere, counted);
    }

    /// An aggregator speaks to each controller apart, and has told its story once one has heard it.
    pub(super) fn site_attached(
        &mut self,
        site: usize,
        life: Incarnation,
        (controller, parent): (usize, Incarnation),
        children: &Children,
    ) {
        let stories = &mut self.sites[site];
        let known_elsewhere = stories.iter().any(|story| story.life == Some(life));
        let lives = children.buckets().lives();
        let counted = children
            .buckets()
            .iter()
            .map(|(number, key, bucket)| (key, lives.of(number), bucket.counts.offered));
        stories[controller].turn_to(life, parent, known_elsewhere, counted);
    }

    pub(super) fn heard_of_host(&mut self, host: usize, report: &Report, children: &Children) {
        let (story, reached, limits) = (&mut self.hosts[host], &mut self.reached, &self.limits);
        story.hear(report, children, reached, limits);
    }

    pub(super) fn heard_of_site(
        &mut self,
        site: usize,
        controller: usize,
        report: &Report,
        children: &Children,
    ) {
        let (story, reached, limits) = (&mut self.sites[site][controller], &mut self.reached, &self.limits);
        story.hear(report, children, reached, limits);
    }

    /// The life of a parent is over, or the run is.
    fn settle(&mut self, parent: Incarnation, children: &Children) {
        let reached = self.reached.remove(&parent).unwrap_or_default();
        for (limit, counted) in self.counts(children).into_iter().enumerate() {
            let reached = reached.get(limit).copied().unwrap_or(0);
            let settled = &mut self.settled[limit];
            settled.reached += reached;
            settled.over += counted.saturating_sub(reached);
            settled.short += reached.saturating_sub(counted);
        }
    }

    /// What a parent has counted, by limit.
    fn counts(&self, children: &Children) -> Vec<u64> {
        let mut counts = vec![0; self.limits.len()];
        for (_, key, bucket) in children.buckets().iter() {
            if let Some(limit) = self.limits.get(&*key.limit) {
                counts[*limit] += bucket.counts.offered;
            }
        }
        for (limit, place) in &self.limits {
            counts[*place] += children.counted_in_forgotten(limit).offered;
        }
        counts
    }
}

impl Story {
    fn turn_to<'a>(
        &mut self,
        life: Incarnation,
        parent: Incarnation,
        known_elsewhere: bool,
        counted: impl Iterator<Item = (&'a BucketKey, u32, u64)>,
    ) {
        if (self.life, self.parent) == (Some(life), Some(parent)) {
            return;
        }
        let before = known_elsewhere
            .then(|| counted.map(|(key, life, counted)| ((unscoped(key), life), counted)).collect());
        *self = Self { life: Some(life), parent: Some(parent), before, ..Self::default() };
    }

    /// From where a bucket counts for the parent that hears of it for the first time.
    fn base(&self, key: &Counting, counted: u64) -> u64 {
        match &self.before {
            None => 0,
            Some(_) if !self.greeted => counted,
            Some(before) => before.get(key).copied().unwrap_or(0),
        }
    }

    fn hear(
        &mut self,
        report: &Report,
        children: &Children,
        reached: &mut HashMap<Incarnation, Vec<u64>>,
        limits: &HashMap<String, usize>,
    ) {
        let Some(parent) = self.parent else { return };
        let reached = reached.entry(parent).or_insert_with(|| vec![0; limits.len()]);
        for entry in &report.entries {
            let key = match &entry.bucket {
                BucketRef::Named(key) => Some(key),
                BucketRef::Number(number) => children.buckets().key(*number),
            };
            let Some(key) = key else { continue };
            let Some(limit) = limits.get(&*key.limit) else { continue };
            let counted = entry.counts.offered;
            let counting = (unscoped(key), entry.life);
            if !self.told.contains_key(&counting) {
                self.told.insert(counting.clone(), self.base(&counting, counted));
            }
            if let Some(told) = self.told.get_mut(&counting) {
                reached[*limit] += counted.saturating_sub(*told);
                *told = counted.max(*told);
            }
        }
        self.greeted |= report.full;
    }
}

impl World {
    pub(super) fn close_site(&mut self, index: usize) {
        let site = &self.sites[index];
        if let (Some(ledger), Some(zone)) = (&mut self.ledger, &site.zone) {
            ledger.settle(site.life, zone.children());
        }
    }

    pub(super) fn close_controller(&mut self, index: usize) {
        let controller = &self.controllers[index];
        if let (Some(ledger), Some(fleet)) = (&mut self.ledger, &controller.fleet) {
            ledger.settle(controller.life, fleet.children());
        }
    }

    /// The run is over.
    pub(super) fn close_ledger(&mut self) {
        (0..self.sites.len()).for_each(|site| self.close_site(site));
        (0..self.controllers.len()).for_each(|controller| self.close_controller(controller));
        let Some(ledger) = &mut self.ledger else { return };
        let alive = self.controllers.iter().filter_map(|known| Some((known.born, known.fleet.as_ref()?)));
        if let Some((born, fleet)) = alive.min_by_key(|(born, _)| *born) {
            for (limit, counted) in ledger.counts(fleet.children()).into_iter().enumerate() {
                let settled = &mut ledger.settled[limit];
                (settled.truth, settled.counted) = (self.log.offered_since(limit, born), counted);
            }
        }
        self.log.settled = std::mem::take(&mut ledger.settled);
    }
}
