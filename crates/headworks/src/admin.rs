//! The admin port of every role: health, readiness, metrics and status. Nothing here changes anything.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::watch;

use crate::metrics;
use crate::status::NodeStatus;

type Answer = Pin<Box<dyn Future<Output = Option<NodeStatus>> + Send>>;

/// Where the admin port takes a node's status from, and whether the node is ready.
#[derive(Clone)]
pub(crate) struct Admin {
    status: Arc<dyn Fn() -> Answer + Send + Sync>,
    ready: watch::Receiver<bool>,
}

impl Admin {
    /// An admin port that asks `status` at every request.
    pub(crate) fn new<F>(ready: watch::Receiver<bool>, status: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<NodeStatus>> + Send + 'static,
    {
        Self { status: Arc::new(move || Box::pin(status())), ready }
    }

    /// The routes.
    pub(crate) fn routes(self) -> Router {
        Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(readiness))
            .route("/metrics", get(prometheus))
            .route("/status", get(status))
            .with_state(self)
    }
}

async fn readiness(State(admin): State<Admin>) -> Response {
    if *admin.ready.borrow() {
        "ready\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready: starting or shutting down\n").into_response()
    }
}

async fn prometheus(State(admin): State<Admin>) -> Response {
    match (admin.status)().await {
        Some(status) => {
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics::render(&status)).into_response()
        }
        None => gone(),
    }
}

async fn status(State(admin): State<Admin>) -> Response {
    match (admin.status)().await {
        Some(status) => Json(status).into_response(),
        None => gone(),
    }
}

fn gone() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response()
}
