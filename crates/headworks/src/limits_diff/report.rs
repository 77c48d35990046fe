//! What would change, as one value: `--json` prints it, the table is made of it.

use std::collections::{BTreeMap, HashMap};

use headworks_core::bucket::{BucketKey, Values};
use headworks_core::limits::{Difference, DifferenceKind, FieldDifference, difference, parse};
use headworks_core::what_if::{Effect, effects};
use serde::Serialize;

use crate::admin::Running;
use crate::failure::Failure;
use crate::limits_file::Loaded;
use crate::status::EffectView;

/// What limits files would change.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) controller: String,
    /// Whether it has just started, and may not have heard of all demand yet.
    pub(super) learning: bool,
    pub(super) running_generation: u64,
    pub(super) running_digest: String,
    pub(super) new_digest: String,
    /// Whether the controller would hold the files back until they are confirmed.
    pub(super) would_be_held: bool,
    /// Whether the files confirm themselves.
    pub(super) confirmed: bool,
    /// The limits that would change; none if nothing would.
    pub(super) limits: Vec<LimitChange>,
}

/// One limit that would change.
#[derive(Debug, Serialize)]
pub(super) struct LimitChange {
    pub(super) limit: String,
    /// added, removed or changed.
    pub(super) change: &'static str,
    pub(super) fields: Vec<FieldChange>,
    /// What it would do at present; null for one that is removed.
    pub(super) effect: Option<EffectView>,
    /// Demand that the controller did not list by bucket, so that its effect is not known, in cost units a second.
    pub(super) unlisted: f64,
}

/// One field, or one override.
#[derive(Debug, Serialize)]
pub(super) struct FieldChange {
    pub(super) field: String,
    pub(super) old: String,
    pub(super) new: String,
}

impl Report {
    pub(super) fn of(controller: &str, running: Running, new: &Loaded) -> Result<Self, Failure> {
        let old = parse(&running.text).map_err(|faults| {
            let advice = "it may be of a later release than this program";
            Failure::Failed(format!("{controller} tells limits that cannot be read; {advice}: {faults}"))
        })?;
        let (demand, unlisted) = demand(&running);
        let effects = effects(&old, &new.limits, demand.iter().map(|(key, offered)| (key, *offered)));
        let is_held =
            running.hold_back.is_some_and(|most| effects.iter().any(|effect| effect.is_beyond(most)));
        let by_name: HashMap<&str, &Effect> =
            effects.iter().map(|effect| (&*effect.limit.name, effect)).collect();
        let change = |difference| LimitChange::of(difference, &by_name, &unlisted);
        Ok(Self {
            controller: controller.to_owned(),
            learning: running.learning,
            running_generation: running.generation,
            new_digest: new.limits.digest().to_string(),
            would_be_held: is_held && !new.confirmed,
            confirmed: new.confirmed,
            limits: difference(&old, &new.limits).into_iter().map(change).collect(),
            running_digest: running.digest,
        })
    }
}

impl LimitChange {
    fn of(difference: Difference, effects: &HashMap<&str, &Effect>, unlisted: &BTreeMap<&str, f64>) -> Self {
        let effect = effects.get(&*difference.limit);
        let source = effect.and_then(|effect| effect.before.as_ref());
        let (change, fields) = match difference.kind {
            DifferenceKind::Added => ("added", Vec::new()),
            DifferenceKind::Removed => ("removed", Vec::new()),
            DifferenceKind::Changed(fields) => ("changed", fields),
        };
        Self {
            limit: difference.limit.to_string(),
            change,
            fields: fields.into_iter().map(FieldChange::from).collect(),
            effect: effect.map(|effect| EffectView::from(*effect)),
            unlisted: source.and_then(|source| unlisted.get(&*source.name)).copied().unwrap_or_default(),
        }
    }
}

impl From<FieldDifference> for FieldChange {
    fn from(difference: FieldDifference) -> Self {
        let FieldDifference { field, old, new } = difference;
        Self { field, old, new }
    }
}

/// What each bucket is offered, and of each limit what is not listed by bucket.
fn demand(running: &Running) -> (Vec<(BucketKey, f64)>, BTreeMap<&str, f64>) {
    let mut listed = Vec::new();
    let mut unlisted = BTreeMap::new();
    for (limit, demand) in &running.demand {
        let limit_name: std::sync::Arc<str> = limit.as_str().into();
        listed.extend(demand.buckets.iter().map(|bucket| {
            let values = bucket.values.clone().map_or(Values::Rest, Values::Of);
            let key = BucketKey { limit: limit_name.clone(), scope: bucket.scope.clone(), values };
            (key, bucket.offered)
        }));
        unlisted.insert(limit.as_str(), demand.unlisted);
    }
    (listed, unlisted)
}
