//! Samples for tests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use headworks_core::limits::parse;

use super::super::sample::Sample;
pub(in crate::console) use crate::status::fixture::limit;
use crate::status::{LimitView, NodeStatus};

/// A fleet with these limits, each of 400/second.
pub(in crate::console) fn sample(limits: Vec<LimitView>) -> Sample {
    let listed: Vec<String> =
        limits.iter().map(|limit| format!("{{name: {:?}, rate: 400/second}}", limit.name)).collect();
    let set = parse(&format!("limits: [{}]", listed.join(", "))).unwrap();
    Sample {
        status: NodeStatus { limits, ..NodeStatus::default() },
        limits: Arc::new(set),
        watched: HashMap::new(),
        took: Duration::ZERO,
    }
}
