//! The HTTP/1 server that every role uses, for its admin port and for the agent's API, over TCP, TLS and Unix
//! sockets.
//!
//! Its caller binds the listener and owns the shutdown, so the program, `dev` and every test run the same call. All
//! that a client could keep for ever has a bound: connections, silence, heads, bodies, unread answers.

mod accept;
mod bind;
mod bounds;
mod connection;
mod routes;

use std::convert::Infallible;

use axum::BoxError;
use axum::Router;
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::service::Service;
use tokio_util::sync::CancellationToken;

use accept::Acceptor;
use routes::Routes;

pub(crate) use accept::{Accepts, Socket};
pub(crate) use bind::{BindError, Listener, bind_tcp, bind_unix};
pub(crate) use bounds::{Bounds, MAX_BODY_BYTES};

/// Serves `routes` on `listener` until `shutdown`, then returns when the requests in flight are answered.
///
/// A caller with a deadline drops the future; that closes the connections that are left.
pub(crate) async fn run(listener: Listener, routes: Router, bounds: Bounds, shutdown: CancellationToken) {
    run_service(listener, Routes::new(routes, bounds), bounds, shutdown).await;
}

/// As [`run`], for a service that routes by itself, where the cost of a router would be felt.
///
/// Such a service bounds the bodies that it reads by itself; [`MAX_BODY_BYTES`] is what clients may expect.
pub(crate) async fn run_service<S, B>(
    listener: Listener,
    service: S,
    bounds: Bounds,
    shutdown: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    Acceptor::new(listener, bounds, shutdown).run(service).await;
}

#[cfg(test)]
mod tests;
