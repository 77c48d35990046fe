//! End to end: the real program in separate processes on loopback, under real load.
//!
//! Every port is taken free, every process dies with its test, and a failure shows what each one wrote last.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]
#![allow(clippy::cast_precision_loss, reason = "counts of a few seconds are far below 2^53")]

mod harness;

mod admin;
mod aggregator_away;
mod alerts;
mod bans;
mod bench_cost;
mod bench_idle;
mod bench_surge;
mod budgets;
mod chaos;
mod churn;
mod command_line;
mod configmap;
mod console;
mod controller_away;
mod deployments;
mod descriptors;
mod dev;
mod drain;
mod envoy_module;
mod exact;
mod exact_store;
mod failover;
mod faults_links;
mod hold_back;
mod hostile_plan;
mod hostile_text;
mod http_api;
mod idle;
mod instructions;
mod large_limits;
mod latency_in_faults;
mod limit_held;
mod limits_diff;
mod limits_import;
mod listeners;
mod matching;
mod metrics_text;
mod monitoring;
mod parent_missing;
mod pipeline;
mod proxies;
mod release;
mod reload;
mod rlqs;
mod rls;
mod rollout;
mod scopes;
mod shadow;
mod shadow_all;
mod state_dir;
mod status;
mod suspended;
mod tls;
mod tls_refused;
mod top;
mod traces;
mod tree_bounds;
mod trial;

/// One bucket of 400/s, the limit of most tests.
const LIMIT_400: &str = "limits:\n  - {name: checkout, match: {service: checkout}, rate: 400/second}\n";
