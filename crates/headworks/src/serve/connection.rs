//! One connection: HTTP/1 or HTTP/2 with its bounds, and a graceful end.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use axum::BoxError;
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::Bounds;

/// Streams that were reset before they were looked at. More of them at once end the connection.
const RESETS: usize = 20;

/// What a port speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// HTTP/1.
    Http1,
    /// HTTP/2, as gRPC wants it.
    Grpc,
}

/// How connections of one server are spoken to.
#[derive(Clone)]
pub(super) struct Protocol {
    spoken: Spoken,
    http1: http1::Builder,
    http2: http2::Builder<AtOnce>,
    bounds: Bounds,
    shutdown: CancellationToken,
}

impl Protocol {
    pub(super) fn new(spoken: Spoken, bounds: Bounds, shutdown: CancellationToken) -> Self {
        Self { spoken, http1: http1(bounds), http2: http2(bounds), bounds, shutdown }
    }

    /// Answers what comes over `stream` until it ends; at shutdown, until the requests in flight are answered.
    pub(super) async fn serve<IO, S, B>(self, stream: IO, service: S)
    where
        IO: AsyncRead + AsyncWrite + Send + 'static,
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        S::Future: Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.bounds.unread));
        let ended = match self.spoken {
            Spoken::Http1 => {
                let stream = TokioIo::new(Box::pin(stream));
                let mut connection = pin!(self.http1.serve_connection(stream, service));
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => ended,
                    () = self.shutdown.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            }
            Spoken::Grpc => {
                // Who is there answers pings, so silence is the end: also of one that never begins to speak.
                stream.set_read_timeout(Some(self.bounds.silence));
                let stream = TokioIo::new(Box::pin(stream));
                let mut connection = pin!(self.http2.serve_connection(stream, service));
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => ended,
                    () = self.shutdown.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            }
        };
        // Clients hang up, time out and send nonsense: their affair, and nothing that an operator can act on.
        if let Err(error) = ended {
            debug!(%error, "connection ended early");
        }
    }
}

fn http1(bounds: Bounds) -> http1::Builder {
    let mut http = http1::Builder::new();
    // hyper starts this clock when a connection opens and after each answer, so it bounds silence too.
    http.timer(TokioTimer::new()).header_read_timeout(bounds.silence);
    // The buffer may hold a read more than its bound by the time it is looked at; the head itself may not.
    http.max_buf_size(bounds.head_bytes).max_header_size(bounds.head_bytes);
    http
}

fn http2(bounds: Bounds) -> http2::Builder<AtOnce> {
    let mut http = http2::Builder::new(AtOnce);
    http.timer(TokioTimer::new())
        .keep_alive_interval(bounds.silence / 3)
        .keep_alive_timeout(bounds.silence / 3)
        .max_concurrent_streams(bounds.streams)
        .max_pending_accept_reset_streams(RESETS)
        .max_header_list_size(u32::try_from(bounds.head_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(bounds.window_bytes)
        .initial_connection_window_size(bounds.window_bytes.saturating_mul(4));
    http
}

/// Runs what a request needs where the connection is read, as far as that goes: most are answered without waiting for
/// anything, and a task for each would take longer than its answer.
#[derive(Clone, Copy, Debug)]
struct AtOnce;

impl<F> Executor<F> for AtOnce
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let mut future: Pin<Box<F>> = Box::pin(future);
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            // Its task polls it again first, and is woken from then on.
            tokio::spawn(future);
        }
    }
}
