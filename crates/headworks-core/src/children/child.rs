//! One child, as its parent knows it.

use std::time::Duration;

use crate::bucket::{BucketKey, Counts};
use crate::limits::Digest;
use crate::link::INTERVAL;
use crate::message::{BucketNumber, Hello, News, Report, ReportEntry, Tier};
use crate::meter::{Meter, units};
use crate::numbers::{NumberMap, NumberSet};
use crate::units::Moment;

use super::holding::Holding;

/// Most units that any child counts in a second of its life.
const MOST_COUNTED_A_SECOND: f64 = 1e12;

/// What a parent calls a child: one number for each stream that said hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChildId(pub u64);

/// What a child had counted of each bucket when it left, and in which life of its counts.
pub(super) type CountsLeft = NumberMap<BucketNumber, (u32, Counts)>;

/// From where a child's counters count for this parent.
#[derive(Debug)]
pub(super) enum Baseline {
    /// From its birth: nobody else has heard of it.
    Zero,
    /// From where it was when it left us.
    Remembered(CountsLeft),
    /// From its first report: another parent has heard what came before.
    FirstReport,
}

/// One child, as its parent knows it.
#[derive(Debug)]
pub struct Child {
    /// What it said of itself.
    pub hello: Hello,
    /// Agents at or below it.
    pub agents: u32,
    /// When it last reported, or attached.
    pub last_report: Moment,
    /// It has not reported for so long that its demand no longer counts.
    pub silent: bool,
    pub(super) held: Holding,
    /// Those among them of which the last full report told, or a later one; all others are at rest.
    awake: Vec<BucketNumber>,
    /// Its own time at its last full report.
    full_at: Duration,
    /// It named buckets, and waits for their numbers.
    pub(super) unnamed: bool,
    pub(super) names: NumberSet<BucketNumber>,
    /// What it named and finds no place, until it is told.
    pub(super) turned_away: Vec<BucketKey>,
    pub(super) limits: Option<Digest>,
    pub(super) told: u64,
    pub(super) plans_sent: u64,
    pub(super) last_plan: Moment,
    baseline: Baseline,
    sequence: Option<u64>,
    /// The last report that the headrooms account for, here and further up.
    pub(super) answered: u64,
    /// It told of news, and waits to hear that they are taken in.
    pub(super) waits: bool,
    greeted: bool,
}

/// What a parent keeps of one bucket at one child.
#[derive(Debug, Default)]
pub struct Held {
    /// Counted, as last heard.
    pub counts: Counts,
    /// Part of the offered that the child dropped of late, from 0 to 1.
    pub dropped: f32,
    /// Part of the offered that it would have dropped, had the limit been enforced.
    pub would_drop: f32,
    /// The number of the last report that told of it.
    pub(super) reported: u64,
    /// Which life of the child's counts this is.
    pub(super) life: u32,
    /// The child speaks of it by our number.
    pub(super) numbered: bool,
    /// It is among those of its child that are awake.
    awake: bool,
    /// The next report says from where its counts count.
    rebases: bool,
    meter: Meter,
}

impl Child {
    pub(super) fn new(hello: Hello, baseline: Baseline, now: Moment) -> Self {
        Self {
            limits: hello.limits,
            hello,
            agents: 0,
            last_report: now,
            silent: false,
            held: Holding::default(),
            awake: Vec::new(),
            full_at: Duration::ZERO,
            unnamed: false,
            names: NumberSet::default(),
            turned_away: Vec::new(),
            told: 0,
            plans_sent: 0,
            last_plan: Moment::default(),
            baseline,
            sequence: None,
            answered: 0,
            waits: false,
            greeted: false,
        }
    }

    /// Goes on where an earlier stream of the same life was. If the child has been with another parent since, what that one
    /// heard does not count here.
    pub(super) fn succeed(&mut self, earlier: Child, was_ours: bool) {
        self.held = earlier.held;
        self.awake = earlier.awake;
        self.full_at = earlier.full_at;
        self.agents = earlier.agents;
        for (_, held) in self.held.iter_mut() {
            held.reported = 0;
            held.numbered = false;
            held.rebases = !was_ours;
        }
    }

    /// What it holds, by bucket.
    pub fn held(&self) -> impl Iterator<Item = (BucketNumber, &Held)> {
        self.held.iter()
    }

    /// What it holds of one bucket.
    pub fn holds(&self, number: BucketNumber) -> Option<&Held> {
        self.held.get(number)
    }

    /// Buckets that it holds.
    pub fn buckets(&self) -> usize {
        self.held.len()
    }

    /// Opens a report; false if it is not newer than the last.
    pub(super) fn begin(&mut self, report: &Report, now: Moment) -> bool {
        if self.sequence.is_some_and(|last| report.sequence <= last) {
            return false;
        }
        self.sequence = Some(report.sequence);
        // Of an agent there is one, whatever it says.
        self.agents = if self.hello.tier == Tier::Agent { 1 } else { report.agents };
        self.last_report = now;
        self.silent = false;
        true
    }

    /// Closes a report.
    pub(super) fn finish(&mut self, report: &Report) {
        if report.full {
            self.full_at = report.elapsed;
        }
        // A greeting that had no room for all names goes on in the next report.
        if report.full && !self.greeted {
            self.greeted = true;
            // All that the child holds has been told: what comes later is new to it.
            self.baseline = Baseline::Zero;
        }
        self.waits |= !report.full || report.entries.iter().any(|entry| entry.news.is_some());
    }

    /// Whether an entry counts more than any number of agents can have been asked since the last one; `known` is the
    /// bucket's number, if the child holds it.
    pub(super) fn is_absurd(
        &self,
        known: Option<BucketNumber>,
        entry: &ReportEntry,
        report: &Report,
    ) -> bool {
        is_absurd(known.and_then(|number| self.held.get(number)), entry, report)
    }

    /// The same of a bucket that it holds and speaks of by its number; `None` if it does not.
    pub(super) fn is_absurd_of_numbered(
        &mut self,
        number: BucketNumber,
        entry: &ReportEntry,
        report: &Report,
    ) -> Option<bool> {
        let held = self.held.get_mut(number).filter(|held| held.numbered)?;
        Some(is_absurd(Some(held), entry, report))
    }

    /// News of a bucket, beside what is known of it.
    pub(super) fn told(&self, number: BucketNumber, elapsed: Duration, offered: u64, news: News) -> Told {
        let expected = self.held.get(number).map_or(0.0, Held::demand) * news.window.as_secs_f64();
        Told { elapsed, offered, news, rises: units(news.units) > expected }
    }

    /// What is known of its counts when it leaves; `None` if nothing is: another parent had heard of it, and no full report
    /// came here. Taken for nothing counted, its whole life would count when it is back.
    pub(super) fn counts_left(&self) -> Option<CountsLeft> {
        let mut counts = match &self.baseline {
            Baseline::FirstReport if !self.greeted => return None,
            Baseline::Remembered(counts) => counts.clone(),
            Baseline::Zero | Baseline::FirstReport => NumberMap::default(),
        };
        counts.extend(self.held.iter().map(|(number, held)| (number, (held.life, held.counts))));
        Some(counts)
    }

    /// The number of its last report.
    pub fn heard(&self) -> u64 {
        self.sequence.unwrap_or_default()
    }

    /// It was told our number of a bucket.
    pub(super) fn name(&mut self, number: BucketNumber) {
        self.names.insert(number);
        if let Some(held) = self.held.get_mut(number) {
            held.numbered = true;
        }
    }

    /// It has no number for a bucket, whatever it was told before.
    pub(super) fn unname(&mut self, number: BucketNumber) {
        self.names.remove(&number);
        if let Some(held) = self.held.get_mut(number) {
            held.numbered = false;
        }
    }

    /// Its news of a bucket is believed: by how much its demand changes. `None` if it does not hold the bucket any more.
    pub(super) fn believe(&mut self, number: BucketNumber, told: &Told) -> Option<f64> {
        let held = self.held.get_mut(number)?;
        if !std::mem::replace(&mut held.awake, true) {
            // It was laid to rest between the news and the moment in which others told the like.
            self.awake.push(number);
        }
        let before = held.demand();
        held.believe(told);
        Some(held.demand() - before)
    }

    /// Whether a full report has come over this stream.
    pub(super) fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// What it holds of a bucket that it tells of; true if it is new.
    pub(super) fn hold(
        &mut self,
        number: BucketNumber,
        entry: &ReportEntry,
        elapsed: Duration,
    ) -> (&mut Held, bool) {
        let is_new = self.held.get_mut(number).is_none();
        if is_new {
            let counts = self.counts_before(number, entry);
            let numbered = self.names.contains(&number);
            self.held.insert(number, Held { counts, numbered, life: entry.life, ..Held::default() });
        }
        let held = self.held.get_mut(number).unwrap_or_else(|| unreachable!("it was put in"));
        if !std::mem::replace(&mut held.awake, true) {
            self.awake.push(number);
            if !is_new {
                // It rested until the last full report.
                held.rest(self.full_at);
            }
        }
        if !is_new {
            held.follow(entry, elapsed);
        }
        (held, is_new)
    }

    /// What it had counted of a bucket before this parent counts.
    fn counts_before(&mut self, number: BucketNumber, entry: &ReportEntry) -> Counts {
        match &mut self.baseline {
            Baseline::Remembered(counts) => match counts.remove(&number) {
                Some((life, counts)) if life == entry.life => counts,
                _ => Counts::default(),
            },
            Baseline::FirstReport if !self.greeted => entry.counts,
            Baseline::Zero | Baseline::FirstReport => Counts::default(),
        }
    }

    /// Lays to rest what was awake and is not in this full report; those of it that had demand, and how much.
    pub(super) fn rest_those_left_out(&mut self, report: &Report) -> Vec<(BucketNumber, f64)> {
        let mut rested = Vec::new();
        let held = &mut self.held;
        self.awake.retain(|number| {
            let Some(held) = held.get_mut(*number) else { return false };
            let is_told = held.reported == report.sequence;
            if !is_told && std::mem::replace(&mut held.awake, false) {
                if held.demand() > 0.0 {
                    rested.push((*number, held.demand()));
                }
                held.rest(report.elapsed);
            }
            is_told
        });
        if self.awake.len() > self.held.len() {
            // One that was forgotten, and is held again, is in the list twice.
            self.awake.sort_unstable();
            self.awake.dedup();
        }
        rested
    }
}

fn is_absurd(known: Option<&Held>, entry: &ReportEntry, report: &Report) -> bool {
    let before = known.filter(|held| held.life == entry.life).map_or(0, |held| held.counts.offered);
    let most = MOST_COUNTED_A_SECOND * (report.elapsed.as_secs_f64() + 1.0);
    units(entry.counts.offered.saturating_sub(before)) > most
}

/// News, as it was told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) elapsed: Duration,
    pub(super) offered: u64,
    pub(super) news: News,
    /// Whether demand rose, by what is known of it.
    pub(super) rises: bool,
}

impl Told {
    /// The rate that it tells of, in units a second.
    pub(super) fn rate(&self) -> f64 {
        units(self.news.units) / self.news.window.as_secs_f64()
    }

    /// The same, telling of no more than is plausible.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not above the count that it was"
    )]
    pub(super) fn at_most(self, most: f64) -> Self {
        let units = (most * self.news.window.as_secs_f64()) as u64;
        Self { news: News { units: self.news.units.min(units), ..self.news }, ..self }
    }
}

impl Held {
    /// Offered rate of this bucket at this child, in units a second.
    pub fn demand(&self) -> f64 {
        self.meter.rate()
    }

    /// Counts from where this entry's begin: those of the entry, if another parent heard what came before, and zero, if the
    /// child forgot the bucket and has it again.
    fn follow(&mut self, entry: &ReportEntry, elapsed: Duration) {
        if self.rebases {
            self.counts = entry.counts;
        } else if self.life != entry.life {
            self.counts = Counts::default();
            self.meter = Meter::starting(elapsed.saturating_sub(INTERVAL), 0, self.meter.rate());
        }
        self.life = entry.life;
    }

    pub(super) fn read(&mut self, entry: &ReportEntry, report: &Report) {
        let counted = entry.counts.since(self.counts);
        self.rebases = false;
        if counted.offered > 0 {
            self.dropped = part(counted.dropped, counted.offered);
            self.would_drop = part(counted.would_drop, counted.offered);
        }
        match entry.demand {
            Some(rate) => self.meter = Meter::starting(report.elapsed, entry.counts.offered, rate),
            None if report.full => self.meter.observe(report.elapsed, entry.counts.offered),
            None => {}
        }
        self.counts = entry.counts;
        self.reported = report.sequence;
    }

    /// Believes no more than `most` units a second; whether there was more.
    pub(super) fn clip(&mut self, most: f64) -> bool {
        self.meter.clip(most)
    }

    /// Believes news: demand is what it was in the window of the news, and measured anew from there.
    pub(super) fn believe(&mut self, news: &Told) {
        self.meter.begin(news.elapsed, news.offered, news.news);
    }

    pub(super) fn rest(&mut self, elapsed: Duration) {
        self.meter.rest(elapsed, self.counts.offered);
    }

    pub(super) fn forget_demand(&mut self) {
        self.meter.forget();
    }
}

#[allow(clippy::cast_precision_loss, reason = "it is told in hundredths")]
fn part(some: u64, all: u64) -> f32 {
    some as f32 / all as f32
}
