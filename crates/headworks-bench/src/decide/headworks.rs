//! Headworks: an exact limit, in memory.

use std::sync::Arc;

use headworks_agent::{Agent, Attributes, Limiter};
use headworks_core::limits::parse;
use tokio::sync::watch;

use super::Competitor;
use super::workload::Quota;

pub(super) const NAME: &str = "headworks exact";

/// A limiter with one exact limit.
pub(super) struct Exact(Limiter);

impl Exact {
    pub(super) fn new(quota: Quota) -> Self {
        let rate = match quota {
            Quota::Ample => "1000000000/second",
            Quota::Spent => "1/hour",
        };
        let text = format!(
            "limits: [{{name: each, per: [key], rate: {rate}, enforcement: exact, max_buckets: 1000000}}]"
        );
        let limits = parse(&text).expect("the limits are sound");
        let (_, limits) = watch::channel((1, Arc::new(limits)));
        Self(Agent::builder("bench", "here").standalone(limits).build().limiter())
    }
}

impl Competitor for Exact {
    fn decide(&self, keys: &[&String]) -> usize {
        keys.iter().filter(|key| self.0.check(Attributes::new(&[("key", key)]), None).allowed).count()
    }
}
