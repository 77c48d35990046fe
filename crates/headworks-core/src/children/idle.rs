//! Buckets that no child holds any more, and are forgotten.

use std::time::Duration;

use super::departed::REMEMBERED;
use super::{Child, Children};
use crate::bucket::Counts;
use crate::message::{BucketNumber, Report};
use crate::units::Moment;

/// A bucket that no child holds stays for so long. Longer than what children that left had counted is remembered: one that
/// comes back speaks of buckets by name, and its counts belong to the number that they had.
const UNHELD: Duration = REMEMBERED.saturating_add(Duration::from_secs(10));

impl Children {
    /// Buckets that no child has held for so long that nobody will miss them.
    pub(crate) fn idle(&mut self, now: Moment) -> Vec<BucketNumber> {
        let mut idle = Vec::new();
        let (buckets, whole) = (&mut self.buckets, &self.whole);
        self.unheld.retain(|number| {
            let Some(bucket) = buckets.get_mut(*number) else { return false };
            if bucket.holders > 0 || whole.contains(number) {
                bucket.unheld_since = None;
                return false;
            }
            if now.since(*bucket.unheld_since.get_or_insert(now)) >= UNHELD {
                idle.push(*number);
            }
            true
        });
        idle
    }

    /// One child less holds a bucket.
    pub(super) fn let_go(&mut self, number: BucketNumber) {
        let Some(bucket) = self.buckets.get_mut(number) else { return };
        bucket.holders = bucket.holders.saturating_sub(1);
        if bucket.holders == 0 {
            self.unheld.insert(number);
        }
    }

    /// Forgets a bucket that no child holds.
    pub(crate) fn forget(&mut self, number: BucketNumber) {
        if let Some((key, bucket)) = self.buckets.forget(number) {
            self.places.leave(&key);
            *self.forgotten.entry(key.limit).or_default() += bucket.counts;
        }
    }

    /// What was counted in buckets of this limit that are forgotten.
    pub fn counted_in_forgotten(&self, limit: &str) -> Counts {
        self.forgotten.get(limit).copied().unwrap_or_default()
    }

    /// A child says which buckets it holds no longer.
    pub(super) fn forget_at(&mut self, child: &mut Child, report: &Report, touched: &mut Vec<BucketNumber>) {
        for forgotten in &report.forgotten {
            if child.holds(forgotten.bucket).is_some_and(|held| held.life <= forgotten.life) {
                self.release(child, forgotten.bucket, touched);
            }
        }
    }

    /// The first full report of a stream tells all that a child holds. What is known from an earlier stream, and is not in it,
    /// was forgotten in between.
    pub(super) fn drop_those_left_out(
        &mut self,
        child: &mut Child,
        report: &Report,
        touched: &mut Vec<BucketNumber>,
    ) {
        let left_out = child.held.iter().filter(|(_, held)| held.reported != report.sequence);
        let left_out: Vec<BucketNumber> = left_out.map(|(number, _)| number).collect();
        left_out.into_iter().for_each(|number| self.release(child, number, touched));
    }

    pub(super) fn release(
        &mut self,
        child: &mut Child,
        number: BucketNumber,
        touched: &mut Vec<BucketNumber>,
    ) {
        child.names.remove(&number);
        let Some(held) = child.held.remove(number) else { return };
        self.let_go(number);
        self.shift(number, -held.demand());
        touched.push(number);
    }
}
