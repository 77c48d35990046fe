//! Buckets that have had no traffic for a while, and are forgotten.

use std::sync::Arc;
use std::time::Duration;

use super::bucket::Bucket;
use super::{Agent, Untracked};
use crate::bucket::{BucketKey, Values};
use crate::limits::Limit;
use crate::message::BucketNumber;
use crate::units::Moment;

/// A bucket rests for so long before it is forgotten. Long against the pauses of a client that is still there: one that is
/// forgotten in between is open until the next plan.
const IDLE: Duration = Duration::from_secs(60);

impl Agent {
    /// Buckets that may be forgotten.
    pub fn idle(&self, now: Moment) -> impl Iterator<Item = BucketNumber> {
        let elapsed = now.since(self.born);
        let idle = self.buckets.iter().filter(move |(number, key, bucket)| {
            key.is_forgettable() && bucket.is_idle(elapsed) && self.link.lets_go_of(*number)
        });
        idle.map(|(number, ..)| number)
    }

    /// Whether a bucket of this number is known.
    pub fn holds(&self, number: BucketNumber) -> bool {
        self.buckets.get(number).is_some()
    }

    /// Which life of its counts a bucket is in.
    pub fn life(&self, number: BucketNumber) -> u32 {
        self.buckets.lives().of(number)
    }

    /// The parent does not track this bucket.
    pub(super) fn turn_away(&mut self, key: &BucketKey) -> Option<Untracked> {
        let bucket = self.buckets.number(key).filter(|_| key.is_forgettable())?;
        let was_counted = self.link.is_numbered(bucket);
        self.let_go(bucket);
        Some(Untracked { bucket, was_counted })
    }

    fn let_go(&mut self, number: BucketNumber) -> bool {
        let life = self.buckets.lives().of(number);
        self.link.forget(number, life);
        self.buckets.forget(number).is_some()
    }

    /// The number of the bucket that values share which find no place of their own.
    pub fn rest(&self, limit: &Arc<str>) -> Option<BucketNumber> {
        self.buckets.number(&BucketKey { limit: limit.clone(), scope: Vec::new(), values: Values::Rest })
    }

    /// Forgets a bucket, if it may be forgotten still; whether it was. Its counts begin at zero when it is opened again.
    pub fn forget(&mut self, number: BucketNumber, now: Moment) -> bool {
        let idle = self.buckets.get(number).is_some_and(|bucket| bucket.is_idle(now.since(self.born)));
        if !idle || !self.link.lets_go_of(number) {
            return false;
        }
        self.let_go(number)
    }
}

impl Bucket {
    /// The parents say how much of a budget is left.
    pub(super) fn hear_tokens(&mut self, tokens: Option<f64>, elapsed: Duration) {
        (self.tokens, self.tokens_at) = (tokens, elapsed);
    }

    /// Whether nothing would be lost with it: all that it counted is told, and a budget is full again.
    fn is_idle(&self, elapsed: Duration) -> bool {
        if self.moved || self.untold {
            return false;
        }
        let rests = elapsed.saturating_sub(self.counted_at);
        let Some(limit) = &self.limit else { return rests >= IDLE };
        !limit.rate.is_ban() && rests >= IDLE && rests.as_secs_f64() >= self.is_full_after(limit, elapsed)
    }

    /// Rest, in seconds, after which a budget is full for sure, wherever else it is spent; 0 for a limit per second.
    #[allow(clippy::cast_precision_loss, reason = "no budget is above 2^53 units")]
    fn is_full_after(&self, limit: &Limit, elapsed: Duration) -> f64 {
        let Some(burst) = limit.budget().map(|burst| burst as f64) else { return 0.0 };
        let most_owed = limit.rate.per_unit().unwrap_or_default() as f64;
        // Parents tell tokens again once they have moved by a unit and a twentieth.
        let (left, inexact) = match self.tokens {
            Some(tokens) => (tokens, 1.0_f64.max(0.05 * tokens.abs())),
            None => (-most_owed, 0.0),
        };
        let since_told = self.tokens_at.max(self.counted_at).saturating_sub(self.counted_at);
        debug_assert!(since_told <= elapsed);
        since_told.as_secs_f64() + (burst + inexact - left) / limit.rate.per_second()
    }
}
