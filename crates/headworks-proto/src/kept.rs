//! What an agent keeps on disk.

use std::sync::Arc;
use std::time::Duration;

use headworks_core::agent::{Kept, KeptBucket};
use headworks_core::limits::LimitSet;
use headworks_core::units::Headroom;

use crate::report::{micros, narrow};
use crate::{WireError, bucket, limits, plan, wire};

/// The message of what an agent keeps, saved at this time by the clock on the wall.
pub fn kept_message(kept: &Kept, saved_unix_millis: u64) -> wire::Kept {
    let encode = |kept: &KeptBucket| wire::KeptBucket {
        key: Some(bucket::encode(&kept.key)),
        headroom: narrow(kept.headroom.value()),
        demand: kept.demand,
    };
    wire::Kept {
        saved_unix_millis,
        age_micros: kept.age.map_or(u64::MAX, micros),
        view: Some(plan::encode_view(kept.view)),
        generation: kept.generation,
        limits: Some(limits::encode(&kept.limits)),
        buckets: kept.buckets.iter().map(encode).collect(),
    }
}

/// What was kept, with its age at the saving, and how many of its entries made no sense and are left out.
///
/// # Errors
/// If it holds no limits.
pub fn decode_kept(message: wire::Kept) -> Result<(Kept, u32), WireError> {
    let mut refused = 0;
    let set = message.limits.ok_or(WireError::Missing("kept.limits"))?;
    let kept = Kept {
        age: Some(Duration::from_micros(message.age_micros)),
        view: plan::decode_view(message.view.unwrap_or_default()),
        generation: message.generation,
        limits: Arc::new(LimitSet::new(limits::decode(set, &mut refused))),
        buckets: buckets(message.buckets, &mut refused),
    };
    Ok((kept, refused))
}

fn buckets(buckets: Vec<wire::KeptBucket>, refused: &mut u32) -> Vec<KeptBucket> {
    let all = buckets.len();
    let decoded: Vec<KeptBucket> = buckets.into_iter().filter_map(decode_bucket).collect();
    *refused = refused.saturating_add(u32::try_from(all - decoded.len()).unwrap_or(u32::MAX));
    decoded
}

fn decode_bucket(kept: wire::KeptBucket) -> Option<KeptBucket> {
    let demand = Some(kept.demand).filter(|demand| demand.is_finite() && *demand >= 0.0)?;
    let headroom = Headroom::new(f64::from(kept.headroom))?;
    Some(KeptBucket { key: bucket::decode(kept.key?)?, headroom, demand })
}
