//! The agent's HTTP API: `/allow`, `/stats`, `/healthz`, `/readyz`.
//!
//! Routed by hand: a router takes 1.1 µs a request (measured), and all else in `/allow` 1.5 µs beside system calls.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use futures_util::future::Either;
use headworks_agent::{Limiter, SharedLimiter, Verdict};
use headworks_core::attributes::Attributes;
use hyper::body::{Body as _, Incoming};
use hyper::service::Service;
use tokio::sync::watch;

use super::answer::{self, Answer};
use super::derived::Derived;
use super::query::{Query, QueryError};
use super::stats;
use crate::serve::MAX_BODY_BYTES;
use crate::traces::{Decision, Traces};

/// The agent's API as a service; all connections share one limiter.
#[derive(Clone)]
pub(crate) struct HttpFront {
    limiter: Limiter,
    /// The same, where exact limits are in a store.
    shared: Option<SharedLimiter>,
    readiness: watch::Receiver<bool>,
    traces: Option<Traces>,
    /// Where attributes come from that queries do not name.
    derived: Arc<Derived>,
    /// Who asks on this connection.
    peer: Option<IpAddr>,
}

impl HttpFront {
    /// The API of `limiter`; `/readyz` tells what `readiness` holds.
    ///
    /// An agent is ready as soon as it serves, with or without a control plane, since it fails open; and no longer
    /// once it drains.
    pub(crate) fn new(
        limiter: Limiter,
        shared: Option<SharedLimiter>,
        readiness: watch::Receiver<bool>,
    ) -> Self {
        Self { limiter, shared, readiness, traces: None, derived: Arc::default(), peer: None }
    }

    /// The same with attributes that queries do not name.
    pub(crate) fn deriving(self, derived: Arc<Derived>) -> Self {
        Self { derived, ..self }
    }

    /// The same for the connection of this peer; of one on a Unix socket no address is known.
    pub(crate) fn for_peer(&self, peer: Option<IpAddr>) -> Self {
        Self { peer, ..self.clone() }
    }

    fn read<'q>(&'q self, query: &'q str, headers: &HeaderMap) -> Result<Query<'q>, QueryError> {
        if self.derived.is_none() {
            return Query::parse(query);
        }
        let mut query = Query::read(query)?;
        for (name, value) in self.derived.of_request(headers, self.peer) {
            query.complete(name, value)?;
        }
        Ok(query)
    }

    /// The same with spans of its decisions.
    pub(crate) fn traced(self, traces: Option<Traces>) -> Self {
        Self { traces, ..self }
    }

    fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Answer {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match uri.path() {
            "/allow" if matches!(*method, Method::GET | Method::POST) => {
                self.allow(uri.query().unwrap_or(""), headers)
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

    fn allow(&self, query: &str, headers: &HeaderMap) -> Answer {
        match self.read(query, headers) {
            Ok(query) => {
                let (pairs, decision) = (query.pairs(), begin(self.traces.as_ref(), headers));
                let verdict = self.limiter.check(Attributes::new(&pairs), query.cost);
                of_verdict(&verdict, &self.limiter, query.cost, decision)
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

/// A span, for a request whose trace is recorded.
fn begin(traces: Option<&Traces>, headers: &HeaderMap) -> Option<Decision> {
    traces?.begin(headers)
}

fn asks_to_allow<B>(request: &Request<B>) -> bool {
    request.uri().path() == "/allow" && matches!(*request.method(), Method::GET | Method::POST)
}

fn of_verdict(
    verdict: &Verdict,
    limiter: &Limiter,
    asked: Option<u32>,
    decision: Option<Decision>,
) -> Answer {
    let limit = verdict.limit().and_then(|limit| limiter.limit(limit));
    if let Some(decision) = decision {
        decision.end(verdict.allowed, limit.as_deref());
    }
    answer::of_verdict(verdict, limit.as_deref(), asked, fastrand::f64())
}

async fn allow_shared(front: &HttpFront, shared: &SharedLimiter, asked: &Parts) -> Answer {
    match front.read(asked.uri.query().unwrap_or(""), &asked.headers) {
        Ok(query) => {
            let (pairs, decision) = (query.pairs(), begin(front.traces.as_ref(), &asked.headers));
            let verdict = shared.check(Attributes::new(&pairs), query.cost).await;
            of_verdict(&verdict, shared.limiter(), query.cost, decision)
        }
        Err(error) => answer::error(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

impl Service<Request<Incoming>> for HttpFront {
    type Response = Answer;
    type Error = Infallible;
    /// Nobody waits but for a store.
    type Future = Either<
        Ready<Result<Answer, Infallible>>,
        Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>,
    >;

    /// No route reads a body, so a small one is passed over and a large one is refused by its announced length.
    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if request.body().size_hint().lower() > MAX_BODY_BYTES {
            let message = "the body is larger than 65536 bytes: put what is asked into the query";
            return Either::Left(ready(Ok(answer::error(StatusCode::PAYLOAD_TOO_LARGE, message))));
        }
        match &self.shared {
            Some(shared) if asks_to_allow(&request) => {
                let (front, shared, asked) = (self.clone(), shared.clone(), request.into_parts().0);
                Either::Right(Box::pin(async move { Ok(allow_shared(&front, &shared, &asked).await) }))
            }
            _ => Either::Left(ready(Ok(self.answer(request.method(), request.uri(), request.headers())))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headworks_agent::Agent;

    /// Status of the answer to `method` on `path`, with `Allow` if it has one.
    fn status(method: &Method, path: &'static str, ready: bool) -> (u16, Option<String>) {
        let front = HttpFront::new(Agent::builder("a", "z").build().limiter(), None, watch::channel(ready).1);
        let answer = front.answer(method, &Uri::from_static(path), &HeaderMap::new());
        let allow = answer.headers().get("allow").map(|methods| methods.to_str().unwrap().to_owned());
        (answer.status().as_u16(), allow)
    }

    #[test]
    fn allows_what_meets_no_limit() {
        assert_eq!(status(&Method::GET, "/allow?key=a", true), (200, None));
        assert_eq!(status(&Method::POST, "/allow?key=a&n=2", true), (200, None));
        assert_eq!(status(&Method::GET, "/allow", true), (400, None));
        assert_eq!(status(&Method::GET, "/allow?key=%FF", true), (400, None));
    }

    #[test]
    fn names_the_methods_of_a_path_and_knows_no_other_paths() {
        assert_eq!(status(&Method::DELETE, "/allow?key=a", true), (405, Some("GET, POST".to_owned())));
        assert_eq!(status(&Method::POST, "/stats", true), (405, Some("GET, HEAD".to_owned())));
        assert_eq!(status(&Method::GET, "/allow/", true), (404, None));
    }

    #[test]
    fn is_healthy_but_not_ready_while_it_drains() {
        assert_eq!(status(&Method::GET, "/healthz", false), (200, None));
        assert_eq!(status(&Method::GET, "/readyz", false), (503, None));
        assert_eq!(status(&Method::GET, "/readyz", true), (200, None));
    }
}
