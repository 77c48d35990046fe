//! What a child's report says: of which buckets, how much of it is plausible, and what that makes of their demand.

use super::child::Told;
use super::{Bucket, Child, ChildId, Children};
use crate::message::{BucketNumber, BucketRef, Report, ReportEntry};
use crate::units::Moment;

/// Most buckets that one child may hold.
const MOST_BUCKETS_OF_A_CHILD: usize = 100_000;
/// Units a second beyond which no agent is believed, whatever its limit says: sums that held such a term would be good for
/// nothing else.
const MOST_OF_AN_AGENT: f64 = 1e10;

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

impl Children {
    /// A child reports. A report that is not newer than the last one changes nothing.
    ///
    /// What it touched is what `of_note` says that is worth a second look, as the bucket stands then.
    pub fn report(
        &mut self,
        id: ChildId,
        report: &Report,
        now: Moment,
        of_note: impl Fn(&Bucket) -> bool,
    ) -> Received {
        let mut received = Received::default();
        let Some(mut child) = self.children.remove(&id) else { return received };
        let agents = child.agents;
        if child.begin(report, now) {
            self.reports += 1;
            child.held.make_room(report.entries.len());
            self.forget_at(&mut child, report, &mut received.touched);
            for entry in &report.entries {
                match self.resolve(&mut child, entry, report) {
                    Resolved::Bucket(number) => {
                        let telling = Telling { number, entry, report };
                        let clipped = self.take(id, &mut child, telling, now);
                        received.clipped += u32::from(clipped);
                        if self.buckets.get(number).is_some_and(&of_note) {
                            received.touched.push(number);
                        }
                    }
                    Resolved::Gone | Resolved::Untracked => {}
                    Resolved::Refused => received.refused += 1,
                }
            }
            if report.full && !child.is_greeted() {
                self.drop_those_left_out(&mut child, report, &mut received.touched);
            } else if report.full {
                for (number, demand) in child.rest_those_left_out(report) {
                    self.shift(number, -demand);
                    received.touched.push(number);
                }
            }
            child.finish(report);
        }
        self.agents = self.agents - u64::from(agents) + u64::from(child.agents);
        self.children.insert(id, child);
        received
    }

    /// The bucket that an entry is about. What is refused leaves nothing behind.
    fn resolve(&mut self, child: &mut Child, entry: &ReportEntry, report: &Report) -> Resolved {
        match &entry.bucket {
            BucketRef::Named(key) => {
                let Some(key) = &self.localised(child, key) else { return Resolved::Gone };
                // Known ones first: names that are refused must not fill the registry either.
                let known = self.buckets.number(key).filter(|number| child.held.contains(*number));
                let is_full = known.is_none() && child.held.len() >= MOST_BUCKETS_OF_A_CHILD;
                if is_full || child.is_absurd(known, entry, report) {
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
                child.unname(number);
                Resolved::Bucket(number)
            }
            BucketRef::Number(number)
                if let Some(absurd) = child.is_absurd_of_numbered(*number, entry, report) =>
            {
                if absurd {
                    Resolved::Refused
                } else {
                    Resolved::Bucket(*number)
                }
            }
            BucketRef::Number(number) if self.buckets.get(*number).is_none() => {
                if self.buckets.was_given(*number) { Resolved::Gone } else { Resolved::Refused }
            }
            // A number that it was told; one that it guessed would be a bucket of others.
            BucketRef::Number(number)
                if child.names.contains(number) && !child.is_absurd(Some(*number), entry, report) =>
            {
                Resolved::Bucket(*number)
            }
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
        let Some(bucket) = self.buckets.get_mut(number) else { return false };
        if bucket.holders == 0 {
            bucket.first_holder = Some(id);
        }
        let (change, mut clipped) = bucket.count(child, telling, most);
        self.demand += change;
        self.activity.note(number, bucket);
        if let Some(news) = entry.news {
            let told = child.told(number, report.elapsed, entry.counts.offered, news);
            clipped |= told.rate() > most;
            self.hear(id, child, number, told.at_most(most), now);
        }
        clipped
    }

    /// News of a bucket: believed at once if it is solid, else when enough other children tell the like.
    fn hear(&mut self, id: ChildId, child: &mut Child, number: BucketNumber, told: Told, now: Moment) {
        let Some(bucket) = self.buckets.get_mut(number) else { return };
        let believed = self.rumours.hear(number, id, told, bucket.holders, now);
        for (teller, told) in believed {
            let teller = if teller == id {
                Some(&mut *child)
            } else {
                self.children.get_mut(&teller).map(|teller| &mut **teller)
            };
            if let Some(change) = teller.and_then(|teller| teller.believe(number, &told)) {
                self.demand += bucket.shift(change);
            }
        }
    }
}

impl Bucket {
    /// Counts what a child tells, but no more demand than `most`: by how much demand changed, and whether it told of more.
    fn count(&mut self, child: &mut Child, telling: Telling<'_>, most: f64) -> (f64, bool) {
        let Telling { number, entry, report } = telling;
        let (held, is_new) = child.hold(number, entry, report.elapsed);
        self.holders += u32::from(is_new);
        let counted = entry.counts.since(held.counts);
        self.counts += counted;
        self.counted += counted;
        let before = held.demand();
        held.read(entry, report);
        let clipped = held.clip(most);
        let change = self.shift(held.demand() - before);
        if let Some(told) = entry.in_force {
            self.in_force = Some(self.in_force.map_or(told, |other| if told < other { told } else { other }));
        }
        if let Some(told) = entry.tokens {
            self.tokens_told = Some(self.tokens_told.map_or(told, |other| other.min(told)));
        }
        (change, clipped)
    }
}
