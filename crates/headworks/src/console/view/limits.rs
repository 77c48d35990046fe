//! The limits, a page of them: those that are searched for, sorted.

use std::cmp::Ordering;

use serde::Serialize;

use super::super::board::Known;
use super::super::series::{Point, Series};
use super::row::Row;
use super::{Asked, Page, Sort, curves, has};
use crate::status::{LimitView, State};

/// Points of each limit: a minute.
const POINTS: usize = 60;

#[derive(Serialize)]
pub(super) struct Limits {
    sort: Sort,
    reverse: bool,
    page: usize,
    pages: usize,
    /// How many limits fit what is searched for.
    found: usize,
    times: Vec<f64>,
    rows: Vec<Row>,
}

pub(super) fn page(asked: &Asked, known: &Known, series: &Series) -> Limits {
    let part = asked.search.trim().to_lowercase();
    let all = &known.sample.status.limits;
    let mut found: Vec<Sorted<'_>> = all
        .iter()
        .filter(|limit| has(&limit.name, &part))
        .map(|limit| Sorted { limit, by: key(asked.sort, limit, known, series) })
        .collect();
    // Pipeline order is the order they are in.
    if asked.sort != Sort::Pipeline {
        found.sort_by(Sorted::compare);
    }
    if asked.reverse {
        found.reverse();
    }
    let page = Page::of(asked.page, found.len());
    let rows = page.take(found.iter()).map(|sorted| Row::of(sorted.limit, known, series, POINTS)).collect();
    Limits {
        sort: asked.sort,
        reverse: asked.reverse,
        page: page.number,
        pages: page.pages,
        found: found.len(),
        times: curves::times(series, POINTS),
        rows,
    }
}

/// A limit with what it is sorted by, the highest first.
struct Sorted<'a> {
    limit: &'a LimitView,
    by: [f32; 3],
}

impl Sorted<'_> {
    fn compare(&self, other: &Self) -> Ordering {
        let figures = self.by.iter().zip(&other.by).map(|(own, other)| other.total_cmp(own));
        let by_figure = figures.fold(Ordering::Equal, Ordering::then);
        by_figure.then_with(|| self.limit.name.cmp(&other.limit.name))
    }
}

fn key(sort: Sort, limit: &LimitView, known: &Known, series: &Series) -> [f32; 3] {
    let lately = |figure: fn(&Point) -> f32| series.lately(limit, figure);
    let offered = |point: &Point| point.offered;
    match sort {
        Sort::Name | Sort::Pipeline => [0.0; 3],
        Sort::Offered => [lately(offered), 0.0, 0.0],
        Sort::Admitted => [lately(|point| point.admitted), 0.0, 0.0],
        Sort::Ratio => [lately(|point| point.ratio), lately(offered), 0.0],
        Sort::Over => {
            let state = State::of(limit, &known.sample.status);
            [
                if state.is_over() { 1.0 } else { 0.0 },
                lately(|point| point.offered * point.ratio),
                lately(offered),
            ]
        }
    }
}
