//! Many agents in this process, as tasks.

use std::time::Duration;

use headworks_agent::{Agent, Attributes, Limiter, PlanState};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Agents attach one after the other, as hosts start: so their reports do not all come at the same moment later.
const SPREAD: Duration = Duration::from_millis(1);
const LEAST_SPREAD: Duration = Duration::from_secs(1);
/// Those who ask each agent once.
const CALLERS: [&str; 4] = ["web", "app", "batch", "partner"];

/// Running agents; dropped, they say goodbye.
pub(super) struct Crowd {
    limiters: Vec<Limiter>,
    _stop: DropGuard,
}

impl Crowd {
    /// Starts so many agents of a zone below the aggregator at this URL.
    pub(super) fn start(agents: u32, zone: &str, aggregator: &str) -> Self {
        let stop = CancellationToken::new();
        let spread = LEAST_SPREAD.max(SPREAD * agents);
        let start = |number: u32| {
            let agent = Agent::builder(format!("idle-{number}"), zone).aggregators([aggregator]).build();
            let (limiter, stop) = (agent.limiter(), stop.clone());
            tokio::spawn(async move {
                sleep(spread * number / agents).await;
                agent.run(stop).await;
            });
            limiter
        };
        Self { limiters: (0..agents).map(start).collect(), _stop: stop.drop_guard() }
    }

    pub(super) fn len(&self) -> usize {
        self.limiters.len()
    }

    /// How many have a fresh plan.
    pub(super) fn fresh(&self) -> usize {
        self.limiters.iter().filter(|limiter| limiter.stats().link.state == PlanState::Fresh).count()
    }

    /// Asks each agent once for each caller, so that it has buckets to report.
    pub(super) fn ask(&self) {
        for limiter in &self.limiters {
            for caller in CALLERS {
                let _ = limiter.check(Attributes::new(&[("caller", caller)]), None);
            }
        }
    }
}
