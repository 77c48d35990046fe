//! What an agent keeps for its next life, and what that life does with it until a parent is heard.
//!
//! Kept numbers that are younger than the hold go on as if the process had never ended. Of older ones only the limits and
//! the size of the fleet are worth anything: each node admits its even part of every limit that has a surge guard.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Agent;
use crate::bucket::BucketKey;
use crate::limits::LimitSet;
use crate::link::HeldPlan;
use crate::message::View;
use crate::units::{Headroom, Moment};

/// Most buckets that are kept, those with least room first: of the others nothing is dropped, or little.
const MOST_KEPT: usize = 20_000;

/// What an agent keeps for its next life.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Time since the controller computed it, as of now; `None` where nobody can tell.
    pub age: Option<Duration>,
    /// What the controller heard.
    pub view: View,
    /// How many sets of limits the controller has had.
    pub generation: u64,
    /// The limits in force.
    pub limits: Arc<LimitSet>,
    /// The buckets that the agent held.
    pub buckets: Vec<KeptBucket>,
}

/// One bucket of what an agent keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptBucket {
    /// Which bucket.
    pub key: BucketKey,
    /// Its headroom.
    pub headroom: Headroom,
    /// What this agent itself was offered, in units a second: without it the surge guard would take all of that for a surge.
    pub demand: f64,
}

/// What was kept, until a parent is heard.
#[derive(Debug)]
pub(super) struct Remembered {
    buckets: HashMap<BucketKey, KeptBucket>,
    /// The headrooms are too old to go by.
    rough: bool,
}

impl Remembered {
    /// What a bucket that is opened now goes by.
    pub(super) fn of(&self, key: &BucketKey) -> Option<&KeptBucket> {
        self.buckets.get(key)
    }

    /// What a bucket without a headroom of its own goes by: every limit has room for its even parts.
    pub(super) fn otherwise(&self) -> Option<Headroom> {
        self.rough.then_some(Headroom::OPEN)
    }
}

impl Agent {
    /// What to keep for the next life; `None` before a parent was heard: what was kept before is then still the newest.
    pub fn keep(&self, now: Moment) -> Option<Kept> {
        let plan = self.link.plan().filter(|_| self.remembered.is_none())?;
        let held = self.buckets.iter().filter_map(|(_, key, bucket)| {
            let headroom = bucket.headroom.filter(|headroom| headroom.value().is_finite())?;
            Some((key, headroom, bucket.own_demand()))
        });
        let mut held: Vec<_> = held.collect();
        if held.len() > MOST_KEPT {
            held.select_nth_unstable_by(MOST_KEPT, |a, b| a.1.value().total_cmp(&b.1.value()));
            held.truncate(MOST_KEPT);
        }
        let kept =
            |(key, headroom, demand): (&BucketKey, _, _)| KeptBucket { key: key.clone(), headroom, demand };
        Some(Kept {
            age: Some(plan.age(now)),
            view: plan.view,
            generation: plan.generation,
            limits: self.limits.clone(),
            buckets: held.into_iter().map(kept).collect(),
        })
    }

    /// Takes over from an earlier life. Only an agent that has not heard a parent may do so.
    pub fn restore(&mut self, kept: Kept, now: Moment) {
        let age = kept.age.filter(|age| *age < self.hold);
        let plan = HeldPlan::kept(age.unwrap_or_default(), kept.view, kept.generation, now);
        self.link.resume(plan);
        self.adopt(kept.limits);
        let buckets = if age.is_some() { kept.buckets } else { Vec::new() };
        let buckets = buckets.into_iter().map(|bucket| (bucket.key.clone(), bucket)).collect();
        self.remembered = Some(Remembered { buckets, rough: age.is_none() });
        self.stale_from = Moment::default();
    }
}

#[cfg(test)]
mod tests;
