//! The agent's HTTP API: `/allow`, `/stats`, `/healthz`, `/readyz`.
//!
//! Routed by hand: a router costs more than all that `/allow` does.

use std::convert::Infallible;
use std::future::{Ready, ready};

use axum::http::{Method, Request, StatusCode, Uri};
use headworks_agent::Limiter;
use headworks_core::attributes::Attributes;
use hyper::body::{Body as _, Incoming};
use hyper::service::Service;
use tokio::sync::watch;

use super::answer::{self, Answer};
use super::query::Query;
use super::stats;
use crate::serve::MAX_BODY_BYTES;

/// The agent's API as a service; all connections share one limiter.
#[derive(Clone)]
pub(crate) struct HttpFront {
    limiter: Limiter,
    readiness: watch::Receiver<bool>,
}

impl HttpFront {
    /// The API of `limiter`; `/readyz` tells what `readiness` holds.
    ///
    /// An agent is ready as soon as it serves, with or without a control plane, since it fails open; and no longer
    /// once it drains.
    pub(crate) fn new(limiter: Limiter, readiness: watch::Receiver<bool>) -> Self {
        Self { limiter, readiness }
    }

    fn answer(&self, method: &Method, uri: &Uri) -> Answer {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match uri.path() {
            "/allow" if matches!(*method, Method::GET | Method::POST) => {
                self.allow(uri.query().unwrap_or(""))
            }
            "/allow" => answer::wrong_method("GET, POST"),
            "/stats" | "/healthz" | "/readyz" if !reads => answer::wrong_method("GET, HEAD"),
            "/stats" => answer::json(StatusCode::OK, stats::body(&self.limiter.stats())),
            "/healthz" => answer::text(StatusCode::OK, "ok"),
            "/readyz" => self.ready(),
            _ => {
                answer::error(StatusCode::NOT_FOUND, "no such path: ask /allow, /stats, /healthz or /readyz")
            }
        }
    }

    fn allow(&self, query: &str) -> Answer {
        match Query::parse(query) {
            Ok(query) => {
                let pairs = query.pairs();
                answer::of_verdict(&self.limiter.check(Attributes::new(&pairs), query.cost))
            }
            Err(error) => answer::error(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }

    fn ready(&self) -> Answer {
        if *self.readiness.borrow() {
            answer::text(StatusCode::OK, "ok")
        } else {
            answer::text(StatusCode::SERVICE_UNAVAILABLE, "draining: send requests to another agent")
        }
    }
}

impl Service<Request<Incoming>> for HttpFront {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    /// No route reads a body, so a small one is passed over and a large one is refused by its announced length.
    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if request.body().size_hint().lower() > MAX_BODY_BYTES {
            let message = "the body is larger than 65536 bytes: put what is asked into the query";
            return ready(Ok(answer::error(StatusCode::PAYLOAD_TOO_LARGE, message)));
        }
        ready(Ok(self.answer(request.method(), request.uri())))
    }
}
