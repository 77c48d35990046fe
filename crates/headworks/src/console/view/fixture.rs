//! Samples for tests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use headworks_core::limits::parse;

use super::super::sample::Sample;
use crate::status::{LimitView, NodeStatus};

/// A limit that is offered so much, and lets all of it pass.
pub(in crate::console) fn limit(name: &str, offered: f64) -> LimitView {
    let told = serde_json::json!({
        "name": name, "rate": 400.0, "mode": "enforce", "offered": offered, "admitted": offered, "dropped": 0.0,
        "would_drop": 0.0, "ratio": 0.0, "buckets": 1, "top": [],
        "totals": {"offered": 0, "admitted": 0, "dropped": 0, "would_drop": 0},
    });
    serde_json::from_value(told).unwrap()
}

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
