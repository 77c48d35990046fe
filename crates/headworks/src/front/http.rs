//! The agent's HTTP API: `/allow`, `/stats`, `/healthz`, `/readyz`.
//!
//! Routed by hand: a router takes 1.1 µs a request (measured), and all else in `/allow` 1.5 µs beside system calls.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;

use axum::http::{Method, Request, StatusCode, Uri};
use futures_util::future::Either;
use headworks_agent::{Limiter, SharedLimiter};
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
    /// The same, where exact limits are in a store.
    shared: Option<SharedLimiter>,
    readiness: watch::Receiver<bool>,
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
        Self { limiter, shared, readiness }
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
                let verdict = self.limiter.check(Attributes::new(&pairs), query.cost);
                answer::of_verdict(&verdict, |limit| self.limiter.limit(limit))
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

fn asks_to_allow<B>(request: &Request<B>) -> bool {
    request.uri().path() == "/allow" && matches!(*request.method(), Method::GET | Method::POST)
}

async fn allow_shared(shared: &SharedLimiter, uri: &Uri) -> Answer {
    match Query::parse(uri.query().unwrap_or("")) {
        Ok(query) => {
            let pairs = query.pairs();
            let verdict = shared.check(Attributes::new(&pairs), query.cost).await;
            answer::of_verdict(&verdict, |limit| shared.limiter().limit(limit))
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
                let (shared, uri) = (shared.clone(), request.uri().clone());
                Either::Right(Box::pin(async move { Ok(allow_shared(&shared, &uri).await) }))
            }
            _ => Either::Left(ready(Ok(self.answer(request.method(), request.uri())))),
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
        let answer = front.answer(method, &Uri::from_static(path));
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
