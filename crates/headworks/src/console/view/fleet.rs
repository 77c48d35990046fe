//! Zones, and the children of the controller.

use serde::Serialize;

use super::super::board::{Known, Zones};
use super::super::sample::Watched;
use super::{Asked, Page, has};
use crate::status::Child;

#[derive(Serialize)]
pub(super) struct Fleet {
    zones: Vec<ZoneRow>,
    /// How many children fit what is searched for.
    found: usize,
    page: usize,
    pages: usize,
    children: Vec<Child>,
}

/// One zone; rates are of one limit, in cost units a second, where one is looked at.
#[derive(Debug, Serialize)]
pub(super) struct ZoneRow {
    zone: String,
    state: ZoneState,
    /// Seconds since a zone that is away was heard.
    away: Option<f64>,
    aggregators: usize,
    agents: u32,
    /// Time since the last report, of the child that reported longest ago.
    report_age_ms: Option<u64>,
    offered: Option<f64>,
    dropped: Option<f64>,
    would_drop: Option<f64>,
}

/// What a zone's plan is worth, as far as its controller can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ZoneState {
    /// All children report, and get plans.
    Fresh,
    /// Some do not report.
    Partly,
    /// None does, though they are attached.
    Stale,
    /// None is attached: it was taken down, or its nodes go on alone.
    Away,
}

pub(super) fn page(asked: &Asked, known: &Known, zones: &Zones) -> Fleet {
    let part = asked.search.trim().to_lowercase();
    let children = known.sample.status.children.iter();
    let found: Vec<&Child> =
        children.filter(|child| has(&child.node, &part) || has(&child.zone, &part)).collect();
    let page = Page::of(asked.page, found.len());
    Fleet {
        zones: self::zones(known, zones, None),
        found: found.len(),
        page: page.number,
        pages: page.pages,
        children: page.take(found.iter()).map(|child| Child::clone(child)).collect(),
    }
}

/// All zones, with the demand of a limit that is looked at.
pub(super) fn zones(known: &Known, remembered: &Zones, watched: Option<&Watched>) -> Vec<ZoneRow> {
    let status = &known.sample.status;
    let here = status.zones.iter().map(|zone| {
        let children: Vec<&Child> = status.children.iter().filter(|child| child.zone == zone.zone).collect();
        let demand = watched.map(|watched| watched.zones.get(&zone.zone).copied().unwrap_or_default());
        ZoneRow {
            zone: zone.zone.clone(),
            state: ZoneState::of(&children),
            away: None,
            aggregators: zone.aggregators,
            agents: zone.agents,
            report_age_ms: children.iter().map(|child| child.report_age_ms).max(),
            offered: demand.map(|demand| demand.offered),
            dropped: demand.map(|demand| demand.dropped),
            would_drop: demand.map(|demand| demand.would_drop),
        }
    });
    here.chain(remembered.away(known.at).map(|(zone, seconds)| ZoneRow::away(zone, seconds))).collect()
}

impl ZoneState {
    fn of(children: &[&Child]) -> Self {
        match children.iter().filter(|child| child.silent).count() {
            0 => ZoneState::Fresh,
            all if all == children.len() => ZoneState::Stale,
            _ => ZoneState::Partly,
        }
    }
}

impl ZoneRow {
    fn away(zone: &str, seconds: f64) -> Self {
        Self {
            zone: zone.to_owned(),
            state: ZoneState::Away,
            away: Some(seconds),
            aggregators: 0,
            agents: 0,
            report_age_ms: None,
            offered: None,
            dropped: None,
            would_drop: None,
        }
    }
}
