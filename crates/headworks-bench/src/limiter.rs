//! Limiters whose ratios no control plane sets.

use std::sync::Arc;

use headworks_agent::{Agent, Limiter};
use headworks_core::limits::parse;
use headworks_core::units::Headroom;
use tokio::sync::watch;

/// One request in ten is dropped.
pub(crate) const HEADROOM: f64 = 0.9;
/// The keys of all requests.
pub(crate) const KEYS: [&str; 3] = ["service", "tenant", "route"];
/// A limit that tells requests apart by all of them.
pub(crate) const BY_KEY: &str =
    "{name: each, per: [service, tenant, route], rate: 1000/second, max_buckets: 1000000}";

/// A limiter under these limits.
pub(crate) fn limiter(limits: &str) -> Limiter {
    let limits = parse(&format!("limits: [{limits}]")).expect("the limits are sound");
    let (_, limits) = watch::channel((1, Arc::new(limits)));
    Agent::builder("bench", "here").standalone(limits).build().limiter()
}

/// The headroom of all buckets.
pub(crate) fn headroom() -> Headroom {
    Headroom::new(HEADROOM).expect("it is a number")
}
