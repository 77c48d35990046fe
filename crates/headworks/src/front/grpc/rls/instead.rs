//! Limits that come with requests, and hold in place of those in force: token buckets of this process.
//!
//! Their number is bounded, since whoever asks makes them. When all places are taken and none of them is idle, requests go by the
//! limits in force.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use headworks_agent::Clock;
use headworks_core::attributes::Attributes;
use headworks_core::exact::{Look, Rule, State};
use headworks_core::units::Moment;

use super::ask::{Hits, Instead};
use crate::front::stand_in;

/// Most buckets: some 2 MiB of them.
const MAX_BUCKETS: usize = 10_000;

/// The buckets of all requests that bring a limit along.
#[derive(Debug)]
pub(super) struct Brought {
    clock: Clock,
    buckets: Mutex<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    by_key: HashMap<[u8; 16], (Rule, State)>,
    /// When idle ones were looked for in vain, so that a flood of keys does not make each request look through all.
    full_since: Option<Moment>,
}

/// How long a search in vain is believed.
const BELIEVED: std::time::Duration = std::time::Duration::from_secs(1);

impl Brought {
    pub(super) fn new() -> Self {
        Self { clock: Clock::new(), buckets: Mutex::default() }
    }

    /// What a limit that came with a request says to it. `None` if there is no place for its bucket.
    pub(super) fn check(&self, attributes: Attributes<'_>, instead: &Instead, hits: Hits) -> Option<Look> {
        let (now, key) = (self.clock.now(), key(attributes));
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        Some(settle(buckets.of(key, instead.rule, now)?, hits, now))
    }
}

/// The look is that after the charge.
fn settle((rule, state): &mut (Rule, State), hits: Hits, now: Moment) -> Look {
    match hits {
        Hits::Excess => {
            Look { passes: false, remaining: rule.look(state, 1, now).remaining, retry_after: None }
        }
        Hits::None | Hits::Look => rule.look(state, 1, now),
        Hits::GiveBack(hits) => {
            rule.give_back(state, hits.unwrap_or(1).into(), now);
            Look { passes: true, retry_after: None, ..rule.look(state, 1, now) }
        }
        Hits::Take(hits) => {
            let cost = u64::from(hits.unwrap_or(1));
            let look = rule.decide(state, cost, cost, now);
            let left = look.remaining.map(|left| if look.passes { left.saturating_sub(cost) } else { left });
            Look { remaining: left, ..look }
        }
    }
}

impl Buckets {
    fn of(&mut self, key: [u8; 16], rule: Rule, now: Moment) -> Option<&mut (Rule, State)> {
        if !self.by_key.contains_key(&key) && !self.has_room(now) {
            return None;
        }
        let bucket = self.by_key.entry(key).or_insert((rule, State::New));
        rule.adopt(bucket.0, &mut bucket.1, now);
        bucket.0 = rule;
        Some(bucket)
    }

    fn has_room(&mut self, now: Moment) -> bool {
        if self.by_key.len() < MAX_BUCKETS {
            return true;
        }
        if self.full_since.is_some_and(|since| now.since(since) < BELIEVED) {
            return false;
        }
        self.by_key.retain(|_, (rule, state)| !rule.is_as_new(state, now));
        self.full_since = (self.by_key.len() >= MAX_BUCKETS).then_some(now);
        self.full_since.is_none()
    }
}

/// A hash, so that a bucket takes the same however long its values are; of each text with its length, so that no two lists of attributes
/// have one in common.
fn key(attributes: Attributes<'_>) -> [u8; 16] {
    use std::fmt::Write as _;
    let texts = attributes.iter().flat_map(|(key, value)| [key, value]);
    let all = texts.fold(String::with_capacity(64), |mut all, text| {
        // Writing to a string does not fail.
        let _ = write!(all, "{}:{text}", text.len());
        all
    });
    stand_in::hash(all.as_bytes())
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;

    use super::super::ask;
    use super::super::wire::{Descriptor, Entry, Request};
    use super::*;

    fn instead(amount: u32) -> Instead {
        let entry = Entry { key: "k".into(), value: "v".into() };
        let limit = Some(RateLimitOverride { requests_per_unit: amount, unit: 3 });
        let descriptor = Descriptor { entries: vec![entry], limit, ..Descriptor::default() };
        let request = Request { domain: "d".into(), descriptors: vec![descriptor], hits_addend: 0 };
        ask::read(&request).unwrap()[0].instead.unwrap()
    }

    fn passed(brought: &Brought, value: &str, instead: &Instead, n: usize) -> usize {
        let pairs = [("k", value)];
        let take = || brought.check(Attributes::new(&pairs), instead, Hits::Take(None));
        (0..n).filter(|_| take().is_some_and(|look| look.passes)).count()
    }

    #[test]
    fn each_list_of_entries_has_a_bucket_and_a_raised_limit_keeps_what_is_used() {
        let brought = Brought::new();
        assert_eq!(passed(&brought, "a", &instead(3), 5), 3);
        assert_eq!(passed(&brought, "b", &instead(3), 2), 2);
        assert_eq!(passed(&brought, "a", &instead(5), 5), 2);
        assert_eq!(passed(&brought, "a", &instead(0), 1), 0);
    }

    #[test]
    fn a_flood_of_keys_takes_its_places_and_no_more() {
        let (brought, three) = (Brought::new(), instead(3));
        for n in 0..MAX_BUCKETS {
            assert_eq!(passed(&brought, &n.to_string(), &three, 1), 1);
        }
        let look = |value| brought.check(Attributes::new(&[("k", value)]), &three, Hits::Look);
        assert_eq!(look("one more"), None);
        assert_eq!(look("7").and_then(|look| look.remaining), Some(2));
        assert_eq!(brought.buckets.lock().unwrap().by_key.len(), MAX_BUCKETS);
    }

    #[test]
    fn keys_do_not_run_into_each_other() {
        assert_ne!(
            key(Attributes::new(&[("a", "b1:c"), ("d", "e")])),
            key(Attributes::new(&[("a", "b"), ("c1:d", "e")]))
        );
    }
}
