//! What the tests of the layer share.

use std::sync::Arc;

use headworks_agent::{Agent, Limiter};
use headworks_core::limits::parse;
use tokio::sync::watch;

/// A limiter with limits of its own. What exact limits need is there without the agent's running.
pub(crate) fn limiter(limits: &str) -> Limiter {
    let limits = watch::channel((1, Arc::new(parse(limits).unwrap()))).1;
    Agent::builder("test", "zone-a").standalone(limits).build().limiter()
}
