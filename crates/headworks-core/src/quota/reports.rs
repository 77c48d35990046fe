//! What a proxy's parent is told: what the limits counted, and how much reaches them.

use super::bucket::Bucket;
use super::{IDLE, LASTS, Proxy};
use crate::bucket::MOST_RATE;
use crate::link::{Due, NameRoom};
use crate::message::{BucketNumber, BucketRef, Report, ReportEntry};
use crate::units::Moment;

impl Proxy {
    /// The report to send now, if one is due: each interval, and as soon as the proxy told something. The demand was measured over
    /// the seconds between two reports of the proxy, and stays until the next.
    pub fn report(&mut self, now: Moment) -> Option<Report> {
        match self.link.due(now) {
            Due::No => None,
            Due::IfNews if !self.has_news => None,
            Due::IfNews | Due::Full => Some(self.full_report(now)),
        }
    }

    fn full_report(&mut self, now: Moment) -> Report {
        self.has_news = false;
        self.give_up_idle(now);
        self.add_up();
        self.forget_unheld();
        let sequence = self.link.said() + 1;
        let all = !self.link.is_introduced();
        let (mut room, mut complete) = (NameRoom::default(), true);
        let lives = self.counted.lives();
        let mut entries = Vec::new();
        for (number, key, counted) in self.counted.iter_mut() {
            if !(all || counted.demand > 0.0 || counted.counts != counted.told) {
                continue;
            }
            let bucket = self.link.reference(number, key);
            if matches!(bucket, BucketRef::Named(_)) && !room.takes(key) {
                complete = false;
                continue;
            }
            counted.told = counted.counts;
            entries.push(ReportEntry {
                bucket,
                counts: counted.counts.made_sound(),
                demand: Some(counted.demand.min(MOST_RATE)),
                news: None,
                in_force: None,
                tokens: None,
                life: lives.of(number),
            });
        }
        // A report that had to leave something out must not say that it is idle.
        self.link.say(now, complete, complete);
        Report {
            sequence,
            elapsed: now.since(self.born),
            full: complete,
            agents: 1,
            entries,
            forgotten: self.link.farewells(sequence),
            switch: None,
        }
    }

    /// The proxy would report buckets without traffic for ever. One that it reports no more it has forgotten, as with another
    /// configuration: what was asked there is asked no more.
    fn give_up_idle(&mut self, now: Moment) {
        let is_over = |bucket: &Bucket| now.since(bucket.heard_at) >= LASTS;
        let ended = self.buckets.extract_if(|_, bucket| is_over(bucket) || now.since(bucket.busy_at) >= IDLE);
        for (id, bucket) in ended {
            self.names -= super::length(&id);
            if !is_over(&bucket) {
                self.abandoned.push(id);
            }
        }
    }

    /// What reaches each limit is the sum over the proxy's buckets. Added up anew each time, so that no dust gathers.
    fn add_up(&mut self) {
        for (.., counted) in self.counted.iter_mut() {
            (counted.demand, counted.holders) = (0.0, 0);
        }
        for meet in self.buckets.values().flat_map(|bucket| &bucket.meets) {
            if let Some(counted) = self.counted.get_mut(meet.number) {
                counted.demand += meet.demand();
                counted.holders += 1;
            }
        }
    }

    fn forget_unheld(&mut self) {
        let unheld = self.counted.iter().filter(|(number, key, counted)| {
            let is_told = counted.counts == counted.told;
            counted.holders == 0 && is_told && key.is_forgettable() && self.link.lets_go_of(*number)
        });
        let unheld: Vec<BucketNumber> = unheld.map(|(number, ..)| number).collect();
        unheld.into_iter().for_each(|number| self.let_go(number));
    }

    pub(super) fn let_go(&mut self, number: BucketNumber) {
        self.link.forget(number, self.counted.lives().of(number));
        self.counted.forget(number);
    }
}
