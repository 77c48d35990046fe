//! Limits that hold for each zone or region by itself: where a bucket belongs.
//!
//! Agents need not know where they stand: they speak of buckets without a scope, and whoever hears them knows. From the
//! aggregator on a bucket is named with the instance of its scope.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::{Child, Children};
use crate::bucket::BucketKey;
use crate::limits::{Limit, LimitSet, Scope};
use crate::message::Tier;

/// Where nodes stand.
#[derive(Clone, Debug)]
pub(super) struct Stand {
    region: String,
    zone: String,
}

/// The limits that do not hold for the whole fleet.
pub(super) fn narrow_ones(limits: &LimitSet) -> HashMap<Arc<str>, Scope> {
    let narrow = limits.limits().iter().filter(|limit| limit.scope != Scope::Global);
    narrow.map(|limit| (limit.name.clone(), limit.scope)).collect()
}

impl Children {
    /// All children stand here.
    #[must_use]
    pub(crate) fn standing_in(self, region: &str, zone: &str) -> Self {
        Self { stands: Some(Stand { region: region.to_owned(), zone: zone.to_owned() }), ..self }
    }

    /// A bucket that a child names, with the instance of its scope. `None` if it is not the child's: a zone has no part in the
    /// buckets of others, and names none by a scope that the limit does not have.
    pub(super) fn localised<'k>(&self, child: &Child, key: &'k BucketKey) -> Option<Cow<'k, BucketKey>> {
        let scope = self.scopes.get(&key.limit).copied().unwrap_or_default();
        let hello = &child.hello;
        let instance = match &self.stands {
            Some(stand) => scope.instance(&stand.region, &stand.zone),
            None => scope.instance(&hello.region, &hello.zone),
        };
        if key.scope == instance {
            Some(Cow::Borrowed(key))
        } else {
            let is_bare = hello.tier == Tier::Agent && key.scope.is_empty();
            is_bare.then(|| Cow::Owned(BucketKey { scope: instance, ..key.clone() }))
        }
    }

    /// The bucket of a limit without `per`, if every child hears of the same one.
    pub(super) fn whole_of(&self, limit: &Limit) -> Option<BucketKey> {
        let whole = BucketKey::whole(limit.name.clone());
        match (limit.scope, &self.stands) {
            (Scope::Global, _) => Some(whole),
            (_, None) => None,
            (scope, Some(stand)) => {
                Some(BucketKey { scope: scope.instance(&stand.region, &stand.zone), ..whole })
            }
        }
    }

    /// Whether every child hears of this bucket without asking: it is one of a limit without `per`, and of where all stand.
    pub(crate) fn is_for_all(&self, key: &BucketKey) -> bool {
        let stand = self.stands.as_ref();
        let here = |stand: &Stand| key.scope == Scope::Zone.instance(&stand.region, &stand.zone);
        let region = |stand: &Stand| key.scope == Scope::Region.instance(&stand.region, &stand.zone);
        key.is_whole() && (key.scope.is_empty() || stand.is_some_and(|stand| here(stand) || region(stand)))
    }
}

impl Child {
    /// A bucket as this child speaks of it.
    pub(super) fn as_it_says(&self, key: &BucketKey) -> BucketKey {
        match self.hello.tier {
            Tier::Agent => BucketKey { scope: Vec::new(), ..key.clone() },
            Tier::Aggregator | Tier::Controller => key.clone(),
        }
    }
}
