//! What overrides make of a limit: the limit as it holds for each of its buckets.

use std::sync::Arc;

use super::{Limit, LimitSet, Mode, Rollout};
use crate::bucket::{BucketKey, Values};
use crate::overrides::Overrides;
use crate::pattern::Pattern;
use crate::units::Rate;

/// Another rate for some of a limit's buckets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Override {
    /// Values of `per` keys, sorted by key; all must hold.
    pub matches: Vec<(String, Pattern)>,
    /// How much passes of each of these buckets.
    pub rate: Rate,
    /// Of a budget and of a token bucket, as the limit's own `burst`; `None` takes what a limit of this rate has by default.
    pub burst: Option<u64>,
    /// Whether the verdict is enforced for these buckets; `None` takes the mode of the limit. One that is off is off for
    /// all its buckets.
    pub mode: Option<Mode>,
}

/// A limit as it holds for each of its buckets.
pub type Overridden = Overrides<Arc<Limit>>;

impl Limit {
    /// The limit as it holds for each of its buckets; `None` if all go by itself.
    pub fn overridden(self: &Arc<Self>) -> Option<Overridden> {
        if self.overrides.is_empty() {
            return None;
        }
        Some(Overrides::new(self.clone(), &self.overrides, &self.per, |other| Arc::new(self.with(other))))
    }

    /// The limit as it holds for the buckets of an override. It has no overrides itself: of ten thousand, each would hold as
    /// many.
    #[must_use]
    pub fn with(&self, other: &Override) -> Limit {
        Limit {
            rate: other.rate,
            burst: other.burst,
            mode: other.mode.unwrap_or(self.mode),
            overrides: Vec::new(),
            rollout: self.rollout_of(other),
            name: self.name.clone(),
            matches: self.matches.clone(),
            per: self.per.clone(),
            ..*self
        }
    }

    /// What differs elsewhere for the buckets of an override: the mode, where they take that of the limit. Their rate is their
    /// own in all zones.
    fn rollout_of(&self, other: &Override) -> Option<Rollout> {
        let rollout =
            self.rollout.as_ref().filter(|rollout| other.mode.is_none() && rollout.mode.is_some())?;
        Some(Rollout { rate: None, ..rollout.clone() })
    }
}

impl LimitSet {
    /// A bucket's limit, as it holds for this bucket.
    pub fn of_bucket(&self, key: &BucketKey) -> Option<&Arc<Limit>> {
        match (self.overridden(&key.limit), &key.values) {
            (Some(overridden), Values::Of(values)) => Some(overridden.of_values(values).0),
            _ => self.get(&key.limit),
        }
    }

    /// Every limit, and what overrides make of it: all by which some bucket may go.
    pub fn for_all_buckets(&self) -> impl Iterator<Item = &Arc<Limit>> {
        let others =
            |limit: &Arc<Limit>| self.overridden(&limit.name).into_iter().flat_map(|all| all.others());
        self.limits().iter().flat_map(move |limit| std::iter::once(limit).chain(others(limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::parse;

    fn rate_of(set: &LimitSet, values: &[&str]) -> String {
        let values = Values::Of(values.iter().map(|value| (*value).to_owned()).collect());
        let key = BucketKey { limit: "a".into(), scope: Vec::new(), values };
        set.of_bucket(&key).unwrap().rate.to_string()
    }

    #[test]
    fn the_most_specific_override_holds_whatever_their_order() {
        let overrides = [
            r#"{match: {path: "/api/*"}, rate: 50/second}"#,
            r#"{match: {path: "/api/v1/*"}, rate: 10/second}"#,
            r#"{match: {path: /api/v1/pay}, rate: 2/second}"#,
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let overrides = order.map(|place| overrides[place]).join(", ");
            let text =
                format!("limits: [{{name: a, per: [path], rate: 100/second, overrides: [{overrides}]}}]");
            let set = parse(&text).unwrap();
            for (path, rate) in [
                ("/api/v1/pay", "2/second"),
                ("/api/v1/list", "10/second"),
                ("/api/x", "50/second"),
                ("/api/", "50/second"),
                ("/api/*", "50/second"),
                ("/apix", "100/second"),
                ("", "100/second"),
            ] {
                assert_eq!(rate_of(&set, &[path]), rate, "{path}");
            }
        }
    }

    #[test]
    fn values_that_are_not_tracked_and_limits_without_overrides_go_by_the_limit() {
        let set = parse("limits: [{name: a, per: [k], rate: 9/second, overrides: [{match: {k: \"*\"}, rate: 1/hour}]}, {name: b, rate: 8/day}]").unwrap();
        let rest = BucketKey { limit: "a".into(), scope: Vec::new(), values: Values::Rest };
        assert_eq!(set.of_bucket(&rest).unwrap().rate.to_string(), "9/second");
        assert_eq!(set.of_bucket(&BucketKey::whole("b".into())).unwrap().rate.to_string(), "8/day");
        assert!(set.of_bucket(&BucketKey::whole("c".into())).is_none());
        let budgets: Vec<_> = set.for_all_buckets().map(|limit| limit.budget()).collect();
        assert_eq!(budgets, [None, Some(1), Some(1)]);
    }
}
