//! The admin port of every role: health, readiness, metrics, status; on controllers the fleet's
//! switch, limits and trials besides.
//!
//! Nothing is changed without the token, and whoever may ask from other machines needs it for all that names callers.

mod args;
mod client;
mod gate;
mod limits;
mod port;
mod shadow_all;
mod token;
mod trial;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep_until};

use crate::metrics;
use crate::status::NodeStatus;
use crate::tree::{FleetSeat, Handle};

pub(crate) use args::{AdminArgs, AdminSettings};
pub(crate) use client::{Client, Question, read};
pub(crate) use limits::{Confirmation, Confirmed, Running};
pub(crate) use port::AdminPort;
pub(crate) use shadow_all::SwitchState;
pub(crate) use token::Token;
pub(crate) use trial::Trial;

use gate::Gate;

type Answer = Pin<Box<dyn Future<Output = Option<NodeStatus>> + Send>>;

/// Where the admin port takes a node's status from, whether the node is ready, and what else it answers.
#[derive(Clone)]
pub(crate) struct Admin {
    status: Arc<dyn Fn() -> Answer + Send + Sync>,
    ready: watch::Receiver<bool>,
    own: Router,
}

/// What only a controller's admin port answers.
pub(crate) fn fleet_routes(fleet: &Handle<FleetSeat>) -> Router {
    let all = [shadow_all::routes, limits::routes, trial::routes].map(|routes| routes(fleet.clone()));
    all.into_iter().fold(Router::new(), Router::merge)
}

/// The same, with the gate that counts what it refuses.
#[derive(Clone)]
struct Guarded {
    admin: Admin,
    gate: Arc<Gate>,
    /// The last status, and when it was asked for.
    last: Arc<Mutex<Option<(Instant, NodeStatus)>>>,
}

/// Least time between two statuses. Each is made by the thread that owns a node's state: however many scrape, that thread has
/// other work.
const SPACING: Duration = Duration::from_millis(50);

impl Admin {
    /// An admin port that asks `status` at every request.
    pub(crate) fn new<F>(ready: watch::Receiver<bool>, status: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<NodeStatus>> + Send + 'static,
    {
        Self { status: Arc::new(move || Box::pin(status())), ready, own: Router::new() }
    }

    /// The same, with routes that only this kind of node has.
    pub(crate) fn with(self, own: Router) -> Self {
        Self { own, ..self }
    }

    /// All routes, behind the gate.
    fn routes(self, gate: Arc<Gate>) -> Router {
        let own = self.own.clone();
        let guarded = Guarded::new(self, gate.clone());
        let all = Router::new().route("/status", get(status)).with_state(guarded.clone());
        all.merge(guarded.for_probes()).merge(own).layer(middleware::from_fn_with_state(gate, gate::pass))
    }
}

impl Guarded {
    fn new(admin: Admin, gate: Arc<Gate>) -> Self {
        Self { admin, gate, last: Arc::default() }
    }

    /// What a monitoring system needs, and all that the listener for metrics has.
    fn for_probes(self) -> Router {
        Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(readiness))
            .route("/metrics", get(prometheus))
            .with_state(self)
    }

    /// The node's status, not older than the question; those who wait for one share it.
    async fn status(&self) -> Option<NodeStatus> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        let shared = last.as_ref().filter(|(began, _)| *began >= asked).map(|(_, status)| status.clone());
        let status = match shared {
            Some(status) => status,
            None => {
                if let Some((began, _)) = &*last {
                    sleep_until(*began + SPACING).await;
                }
                let began = Instant::now();
                let status = (self.admin.status)().await?;
                *last = Some((began, status.clone()));
                status
            }
        };
        Some(NodeStatus { admin_refused: self.gate.refused(), ..status })
    }
}

async fn readiness(State(guarded): State<Guarded>) -> Response {
    if *guarded.admin.ready.borrow() {
        "ready\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready: starting or shutting down\n").into_response()
    }
}

async fn prometheus(State(guarded): State<Guarded>) -> Response {
    match guarded.status().await {
        Some(status) => {
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::render(&status)).into_response()
        }
        None => gone(),
    }
}

async fn status(State(guarded): State<Guarded>) -> Response {
    match guarded.status().await {
        Some(status) => Json(status).into_response(),
        None => gone(),
    }
}

fn gone() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response()
}
