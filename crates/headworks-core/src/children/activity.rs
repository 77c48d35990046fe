//! Which buckets moved, so that nobody has to look at those that did not.

use super::{Bucket, Children};
use crate::bucket::Counts;
use crate::message::BucketNumber;

/// Buckets that are not at rest, each once in each list; the bucket itself knows in which it is.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Since they were taken last.
    stirred: Vec<BucketNumber>,
    /// Until their node finds them at rest.
    lively: Vec<BucketNumber>,
}

impl Activity {
    pub(super) fn note(&mut self, number: BucketNumber, bucket: &mut Bucket) {
        if !std::mem::replace(&mut bucket.stirred, true) {
            self.stirred.push(number);
            if !std::mem::replace(&mut bucket.lively, true) {
                self.lively.push(number);
            }
        }
    }
}

impl Children {
    /// Something of a bucket changed.
    pub(crate) fn stir(&mut self, number: BucketNumber) {
        if let Some(bucket) = self.buckets.get_mut(number) {
            self.activity.note(number, bucket);
        }
    }

    /// Changes the demand of a bucket.
    pub(super) fn shift(&mut self, number: BucketNumber, change: f64) {
        if let Some(bucket) = self.buckets.get_mut(number) {
            self.demand += bucket.shift(change);
            self.activity.note(number, bucket);
        }
    }

    /// What changed since this was asked last.
    pub(crate) fn take_stirred(&mut self) -> Vec<BucketNumber> {
        let mut stirred = std::mem::take(&mut self.activity.stirred);
        let buckets = &mut self.buckets;
        stirred.retain(|number| buckets.get_mut(*number).map(|bucket| bucket.stirred = false).is_some());
        stirred
    }

    /// All buckets that are not known to be at rest. Whoever takes them gives back those that are not.
    pub(crate) fn take_lively(&mut self) -> Vec<BucketNumber> {
        std::mem::take(&mut self.activity.lively)
    }

    /// The buckets that stay lively.
    pub(crate) fn keep_lively(
        &mut self,
        mut lively: Vec<BucketNumber>,
        stays: impl Fn(BucketNumber, &Bucket) -> bool,
    ) {
        lively.append(&mut self.activity.lively);
        let buckets = &mut self.buckets;
        let mut demand = 0.0;
        lively.retain(|number| {
            let Some(bucket) = buckets.get_mut(*number) else { return false };
            bucket.lively = bucket.demand > 0.0 || bucket.stirred || stays(*number, bucket);
            demand += bucket.demand;
            bucket.lively
        });
        self.activity.lively = lively;
        // Sums of floats that come and go gather dust; this one is swept once a tick.
        self.demand = demand;
    }

    /// The buckets that are not known to be at rest.
    pub(crate) fn lively(&self) -> impl Iterator<Item = (BucketNumber, &Bucket)> {
        let known = self.activity.lively.iter();
        known.filter_map(|number| Some((*number, self.buckets.get(*number)?)))
    }

    /// Takes down what was counted since the last time, and the demand, of each bucket that is not known to be at rest.
    pub(crate) fn take_counted(&mut self, mut take: impl FnMut(BucketNumber, (Counts, f64))) {
        for number in &self.activity.lively {
            if let Some(bucket) = self.buckets.get_mut(*number) {
                take(*number, (std::mem::take(&mut bucket.counted), bucket.demand));
            }
        }
    }

    /// Offered rate of all buckets, in units a second.
    pub fn demand(&self) -> f64 {
        self.demand.max(0.0)
    }
}
