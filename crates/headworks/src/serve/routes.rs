//! A router as a service of this server: bodies bounded in size and in time.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use http_body_util::Limited;
use hyper::body::{Body as _, Incoming};
use hyper::service::Service;
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::Bounds;

/// A router behind the bounds for bodies.
#[derive(Clone)]
pub(super) struct Routes {
    router: Router,
    bounds: Bounds,
}

impl Routes {
    pub(super) fn new(router: Router, bounds: Bounds) -> Self {
        // So that all states of the router are built once, not for each connection.
        Self { router: router.with_state(()), bounds }
    }
}

impl Service<Request<Incoming>> for Routes {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let Self { router, bounds } = self.clone();
        Box::pin(async move { Ok(answer(router, bounds, request).await) })
    }
}

async fn answer(router: Router, bounds: Bounds, request: Request<Incoming>) -> Response<Body> {
    if request.body().size_hint().lower() > bounds.body_bytes {
        return too_large(bounds.body_bytes);
    }
    if request.body().is_end_stream() {
        return call(router, request.map(Body::new)).await;
    }
    let most = usize::try_from(bounds.body_bytes).unwrap_or(usize::MAX);
    let bounded = request.map(|body| Body::new(Limited::new(body, most)));
    timeout(bounds.body, call(router, bounded)).await.unwrap_or_else(|_| too_slow())
}

async fn call(router: Router, request: Request<Body>) -> Response<Body> {
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn too_large(most: u64) -> Response<Body> {
    let text = format!("the body is larger than {most} bytes; send less\n");
    (StatusCode::PAYLOAD_TOO_LARGE, text).into_response()
}

fn too_slow() -> Response<Body> {
    (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time; send it faster\n").into_response()
}
