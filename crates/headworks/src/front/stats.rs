//! `/stats`: what the agent has counted, and how it is connected, for humans and scripts.

use headworks_agent::{LimitStats, LimiterStats};
use serde::Serialize;

use super::answer::{Amounts, to_json};
use super::per_second::PerSecond;

#[derive(Serialize)]
struct Stats<'a> {
    limits: Vec<LimitLine<'a>>,
    plan: PlanLine<'a>,
}

#[derive(Serialize)]
struct LimitLine<'a> {
    name: &'a str,
    mode: &'static str,
    #[serde(flatten)]
    amounts: Amounts,
    offered: u64,
    admitted: u64,
    dropped: u64,
    would_drop: u64,
    ratio: f64,
    buckets: usize,
}

#[derive(Serialize)]
struct PlanLine<'a> {
    state: &'static str,
    age_seconds: Option<f64>,
    parent: Option<&'a str>,
    digest: Option<String>,
    generation: u64,
}

/// The body of an answer to `/stats`.
pub(super) fn body(stats: &LimiterStats) -> Vec<u8> {
    let link = &stats.link;
    let plan = PlanLine {
        state: link.state.name(),
        age_seconds: link.age.map(|age| age.as_secs_f64()),
        parent: link.parent.as_deref(),
        digest: link.digest.map(|digest| digest.to_string()),
        generation: link.generation,
    };
    to_json(&Stats { limits: stats.limits.iter().map(limit_line).collect(), plan })
}

fn limit_line(stats: &LimitStats) -> LimitLine<'_> {
    let rate = stats.limit.rate;
    LimitLine {
        name: &stats.limit.name,
        mode: stats.limit.mode.name(),
        amounts: Amounts { remaining: None, limit: rate.per_unit(), rate: PerSecond::of(rate) },
        offered: stats.counts.offered,
        admitted: stats.counts.admitted(),
        dropped: stats.counts.dropped,
        would_drop: stats.counts.would_drop,
        ratio: stats.drop_ratio.value(),
        buckets: stats.buckets,
    }
}
