//! Every metric of every tier, made from a node's status at the moment of the scrape.
//!
//! Each scrape fills a recorder of its own: the request path touches nothing but its counters, and series of limits
//! that are gone are gone. Labels are names of limits and tiers, never bucket values.

use headworks_core::ladder::PlanState;
use metrics::{Label, counter, describe_counter, describe_gauge, gauge, with_local_recorder};
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::rlqs::RlqsView;
use crate::status::{LimitView, NodeStatus, StoreView, TlsView};

/// What only rises, and what it counts.
const COUNTERS: [(&str, &str); 20] = [
    ("headworks_offered_total", "Cost units that reached the limit, before it dropped anything"),
    ("headworks_admitted_total", "Cost units that the limit let pass"),
    ("headworks_dropped_total", "Cost units that the limit dropped"),
    ("headworks_would_drop_total", "Cost units that the limit would have dropped, were it enforced"),
    (
        "headworks_untracked_total",
        "Cost units of values that find no place among the limit's max_buckets, and share one bucket",
    ),
    ("headworks_limits_load_errors_total", "Times that limits could not be loaded"),
    (
        "headworks_limits_held_back_total",
        "Times that limits were held back, since they would newly drop much of what passes",
    ),
    ("headworks_refused_entries_total", "Entries of reports and plans that made no sense"),
    (
        "headworks_clipped_entries_total",
        "Entries of reports that told of more than is plausible, and counted as what is",
    ),
    ("headworks_state_write_errors_total", "Times that the agent could not write its state to disk"),
    (
        "headworks_admin_refused_total",
        "Requests to the admin port that were refused, for want of the right token or for the name they asked by",
    ),
    ("headworks_tls_reload_errors_total", "Times that a new certificate could not be used"),
    ("headworks_tls_refused_total", "Peers refused in the handshake or for their role, by cause"),
    ("headworks_reports_throttled_total", "Reports that had to wait, since their child sent too many"),
    ("headworks_store_calls_total", "Calls to the store of exact limits"),
    (
        "headworks_store_failures_total",
        "Checks of exact limits without an answer from the store, by cause: timeout, error or away",
    ),
    (
        "headworks_store_spared_total",
        "Checks of exact limits answered without a call to the store, since their bucket was known to be spent",
    ),
    (
        "headworks_grpc_answers_total",
        "Answers over gRPC by service (rls, ext_authz) and code: ok, over_limit or error",
    ),
    ("headworks_tree_closed_total", "Connections of children closed: no hello in time, or too many streams"),
    (
        "headworks_rlqs_refused_total",
        "Buckets of Envoys that were refused since they are many or their names long, and streams ended since they were malformed",
    ),
];

/// What is so at the moment.
const GAUGES: [(&str, &str); 24] = [
    ("headworks_drop_ratio", "Part of the offered that is dropped, or would be in shadow, from 0 to 1"),
    ("headworks_limit_rate", "Cost units a second that the limit lets pass; +Inf when unlimited"),
    (
        "headworks_budget_tokens",
        "Cost units that the budget has left, in the bucket that has least; below 0 is owed. Only on controllers and aggregators, for limits per minute, hour and day",
    ),
    (
        "headworks_limit_load",
        "What is offered as a part of what may pass, in the bucket of the limit where that is most; above 1 it drops. Only on controllers and aggregators",
    ),
    ("headworks_offered_rate", "Cost units a second that reach the limit at present"),
    ("headworks_buckets", "Buckets that the limit has on this node"),
    ("headworks_plan_age_seconds", "Time since the controller computed the plan in hand"),
    ("headworks_plan_state", "1 for what the plan in hand is worth: none, fresh, alone or open"),
    ("headworks_children", "Children attached, by tier"),
    ("headworks_agents", "Agents at or below the children"),
    ("headworks_limits_info", "1, with the digest of the limits in force as a label"),
    ("headworks_limits_generation", "How many sets of limits the controller has had"),
    ("headworks_limits_held", "1 while the controller holds limits back until they are confirmed"),
    ("headworks_twin_children", "Live children that have their id in common with another one"),
    ("headworks_controllers", "Controllers of the aggregator: configured, and attached to"),
    (
        "headworks_controllers_disagree",
        "1 while controllers differ: in how much of the fleet they hear (view), or in their limits (limits)",
    ),
    ("headworks_learning", "1 while the controller goes by what its children say was in force"),
    (
        "headworks_shadow_all",
        "1 while the fleet's switch has turned every limit to shadow, as this node knows it",
    ),
    (
        "headworks_tls_certificate_expires_timestamp_seconds",
        "When this node's own certificate expires, in seconds since 1970",
    ),
    ("headworks_store_up", "1 while the store of exact limits answers"),
    ("headworks_build_info", "1, with the release and the tier as labels"),
    ("headworks_rlqs_streams", "Envoys that take quotas, one for each of their domains"),
    ("headworks_rlqs_buckets", "Buckets of these Envoys"),
    (
        "headworks_node_info",
        "1, with the node's id, tier, zone and region as labels, by which other metrics are told apart",
    ),
];

/// The status as Prometheus text.
pub(crate) fn render(status: &NodeStatus) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    with_local_recorder(&recorder, || {
        describe();
        record_node(status);
        status.limits.iter().for_each(record_limit);
    });
    recorder.handle().render()
}

fn describe() {
    COUNTERS.iter().for_each(|(name, text)| describe_counter!(*name, *text));
    GAUGES.iter().for_each(|(name, text)| describe_gauge!(*name, *text));
}

#[allow(clippy::cast_precision_loss, reason = "gauges are floats; none of these comes near 2^53")]
fn record_node(status: &NodeStatus) {
    gauge!("headworks_build_info", "version" => status.version.clone(), "tier" => status.tier.clone())
        .set(1.0);
    gauge!(
        "headworks_node_info",
        "node" => status.node.clone(),
        "tier" => status.tier.clone(),
        "zone" => status.zone.clone(),
        "region" => status.region.clone(),
    )
    .set(1.0);
    for state in PlanState::ALL.map(PlanState::name) {
        gauge!("headworks_plan_state", "state" => state).set(f64::from(u8::from(state == status.state)));
    }
    if let Some(age) = status.plan_age_ms {
        gauge!("headworks_plan_age_seconds").set(age as f64 / 1000.0);
    }
    gauge!("headworks_limits_generation").set(status.limits_generation as f64);
    if let Some(digest) = &status.limits_digest {
        gauge!("headworks_limits_info", "digest" => digest.clone()).set(1.0);
    }
    counter!("headworks_refused_entries_total").absolute(status.refused_entries);
    gauge!("headworks_shadow_all").set(f64::from(u8::from(status.shadow_all)));
    counter!("headworks_admin_refused_total").absolute(status.admin_refused);
    status.tls.iter().for_each(record_tls);
    status.store.iter().for_each(record_store);
    for grpc in &status.grpc {
        counter!("headworks_grpc_answers_total", "service" => grpc.service.clone(), "code" => grpc.code.clone())
            .absolute(grpc.answers);
    }
    if status.tier != "agent" {
        counter!("headworks_reports_throttled_total").absolute(status.reports_throttled);
        counter!("headworks_tree_closed_total", "cause" => "silent").absolute(status.tree_closed_silent);
        counter!("headworks_tree_closed_total", "cause" => "streams").absolute(status.tree_closed_restless);
    }
    match status.tier.as_str() {
        "controller" => {
            record_children(status, "aggregator");
            counter!("headworks_limits_load_errors_total").absolute(status.limits_load_errors);
            counter!("headworks_limits_held_back_total").absolute(status.limits_held_back);
            gauge!("headworks_limits_held").set(f64::from(u8::from(status.limits_held.is_some())));
            gauge!("headworks_learning").set(f64::from(u8::from(status.learning)));
        }
        "aggregator" => {
            record_children(status, "agent");
            record_controllers(status);
            status.rlqs.iter().for_each(record_rlqs);
        }
        "agent" => {
            counter!("headworks_state_write_errors_total").absolute(status.state_write_errors);
            counter!("headworks_limits_load_errors_total").absolute(status.limits_load_errors);
        }
        _ => {}
    }
}

#[allow(clippy::cast_precision_loss, reason = "gauges are floats; controllers are few")]
fn record_controllers(status: &NodeStatus) {
    let attached = status.controllers.iter().filter(|controller| controller.attached).count();
    gauge!("headworks_controllers", "state" => "configured").set(status.controllers.len() as f64);
    gauge!("headworks_controllers", "state" => "attached").set(attached as f64);
    let disagree = |about, is_so| {
        gauge!("headworks_controllers_disagree", "about" => about).set(f64::from(u8::from(is_so)));
    };
    disagree("view", status.views_disagree);
    disagree("limits", status.limits_disagree);
}

#[allow(clippy::cast_precision_loss, reason = "gauges are floats; both are bounded")]
fn record_rlqs(rlqs: &RlqsView) {
    gauge!("headworks_rlqs_streams").set(rlqs.streams as f64);
    gauge!("headworks_rlqs_buckets").set(rlqs.buckets as f64);
    for (cause, refused) in &rlqs.refused {
        counter!("headworks_rlqs_refused_total", "cause" => cause.clone()).absolute(*refused);
    }
}

fn record_store(store: &StoreView) {
    gauge!("headworks_store_up").set(f64::from(u8::from(store.up)));
    counter!("headworks_store_calls_total").absolute(store.calls);
    counter!("headworks_store_spared_total").absolute(store.answered_here);
    for (cause, count) in &store.failures {
        counter!("headworks_store_failures_total", "cause" => cause.clone()).absolute(*count);
    }
}

#[allow(clippy::cast_precision_loss, reason = "gauges are floats; seconds since 1970 stay below 2^53")]
fn record_tls(tls: &TlsView) {
    gauge!("headworks_tls_certificate_expires_timestamp_seconds").set(tls.not_after as f64);
    counter!("headworks_tls_reload_errors_total").absolute(tls.reload_errors);
    for (cause, refused) in &tls.refused {
        counter!("headworks_tls_refused_total", "cause" => cause.clone()).absolute(*refused);
    }
}

#[allow(clippy::cast_precision_loss, reason = "gauges are floats; children are few")]
fn record_children(status: &NodeStatus, tier: &'static str) {
    counter!("headworks_clipped_entries_total").absolute(status.clipped_entries);
    gauge!("headworks_twin_children").set(status.twins as f64);
    let children = status.children.iter().filter(|child| child.tier == tier).count();
    gauge!("headworks_children", "tier" => tier).set(children as f64);
    gauge!("headworks_agents").set(status.children.iter().map(|child| f64::from(child.agents)).sum::<f64>());
}

#[allow(clippy::cast_precision_loss, reason = "gauges are floats; buckets are bounded")]
fn record_limit(limit: &LimitView) {
    let labels = || vec![Label::new("limit", limit.name.clone())];
    counter!("headworks_offered_total", labels()).absolute(limit.totals.offered);
    counter!("headworks_admitted_total", labels()).absolute(limit.totals.admitted);
    counter!("headworks_dropped_total", labels()).absolute(limit.totals.dropped);
    counter!("headworks_would_drop_total", labels()).absolute(limit.totals.would_drop);
    counter!("headworks_untracked_total", labels()).absolute(limit.untracked);
    gauge!("headworks_drop_ratio", labels()).set(limit.ratio);
    gauge!("headworks_limit_rate", labels()).set(limit.rate.unwrap_or(f64::INFINITY));
    if let Some(tokens) = limit.tokens {
        gauge!("headworks_budget_tokens", labels()).set(tokens);
    }
    if let Some(load) = limit.load {
        gauge!("headworks_limit_load", labels()).set(load);
    }
    gauge!("headworks_offered_rate", labels()).set(limit.offered);
    gauge!("headworks_buckets", labels()).set(limit.buckets as f64);
}
