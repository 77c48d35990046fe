//! One connection: HTTP/1 or HTTP/2 with its bounds, and a graceful end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

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
    bounds: Bounds,
    shutdown: CancellationToken,
}

impl Protocol {
    pub(super) fn new(spoken: Spoken, bounds: Bounds, shutdown: CancellationToken) -> Self {
        Self { spoken, bounds, shutdown }
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
                let mut connection = pin!(http1(self.bounds).serve_connection(stream, service));
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
                let (stream, batch) = (TokioIo::new(Box::pin(stream)), Batch::default());
                let mut connection =
                    pin!(http2(self.bounds, batch.clone()).serve_connection(stream, service));
                tokio::select! {
                    biased;
                    ended = batch.with(connection.as_mut()) => ended,
                    () = self.shutdown.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        batch.with(connection).await
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

fn http2(bounds: Bounds, batch: Batch) -> http2::Builder<Batch> {
    let mut http = http2::Builder::new(batch);
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

/// Requests of one connection that came in together.
///
/// They are answered where the connection is read, as far as that goes, and their answers go out together. Most wait for nothing: a task
/// for each takes longer than its answer, and so does a write.
#[derive(Clone, Default)]
struct Batch(Arc<Mutex<Vec<Work>>>);

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Batch {
    fn take(&self) -> Vec<Work> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Drives a connection, and what its requests need.
    async fn with<C: Future>(&self, mut connection: Pin<&mut C>) -> C::Output {
        poll_fn(|context| {
            loop {
                if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                    return Poll::Ready(ended);
                }
                let batch = self.take();
                if batch.is_empty() {
                    return Poll::Pending;
                }
                batch.into_iter().for_each(begin);
            }
        })
        .await
    }
}

/// Does what can be done at once; a task does the rest. It polls the work again first, and is woken from then on.
fn begin(mut work: Work) {
    if work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        tokio::spawn(work);
    }
}

impl<F> Executor<F> for Batch
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::pin(future));
    }
}
