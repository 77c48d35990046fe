//! The fleet's switch on a controller's admin port: `GET /shadow-all` tells it, `PUT /shadow-all` throws it.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use headworks_core::switch::Switch;
use serde::{Deserialize, Serialize};

use super::gone;
use crate::tree::{Change, FleetSeat, Handle};

/// The switch, as the port tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SwitchState {
    /// Whether every limit is in shadow.
    pub(crate) on: bool,
    /// Higher with each throw; controllers that tell the same agree.
    #[serde(default)]
    pub(crate) version: u64,
}

/// What is asked of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    on: bool,
}

impl From<Switch> for SwitchState {
    fn from(switch: Switch) -> Self {
        Self { on: switch.shadow_all, version: switch.version }
    }
}

/// The routes of a controller's switch.
pub(super) fn routes(fleet: Handle<FleetSeat>) -> Router {
    Router::new().route("/shadow-all", get(tell).put(throw)).with_state(fleet)
}

async fn tell(State(fleet): State<Handle<FleetSeat>>) -> Response {
    match fleet.ask(|seat, _| SwitchState::from(seat.fleet.switch())).await {
        Some(state) => Json(state).into_response(),
        None => gone(),
    }
}

async fn throw(State(fleet): State<Handle<FleetSeat>>, body: Bytes) -> Response {
    match serde_json::from_slice::<Wanted>(&body) {
        Ok(Wanted { on }) => {
            tracing::info!(on, "shadow-all thrown by an admin request");
            let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
            fleet.own(Change::ShadowAll { on, at }).await;
            tell(State(fleet)).await
        }
        Err(_) => {
            let text = "the body does not say what is wanted; send {\"on\":true} or {\"on\":false}\n";
            (StatusCode::BAD_REQUEST, text).into_response()
        }
    }
}
