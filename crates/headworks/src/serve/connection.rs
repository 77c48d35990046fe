//! One connection: HTTP/1 with its bounds, and a graceful end.

use std::convert::Infallible;
use std::pin::pin;

use axum::BoxError;
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::Bounds;

/// How connections of one server are spoken to.
#[derive(Clone)]
pub(super) struct Protocol {
    http: http1::Builder,
    bounds: Bounds,
    shutdown: CancellationToken,
}

impl Protocol {
    pub(super) fn new(bounds: Bounds, shutdown: CancellationToken) -> Self {
        let mut http = http1::Builder::new();
        // hyper starts this clock when a connection opens and after each answer, so it bounds silence too.
        http.timer(TokioTimer::new()).header_read_timeout(bounds.silence);
        // The buffer may hold a read more than its bound by the time it is looked at; the head itself may not.
        http.max_buf_size(bounds.head_bytes).max_header_size(bounds.head_bytes);
        Self { http, bounds, shutdown }
    }

    /// Answers what comes over `stream` until it ends; at shutdown, until the request in flight is answered.
    pub(super) async fn serve<IO, S, B>(self, stream: IO, service: S)
    where
        IO: AsyncRead + AsyncWrite + Send + 'static,
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        B: Body<Data = Bytes, Error: Into<BoxError>> + 'static,
    {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.bounds.unread));
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(Box::pin(stream)), service));
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = self.shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // Clients hang up, time out and send nonsense: their affair, and nothing that an operator can act on.
        if let Err(error) = ended {
            debug!(%error, "connection ended early");
        }
    }
}
