//! A limit's last 24 hours on a controller's admin port: `GET /trial?limit=NAME`.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use headworks_core::bucket::Values;
use headworks_core::history::{Hit, Hour, Minute, Past};
use headworks_core::limits::Limit;
use headworks_core::units::Moment;
use serde::{Deserialize, Serialize};

use super::gone;
use crate::tree::{FleetSeat, Handle};

/// What a limit was asked in the last 24 hours. Rates are in cost units a second, amounts in cost units, moments in seconds
/// since 1970.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub(crate) limit: String,
    /// As the limits file has it.
    pub(crate) rate: String,
    pub(crate) mode: String,
    /// Whether overrides give some of its buckets other rates or modes.
    pub(crate) overrides: bool,
    /// From when on the controller knows.
    pub(crate) since: u64,
    /// Until when.
    pub(crate) until: u64,
    /// When the limit was changed last, to the minute; null if it was not. What was before was held against another limit.
    pub(crate) changed: Option<u64>,
    /// Whether so many limits have traffic that those which come find no place.
    pub(crate) full: bool,
    pub(crate) offered: f64,
    pub(crate) dropped: f64,
    pub(crate) would_drop: f64,
    /// The part of the offered that was over the limit, enforced or not, from 0 to 1.
    pub(crate) part_over: f64,
    /// The rate of the minute in the middle, of those with traffic.
    pub(crate) median_rate: f64,
    /// The rate that 95 of 100 of them do not exceed.
    pub(crate) p95_rate: f64,
    /// The highest rate of any second.
    pub(crate) peak_rate: f64,
    /// Minutes with traffic.
    pub(crate) minutes: usize,
    /// Minutes in which something was over the limit.
    pub(crate) minutes_over: usize,
    /// The minutes in which most was over the limit, the worst first.
    pub(crate) worst_minutes: Vec<MinuteView>,
    /// The last 24 hours, the oldest first, the last one up to now.
    pub(crate) hours: Vec<HourView>,
    /// The bucket values that were hit hardest; each with at least so much over the limit.
    pub(crate) hardest_hit: Vec<HitView>,
}

/// One minute.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MinuteView {
    /// When it began.
    pub(crate) at: u64,
    pub(crate) offered: f64,
    pub(crate) over: f64,
    pub(crate) peak_rate: f64,
}

/// One hour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HourView {
    pub(crate) offered: f64,
    pub(crate) over: f64,
    pub(crate) peak_rate: f64,
}

/// One bucket value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HitView {
    /// Null for all that are not tracked.
    pub(crate) values: Option<Vec<String>>,
    pub(crate) over: f64,
}

#[derive(Debug, Deserialize)]
struct Asked {
    limit: String,
}

/// What the owner of the fleet answers.
enum Found {
    Trial(Box<Trial>),
    /// No limit by ratio has this name.
    Unknown,
    /// It is exact: the fleet does not count it.
    Exact,
}

/// The route of trials.
pub(super) fn routes(fleet: Handle<FleetSeat>) -> Router {
    Router::new().route("/trial", get(tell)).with_state(fleet)
}

async fn tell(State(fleet): State<Handle<FleetSeat>>, Query(Asked { limit }): Query<Asked>) -> Response {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let name = limit.clone();
    match fleet.ask(move |seat, now| find(seat, &limit, now, until)).await {
        Some(Found::Trial(trial)) => Json(trial).into_response(),
        Some(Found::Unknown) => {
            let text = format!("no limit {name:?} is in force; `headworks status` lists those that are\n");
            (StatusCode::NOT_FOUND, text).into_response()
        }
        Some(Found::Exact) => {
            let text =
                format!("{name} is an exact limit, which agents and their store count, and no controller\n");
            (StatusCode::NOT_FOUND, text).into_response()
        }
        None => gone(),
    }
}

fn find(seat: &FleetSeat, name: &str, now: Moment, until: u64) -> Found {
    let Some(limit) = seat.fleet.limits().get(name) else { return Found::Unknown };
    if limit.exact().is_some() {
        return Found::Exact;
    }
    let history = seat.fleet.history();
    let known = Trial {
        since: until.saturating_sub(history.since(now).as_secs()),
        until,
        full: history.is_full(),
        ..of_limit(limit)
    };
    let trial = match history.of_limit(name, now) {
        Some(past) => with_past(known, &past),
        None => known,
    };
    Found::Trial(Box::new(trial))
}

fn of_limit(limit: &Limit) -> Trial {
    Trial {
        limit: limit.name.to_string(),
        rate: limit.rate.to_string(),
        mode: limit.mode.name().to_owned(),
        overrides: !limit.overrides.is_empty(),
        ..Trial::default()
    }
}

fn with_past(known: Trial, past: &Past) -> Trial {
    let summary = past.summary();
    let began = known.until.saturating_sub(past.into_minute.as_secs());
    let at = |minute: u32| began.saturating_sub(60 * u64::from(past.minute.saturating_sub(minute)));
    Trial {
        changed: past.changed.map(at),
        offered: summary.offered,
        dropped: summary.dropped,
        would_drop: summary.would_drop,
        part_over: summary.part_over(),
        median_rate: summary.median,
        p95_rate: summary.p95,
        peak_rate: summary.peak,
        minutes: summary.minutes,
        minutes_over: summary.minutes_over,
        worst_minutes: summary.worst.iter().map(|minute| minute_view(minute, at(minute.number))).collect(),
        hours: summary.hours.iter().map(HourView::from).collect(),
        hardest_hit: past.hits.iter().map(HitView::from).collect(),
        ..known
    }
}

fn minute_view(minute: &Minute, at: u64) -> MinuteView {
    MinuteView {
        at,
        offered: f64::from(minute.offered),
        over: minute.over(),
        peak_rate: f64::from(minute.peak),
    }
}

impl From<&Hour> for HourView {
    fn from(hour: &Hour) -> Self {
        Self { offered: hour.offered, over: hour.over, peak_rate: hour.peak }
    }
}

impl From<&Hit> for HitView {
    fn from(hit: &Hit) -> Self {
        let values = match &hit.values {
            Values::Of(values) => Some(values.clone()),
            Values::Rest => None,
        };
        Self { values, over: hit.over }
    }
}
