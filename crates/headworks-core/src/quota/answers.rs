//! What a proxy is told: its share of every limit that its requests meet, as tokens.

use super::bucket::Bucket;
use super::strategy::{Share, Told};
use super::{Action, BucketId, Proxy};
use crate::units::Moment;

impl Proxy {
    /// What the proxy is to be told now: of buckets that it reported, so that what it was told stays in force; of those whose share
    /// has moved; and of those that are given up. Nothing while no plan came: it then decides by itself.
    pub fn actions(&mut self, now: Moment) -> Vec<(BucketId, Action)> {
        let given_up = std::mem::take(&mut self.abandoned).into_iter().map(|id| (id, Action::Abandon));
        let mut actions: Vec<(BucketId, Action)> = given_up.collect();
        let mut told = Vec::new();
        for (id, bucket) in &self.buckets {
            let Some(share) = self.share(bucket, now) else { continue };
            let next = Told::next(bucket.told, share, now);
            let moved = bucket.told.is_none_or(|before| before.strategy != next.strategy);
            if bucket.is_owed || moved {
                told.push((id.clone(), next));
            }
        }
        for (id, next) in told {
            if let Some(bucket) = self.buckets.get_mut(&id) {
                (bucket.told, bucket.is_owed) = (Some(next), false);
            }
            actions.push((id, Action::Assign(next.strategy)));
        }
        actions
    }

    /// What the proxy may let pass of a bucket: its demand, as far as each enforced limit lets it pass, one after the other; of one
    /// whose demand is not known, no more than a newcomer's part.
    fn share(&self, bucket: &Bucket, now: Moment) -> Option<Share> {
        let agents = self.link.plan()?.view.agents;
        if bucket.is_handed_over && !bucket.is_measured() {
            return None;
        }
        let (mut passes, mut most) = (1.0_f64, f64::INFINITY);
        let standings = bucket.meets.iter().filter_map(|meet| self.standing(meet, now));
        for standing in standings.filter(|standing| standing.enforced) {
            passes *= standing.headroom.value().min(1.0);
            most = most.min(standing.newcomers_part(agents));
        }
        Some(match bucket.demand() {
            Some(demand) if passes < 1.0 => Share::Rate(demand * passes),
            None if most.is_finite() => Share::Rate(most),
            Some(_) | None => Share::All,
        })
    }
}
