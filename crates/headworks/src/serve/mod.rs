//! The HTTP/1 server that every role uses, for its admin port and for the agent's API, over TCP, TLS and Unix
//! sockets; and the HTTP/2 server under the agent's gRPC port.
//!
//! Its caller binds the listener and owns the shutdown, so the program, `dev` and every test run the same call. All
//! that a client could keep for ever has a bound: connections, silence, heads, bodies, unread answers.

mod accept;
mod bind;
mod bounds;
mod connection;
mod routes;

use std::convert::Infallible;
use std::net::IpAddr;

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
pub(crate) use connection::Spoken;

/// Serves `routes` on `listener` until `shutdown`, then returns when the requests in flight are answered.
///
/// A caller with a deadline drops the future; that closes the connections that are left.
pub(crate) async fn run(listener: Listener, routes: Router, bounds: Bounds, shutdown: CancellationToken) {
    let routes = Routes::new(routes, bounds);
    run_service(listener, Spoken::Http1, |_| routes.clone(), bounds, shutdown).await;
}

/// As [`run`], for a service that routes by itself, where the cost of a router would be felt, and that may depend on the address
/// of who asks.
///
/// Such a service bounds the bodies that it reads by itself; [`MAX_BODY_BYTES`] is what clients may expect over HTTP/1.
pub(crate) async fn run_service<S, B>(
    listener: Listener,
    spoken: Spoken,
    service_for: impl Fn(Option<IpAddr>) -> S,
    bounds: Bounds,
    shutdown: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    Acceptor::new(listener, bounds, shutdown).run(spoken, service_for).await;
}

#[cfg(test)]
mod tests;
