//! Bucket keys.

use headworks_core::bucket::{BucketKey, Values};
use headworks_core::matching::MAX_PER_KEYS;

use crate::wire;

/// Longest name of a limit, in bytes.
pub(crate) const MAX_NAME: usize = 128;
/// Longest value, in bytes.
pub(crate) const MAX_VALUE: usize = 1024;

pub(crate) fn encode(key: &BucketKey) -> wire::BucketKey {
    let (values, rest) = match &key.values {
        Values::Of(values) => (values.clone(), false),
        Values::Rest => (Vec::new(), true),
    };
    wire::BucketKey { limit: key.limit.to_string(), scope: key.scope.clone(), values, rest }
}

/// `None` for a key that no limit gives.
pub(crate) fn decode(key: wire::BucketKey) -> Option<BucketKey> {
    let named = !key.limit.is_empty() && key.limit.len() <= MAX_NAME;
    let short =
        |texts: &[String]| texts.len() <= MAX_PER_KEYS && texts.iter().all(|text| text.len() <= MAX_VALUE);
    if !named || !short(&key.scope) || !short(&key.values) || key.rest && !key.values.is_empty() {
        return None;
    }
    let values = if key.rest { Values::Rest } else { Values::Of(key.values) };
    Some(BucketKey { limit: key.limit.into(), scope: key.scope, values })
}
