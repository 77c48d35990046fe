//! The status of a node, in the form that travels as JSON.

use std::collections::BTreeMap;

use headworks_agent::StoreStats;
use headworks_agent::tls::TlsStatus;
use headworks_core::what_if::{Basis, Effect};
use serde::{Deserialize, Serialize};

use crate::rlqs::RlqsView;

/// What a node sees of itself and of what is below it. Rates are in cost units a second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NodeStatus {
    /// The node's id.
    pub(crate) node: String,
    /// agent, aggregator or controller.
    pub(crate) tier: String,
    /// The zone that it stands in, of an agent or an aggregator.
    #[serde(default)]
    pub(crate) zone: String,
    /// The region of that zone, if it has one.
    #[serde(default)]
    pub(crate) region: String,
    /// The release it runs.
    pub(crate) version: String,
    /// What its plan is worth: none, fresh, alone or open. A controller's own is fresh.
    pub(crate) state: String,
    /// Time since its plan was computed.
    pub(crate) plan_age_ms: Option<u64>,
    /// How many sets of limits the controller has had.
    pub(crate) limits_generation: u64,
    /// Identifies the limits in force.
    pub(crate) limits_digest: Option<String>,
    /// Times that the limits could not be loaded; on a controller.
    pub(crate) limits_load_errors: u64,
    /// The limits that the controller holds back until they are confirmed.
    #[serde(default)]
    pub(crate) limits_held: Option<HeldView>,
    /// How many sets of limits it has held back.
    #[serde(default)]
    pub(crate) limits_held_back: u64,
    /// Whether a controller still goes by what its children say was in force.
    pub(crate) learning: bool,
    /// Whether the fleet's switch has turned every limit to shadow; as this node knows it.
    #[serde(default)]
    pub(crate) shadow_all: bool,
    /// The switch's version, higher with each throw; nodes that tell the same agree.
    #[serde(default)]
    pub(crate) shadow_all_version: u64,
    /// Requests to the admin port that were refused, for want of the right token or for a name that is not this machine's.
    #[serde(default)]
    pub(crate) admin_refused: u64,
    /// Entries of reports and plans that made no sense.
    pub(crate) refused_entries: u64,
    /// Entries of reports that told of more than is plausible, and count as what is.
    #[serde(default)]
    pub(crate) clipped_entries: u64,
    /// Live children that have their id in common with another one.
    #[serde(default)]
    pub(crate) twins: usize,
    /// The controllers of an aggregator.
    #[serde(default)]
    pub(crate) controllers: Vec<Controller>,
    /// Whether one of them hears more of the fleet than another.
    #[serde(default)]
    pub(crate) views_disagree: bool,
    /// Whether they go by different limits.
    #[serde(default)]
    pub(crate) limits_disagree: bool,
    /// Times that an agent could not write its state to disk.
    #[serde(default)]
    pub(crate) state_write_errors: u64,
    /// The store that counts exact limits for an agent, if it has one.
    #[serde(default)]
    pub(crate) store: Option<StoreView>,
    /// What an agent answered over gRPC.
    #[serde(default)]
    pub(crate) grpc: Vec<GrpcView>,
    /// Its credentials, if it has some.
    #[serde(default)]
    pub(crate) tls: Option<TlsView>,
    /// The Envoys that take quotas from an aggregator, if it serves any. Their streams are among the children, as agents.
    #[serde(default)]
    pub(crate) rlqs: Option<RlqsView>,
    /// Reports of children that were taken in.
    #[serde(default)]
    pub(crate) reports: u64,
    /// Reports that had to wait, since their child sent too many.
    #[serde(default)]
    pub(crate) reports_throttled: u64,
    /// Connections of the tree port that were closed, since nobody said hello on them in time.
    #[serde(default)]
    pub(crate) tree_closed_silent: u64,
    /// The same, since too many streams were opened on them.
    #[serde(default)]
    pub(crate) tree_closed_restless: u64,
    /// The zones below.
    pub(crate) zones: Vec<Zone>,
    /// The children attached.
    pub(crate) children: Vec<Child>,
    /// The limits, in pipeline order.
    pub(crate) limits: Vec<LimitView>,
}

/// Answers over gRPC.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GrpcView {
    /// `rls` or `ext_authz`.
    pub(crate) service: String,
    /// `ok`, `over_limit` or error.
    pub(crate) code: String,
    pub(crate) answers: u64,
}

impl From<(&str, &str, u64)> for GrpcView {
    fn from((service, code, answers): (&str, &str, u64)) -> Self {
        Self { service: service.to_owned(), code: code.to_owned(), answers }
    }
}

/// Limits that are held back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HeldView {
    /// Identifies them.
    pub(crate) digest: String,
    /// How many limits they are.
    pub(crate) limits: usize,
    /// Time since they came.
    pub(crate) age_ms: u64,
    /// The limits for which they are held back, at most a hundred; what they would have done to the demand when they came.
    pub(crate) causes: Vec<EffectView>,
}

/// What other limits do to the demand of one limit. Rates are in cost units a second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EffectView {
    pub(crate) limit: String,
    /// What it goes by before the change; `none` where nothing like it is in force.
    pub(crate) from: String,
    /// What it goes by after the change.
    pub(crate) to: String,
    /// From where its demand is known: counted, `other_match`, like or unknown.
    pub(crate) basis: String,
    /// Offered.
    pub(crate) offered: f64,
    /// Dropped of it by the limits in force.
    pub(crate) dropped: f64,
    /// Dropped of it by the others.
    pub(crate) would_drop: f64,
    /// Dropped by the others of what passes now.
    pub(crate) newly_dropped: f64,
    /// The same as a part of what passes now, from 0 to 1.
    pub(crate) newly_part: f64,
    /// All this in a sentence.
    pub(crate) said: String,
}

impl From<&Effect> for EffectView {
    fn from(effect: &Effect) -> Self {
        let (from, to) = effect.step();
        let basis = match effect.basis {
            Basis::Counted => "counted",
            Basis::OtherMatch => "other_match",
            Basis::Like(_) => "like",
            Basis::Unknown => "unknown",
        };
        Self {
            limit: effect.limit.name.to_string(),
            from,
            to,
            basis: basis.to_owned(),
            offered: effect.offered,
            dropped: effect.dropped,
            would_drop: effect.would_drop,
            newly_dropped: effect.newly,
            newly_part: effect.newly_part(),
            said: effect.to_string(),
        }
    }
}

/// One controller, as an aggregator hears it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Controller {
    /// Its address, as configured.
    pub(crate) address: String,
    pub(crate) attached: bool,
    /// Whether its plans are those that the aggregator passes on.
    pub(crate) obeyed: bool,
    /// Time since it computed the last plan that came; null when none did.
    pub(crate) plan_age_ms: Option<u64>,
    /// What it heard by then.
    pub(crate) aggregators: u32,
    pub(crate) agents: u32,
    pub(crate) demand: f64,
}

/// One zone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Zone {
    pub(crate) zone: String,
    pub(crate) aggregators: usize,
    pub(crate) agents: u32,
}

/// One child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Child {
    pub(crate) node: String,
    pub(crate) tier: String,
    pub(crate) zone: String,
    pub(crate) agents: u32,
    /// Time since its last report.
    pub(crate) report_age_ms: u64,
    /// Whether it has not reported for so long that what it was offered no longer counts.
    #[serde(default)]
    pub(crate) silent: bool,
    pub(crate) buckets: usize,
}

/// One limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LimitView {
    pub(crate) name: String,
    /// Units a second; null when unlimited.
    pub(crate) rate: Option<f64>,
    /// Cost units for each `unit`, as the limits file has it; null when unlimited, and from earlier releases.
    #[serde(default)]
    pub(crate) amount: Option<u64>,
    /// second, minute, hour or day.
    #[serde(default)]
    pub(crate) unit: Option<String>,
    pub(crate) mode: String,
    /// Whether agents and their store count it one by one; what parents tell of its traffic is nothing.
    #[serde(default)]
    pub(crate) exact: bool,
    pub(crate) offered: f64,
    pub(crate) admitted: f64,
    pub(crate) dropped: f64,
    pub(crate) would_drop: f64,
    /// The part of the offered that the plan says to drop.
    pub(crate) ratio: f64,
    pub(crate) buckets: usize,
    /// Cost units of values that find no place among `max_buckets`, and share one bucket; since the node started.
    #[serde(default)]
    pub(crate) untracked: u64,
    /// Cost units that a budget has left in the bucket with least, below zero when it owes; null for limits per second,
    /// and on agents, which are told headrooms.
    #[serde(default)]
    pub(crate) tokens: Option<f64>,
    /// What is offered as a part of what may pass, in the bucket where that is most; null on agents, for bans, and for a budget
    /// that is used up.
    #[serde(default)]
    pub(crate) load: Option<f64>,
    /// The buckets that are offered most.
    pub(crate) top: Vec<Top>,
    /// Counted since the node started.
    pub(crate) totals: Totals,
}

/// What was counted since a node started, in cost units.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
    pub(crate) dropped: u64,
    pub(crate) would_drop: u64,
}

/// One bucket among those that are offered most.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Top {
    /// The region, or region and zone, in which it counts; empty for a limit that holds globally.
    #[serde(default)]
    pub(crate) scope: Vec<String>,
    /// The values that tell it apart; null for all that are not tracked.
    pub(crate) values: Option<Vec<String>>,
    pub(crate) offered: f64,
    pub(crate) ratio: f64,
    /// Cost units that it has left of a budget.
    #[serde(default)]
    pub(crate) tokens: Option<f64>,
}

/// A store of exact limits, as an agent sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StoreView {
    /// Whether it answers at present.
    pub(crate) up: bool,
    /// Calls to it.
    pub(crate) calls: u64,
    /// Checks without an answer, by cause: timeout, error or away.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Checks of limits answered without a call, since their bucket was known to be spent.
    pub(crate) answered_here: u64,
}

impl From<StoreStats> for StoreView {
    fn from(stats: StoreStats) -> Self {
        let failures = [("timeout", stats.timeouts), ("error", stats.errors), ("away", stats.away)];
        let failures = failures.map(|(cause, count)| (cause.to_owned(), count)).into();
        Self { up: stats.up, calls: stats.calls, failures, answered_here: stats.answered_here }
    }
}

/// A node's credentials, and whom they kept out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TlsView {
    /// When the certificate expires, in seconds since 1970.
    pub(crate) not_after: u64,
    pub(crate) serial: String,
    /// Times that a new certificate could not be used.
    pub(crate) reload_errors: u64,
    /// Peers refused, by cause.
    pub(crate) refused: BTreeMap<String, u64>,
}

impl From<TlsStatus> for TlsView {
    fn from(status: TlsStatus) -> Self {
        let refused = status.refused.iter().map(|(cause, count)| (cause.name().to_owned(), *count));
        Self {
            not_after: status.not_after,
            serial: status.serial,
            reload_errors: status.reload_errors,
            refused: refused.collect(),
        }
    }
}
