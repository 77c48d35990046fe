//! One limit's page: what it is, the last minutes, zones and buckets.

use headworks_core::bucket::{BucketKey, Values};
use headworks_core::limits::Limit;
use serde::Serialize;

use super::super::board::{Known, Zones};
use super::super::sample::{MOST_BUCKETS, OfBucket};
use super::super::series::{KEPT, Series};
use super::fleet::{self, ZoneRow};
use super::row::{Row, by_the_second, has_several_buckets};
use super::{Asked, Page, curves, has};
use crate::status::LimitView;

/// The page of a limit; `row` is null where no limit in force has the name.
#[derive(Serialize)]
pub(super) struct LimitPage {
    limit: String,
    times: Vec<f64>,
    row: Option<Row>,
    facts: Option<Facts>,
    busiest: Option<Busiest>,
    zones: Vec<ZoneRow>,
    /// Null until buckets are gathered, by the next sample.
    buckets: Option<Buckets>,
}

/// What the limits file says of it.
#[derive(Serialize)]
struct Facts {
    /// `key=value`, each.
    matches: Vec<String>,
    order: i32,
    overrides: usize,
    max_buckets: u32,
    rollout: bool,
}

/// The bucket that is offered most, where there are several.
#[derive(Serialize)]
struct Busiest {
    scope: Vec<String>,
    values: Option<Vec<String>>,
    rate: String,
    line: Option<f64>,
    offered: f64,
    ratio: f64,
}

#[derive(Serialize)]
struct Buckets {
    /// How many there are.
    known: usize,
    /// How many of those with most demand are searched.
    searched: usize,
    found: usize,
    page: usize,
    pages: usize,
    rows: Vec<OfBucket>,
}

pub(super) fn page(asked: &Asked, known: &Known, series: &Series, zones: &Zones) -> LimitPage {
    let view = known.sample.status.limits.iter().find(|limit| limit.name == asked.limit);
    let limit = known.sample.limits.get(&asked.limit).map(|limit| &**limit);
    LimitPage {
        limit: asked.limit.clone(),
        times: curves::times(series, KEPT),
        row: view.map(|view| Row::of(view, known, series, KEPT)),
        facts: limit.map(Facts::of),
        busiest: limit.zip(view).and_then(|(limit, view)| busiest(limit, view, known)),
        zones: fleet::zones(known, zones, known.sample.watched.get(&asked.limit)),
        buckets: known.sample.watched.get(&asked.limit).map(|watched| {
            let part = asked.search.trim().to_lowercase();
            let found: Vec<&OfBucket> = watched.buckets.iter().filter(|bucket| fits(bucket, &part)).collect();
            let page = Page::of(asked.page, found.len());
            Buckets {
                known: watched.known,
                searched: watched.known.min(MOST_BUCKETS),
                found: found.len(),
                page: page.number,
                pages: page.pages,
                rows: page.take(found.iter()).map(|bucket| OfBucket::clone(bucket)).collect(),
            }
        }),
    }
}

impl Facts {
    fn of(limit: &Limit) -> Self {
        Self {
            matches: limit.matches.iter().map(|(key, value)| format!("{key}={}", value.as_str())).collect(),
            order: limit.order,
            overrides: limit.overrides.len(),
            max_buckets: limit.max_buckets,
            rollout: limit.rollout.is_some(),
        }
    }
}

fn busiest(limit: &Limit, view: &LimitView, known: &Known) -> Option<Busiest> {
    let top = view.top.first().filter(|_| has_several_buckets(limit))?;
    let values = top.values.clone().map_or(Values::Rest, Values::Of);
    let key = BucketKey { limit: limit.name.clone(), scope: top.scope.clone(), values };
    let own = known.sample.limits.of_bucket(&key)?;
    Some(Busiest {
        scope: top.scope.clone(),
        values: top.values.clone(),
        rate: own.rate.to_string(),
        line: by_the_second(own),
        offered: top.offered,
        ratio: top.ratio,
    })
}

fn fits(bucket: &OfBucket, part: &str) -> bool {
    let values = bucket.values.iter().flatten();
    part.is_empty() || values.chain(&bucket.scope).any(|text| has(text, part))
}
