//! Limits for tests.

use super::LimitView;

/// A limit that is offered so much, and lets all of it pass.
pub(crate) fn limit(name: &str, offered: f64) -> LimitView {
    let told = serde_json::json!({
        "name": name, "rate": 400.0, "mode": "enforce", "offered": offered, "admitted": offered, "dropped": 0.0,
        "would_drop": 0.0, "ratio": 0.0, "buckets": 1, "top": [],
        "totals": {"offered": 0, "admitted": 0, "dropped": 0, "would_drop": 0},
    });
    serde_json::from_value(told).unwrap()
}
