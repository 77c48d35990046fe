//! One limit, as it is told.

use headworks_core::limits::{Limit, Scope};
use serde::Serialize;

use super::super::board::Known;
use super::super::series::Series;
use super::curves::Curves;
use crate::status::{LimitView, State, Totals};

/// Rates are in cost units a second.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    name: String,
    state: State,
    mode: String,
    /// As the limits file writes it.
    rate: String,
    /// Whether the rate is an amount for a minute or longer, which may be used at once.
    budget: bool,
    /// The keys that tell buckets apart.
    per: Vec<String>,
    /// global, region or zone.
    scope: &'static str,
    /// The rate by the second, where one bucket has all of the traffic, so that both can be compared.
    line: Option<f64>,
    offered: f64,
    admitted: f64,
    dropped: f64,
    would_drop: f64,
    /// The part of the offered that agents are told to drop, from 0 to 1.
    ratio: f64,
    buckets: usize,
    untracked: u64,
    tokens: Option<f64>,
    totals: Totals,
    curves: Curves,
}

impl Row {
    /// A limit with its last points.
    pub(super) fn of(view: &LimitView, known: &Known, series: &Series, points: usize) -> Self {
        let limit = known.sample.limits.get(&view.name).map(|limit| &**limit);
        let several = limit.is_some_and(has_several_buckets);
        Self {
            name: view.name.clone(),
            state: State::of(view, &known.sample.status),
            mode: view.mode.clone(),
            rate: limit.map_or_else(String::new, |limit| limit.rate.to_string()),
            budget: limit.is_some_and(|limit| limit.budget().is_some()),
            per: limit.map(|limit| limit.per.clone()).unwrap_or_default(),
            scope: limit.map_or("", |limit| limit.scope.name()),
            line: if several { None } else { limit.and_then(by_the_second) },
            offered: view.offered,
            admitted: view.admitted,
            dropped: view.dropped,
            would_drop: view.would_drop,
            ratio: view.ratio,
            buckets: view.buckets,
            untracked: view.untracked,
            tokens: view.tokens,
            totals: view.totals,
            curves: Curves::of(series, &view.name, points, several),
        }
    }
}

pub(super) fn has_several_buckets(limit: &Limit) -> bool {
    !limit.per.is_empty() || limit.scope != Scope::Global
}

/// The rate in units a second, if there is one: what a chart can draw beside demand.
pub(super) fn by_the_second(limit: &Limit) -> Option<f64> {
    Some(limit.rate.per_second()).filter(|rate| rate.is_finite())
}
