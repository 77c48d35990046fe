//! The limits on a controller's admin port: `GET /limits` tells those in force, with the present demand, and those held back;
//! `POST /limits/apply` confirms the latter.
//!
//! What a new file would do is computed by whoever asks, from what `GET /limits` tells. So it needs no more than to read, and no
//! large body is ever sent to a controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use headworks_core::bucket::{BucketKey, Values};
use headworks_core::limits::{Digest, LimitSet, print};
use headworks_core::units::Moment;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::gone;
use crate::status::{self, HeldView};
use crate::tree::{Applied, Change, FleetSeat, Handle};

/// Buckets whose demand is told, those with most of it: more would be an answer of tens of megabytes.
const MOST_TOLD: usize = 100_000;

/// The limits in force on a controller, and the demand that it hears.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) generation: u64,
    pub(crate) digest: String,
    /// Whether the controller has just started, and may not have heard of all demand yet.
    pub(crate) learning: bool,
    /// The part of what passes any limit that a new file may newly drop before it is held back; null is any.
    pub(crate) hold_back: Option<f64>,
    pub(crate) held: Option<HeldView>,
    /// The limits, as a limits file.
    pub(crate) text: String,
    /// The demand of each limit.
    pub(crate) demand: BTreeMap<String, Demand>,
}

/// The demand of one limit, in cost units a second.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Demand {
    pub(crate) buckets: Vec<BucketDemand>,
    /// Of buckets that are not listed, since there are too many.
    pub(crate) unlisted: f64,
}

/// The demand of one bucket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BucketDemand {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<String>,
    /// The values that tell it apart; null for all that are not tracked.
    pub(crate) values: Option<Vec<String>>,
    pub(crate) offered: f64,
}

/// What is confirmed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confirmation {
    pub(crate) digest: String,
}

/// The answer to a confirmation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Confirmed {
    pub(crate) digest: String,
    /// Whether they were in force before.
    pub(crate) already: bool,
}

/// The routes of a controller's limits.
pub(super) fn routes(fleet: Handle<FleetSeat>) -> Router {
    Router::new().route("/limits", get(tell)).route("/limits/apply", post(apply)).with_state(fleet)
}

async fn tell(State(fleet): State<Handle<FleetSeat>>) -> Response {
    let Some((limits, running)) = fleet.ask(running).await else { return gone() };
    // Here, and not by the thread that owns the fleet: limits may take megabytes as text.
    Json(Running { text: print(&limits), ..running }).into_response()
}

fn running(seat: &FleetSeat, now: Moment) -> (Arc<LimitSet>, Running) {
    let fleet = &seat.fleet;
    let running = Running {
        generation: fleet.generation(),
        digest: fleet.limits().digest().to_string(),
        learning: fleet.is_learning(now),
        hold_back: seat.hold_back().0,
        held: status::held(seat, now),
        text: String::new(),
        demand: demand(fleet.demand()),
    };
    (fleet.limits().clone(), running)
}

fn demand<'a>(buckets: impl Iterator<Item = (&'a BucketKey, f64)>) -> BTreeMap<String, Demand> {
    let mut all: Vec<(&BucketKey, f64)> = buckets.filter(|(_, offered)| *offered > 0.0).collect();
    if all.len() > MOST_TOLD {
        all.select_nth_unstable_by(MOST_TOLD, |a, b| b.1.total_cmp(&a.1));
    }
    let (told, unlisted) = all.split_at(all.len().min(MOST_TOLD));
    let mut demand: BTreeMap<&str, Demand> = BTreeMap::new();
    for (key, offered) in told {
        let values = match &key.values {
            Values::Of(values) => Some(values.clone()),
            Values::Rest => None,
        };
        let bucket = BucketDemand { scope: key.scope.clone(), values, offered: *offered };
        demand.entry(&key.limit).or_default().buckets.push(bucket);
    }
    for (key, offered) in unlisted {
        demand.entry(&key.limit).or_default().unlisted += offered;
    }
    demand.into_iter().map(|(limit, demand)| (limit.to_owned(), demand)).collect()
}

async fn apply(State(fleet): State<Handle<FleetSeat>>, body: Bytes) -> Response {
    let confirmation = serde_json::from_slice::<Confirmation>(&body).ok();
    let Some(digest) = confirmation.and_then(|asked| Digest::parse(&asked.digest)) else {
        let text = "the body does not say which limits; send {\"digest\":\"…\"} with the digest of those held back\n";
        return (StatusCode::BAD_REQUEST, text).into_response();
    };
    let (applied, answer) = oneshot::channel();
    fleet.own(Change::Apply { digest, applied }).await;
    let confirmed = |already| Json(Confirmed { digest: digest.to_string(), already }).into_response();
    match answer.await {
        Ok(Applied::Now) => confirmed(false),
        Ok(Applied::Already) => confirmed(true),
        Ok(Applied::NotHeld) => {
            (StatusCode::CONFLICT, format!("no limits with the digest {digest} are held back here\n"))
                .into_response()
        }
        Err(_) => gone(),
    }
}
