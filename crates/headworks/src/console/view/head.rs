//! What stands above every page: the controller, its limits, and what somebody should know at once.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::refused::RefusalSummary;
use crate::status::{HeldView, NodeStatus, State};

/// Reasons told why limits are held back.
const CAUSES: usize = 10;

#[derive(Debug, Serialize)]
pub(in crate::console) struct Head {
    node: String,
    version: String,
    /// When this was so, in seconds since 1970.
    at: f64,
    generation: u64,
    digest: Option<String>,
    learning: bool,
    shadow_all: bool,
    twins: usize,
    agents: u64,
    aggregators: usize,
    zones: usize,
    /// Children that have not reported for too long.
    silent: usize,
    limits: usize,
    /// How many limits are in each state.
    states: BTreeMap<State, usize>,
    held: Option<Held>,
    refused: RefusalSummary,
}

/// Limits that wait to be confirmed.
#[derive(Debug, Serialize)]
struct Held {
    digest: String,
    age_ms: u64,
    causes: Vec<String>,
    more: usize,
}

impl Head {
    /// Computed once for each sample: it goes through all limits.
    pub(in crate::console) fn of(status: &NodeStatus, refused: RefusalSummary, at: f64) -> Self {
        Self {
            node: status.node.clone(),
            version: status.version.clone(),
            at: (at * 1000.0).round() / 1000.0,
            generation: status.limits_generation,
            digest: status.limits_digest.clone(),
            learning: status.learning,
            shadow_all: status.shadow_all,
            twins: status.twins,
            agents: status.zones.iter().map(|zone| u64::from(zone.agents)).sum(),
            aggregators: status.zones.iter().map(|zone| zone.aggregators).sum(),
            zones: status.zones.len(),
            silent: status.children.iter().filter(|child| child.silent).count(),
            limits: status.limits.len(),
            states: states(status),
            held: status.limits_held.as_ref().map(Held::of),
            refused,
        }
    }
}

fn states(status: &NodeStatus) -> BTreeMap<State, usize> {
    let mut states = BTreeMap::new();
    for view in &status.limits {
        *states.entry(State::of(view, status)).or_default() += 1;
    }
    states
}

impl Held {
    fn of(held: &HeldView) -> Self {
        Self {
            digest: held.digest.clone(),
            age_ms: held.age_ms,
            causes: held.causes.iter().take(CAUSES).map(|cause| cause.said.clone()).collect(),
            more: held.causes.len().saturating_sub(CAUSES),
        }
    }
}
