//! The server side of the protocol: one stream per child.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::Stream;
use headworks_core::message::Hello;
use headworks_proto::{FromChild, MAX_REPORT_BYTES, wire};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::Seat;
use super::driver::{Handle, Input, StreamId};

/// A child that connected must introduce itself within this time.
const HELLO: Duration = Duration::from_secs(10);
/// Pings to children; one that does not answer as long again is gone.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Streams on one connection. A child needs one; more is somebody else's program.
const STREAMS_PER_CONNECTION: u32 = 16;

/// Serves children on a bound listener until `shutdown`.
pub(crate) async fn serve<S: Seat>(
    listener: TcpListener,
    handle: Handle<S>,
    shutdown: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let service = Downlink { handle, streams: Arc::default(), shutdown: shutdown.clone() };
    let server = wire::tree_server::TreeServer::new(service).max_decoding_message_size(MAX_REPORT_BYTES);
    tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .tcp_nodelay(true)
        .add_service(server)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), shutdown.cancelled_owned())
        .await
}

struct Downlink<S: Seat> {
    handle: Handle<S>,
    streams: Arc<AtomicU64>,
    shutdown: CancellationToken,
}

type Plans = Pin<Box<dyn Stream<Item = Result<wire::ParentMessage, Status>> + Send>>;

impl<S: Seat> wire::tree_server::Tree for Downlink<S> {
    type AttachStream = Plans;

    fn attach<'a: 'f, 'f>(
        &'a self,
        request: Request<Streaming<wire::ChildMessage>>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Plans>, Status>> + Send + 'f>> {
        Box::pin(async move {
            let mut messages = request.into_inner();
            let hello = introduction(&mut messages).await?;
            let stream = StreamId(self.streams.fetch_add(1, Relaxed));
            let (plans, outgoing) = mpsc::channel(1);
            self.handle.send(Input::Hello { stream, hello, plans }).await;
            tokio::spawn(listen(self.handle.clone(), stream, messages, self.shutdown.clone()));
            Ok(Response::new(Box::pin(ReceiverStream::new(outgoing)) as Plans))
        })
    }
}

async fn introduction(messages: &mut Streaming<wire::ChildMessage>) -> Result<Hello, Status> {
    let first = timeout(HELLO, messages.message())
        .await
        .map_err(|_| Status::deadline_exceeded("no hello within 10 s"))??
        .ok_or_else(|| Status::invalid_argument("stream ended before the hello"))?;
    match headworks_proto::decode_child(first) {
        Ok(FromChild::Hello(hello)) => Ok(hello),
        Ok(_) => Err(Status::invalid_argument("the first message must be a hello")),
        Err(error) => Err(Status::invalid_argument(error.to_string())),
    }
}

/// Hears a child until it leaves, breaks off, or this node shuts down.
async fn listen<S: Seat>(
    handle: Handle<S>,
    stream: StreamId,
    mut messages: Streaming<wire::ChildMessage>,
    shutdown: CancellationToken,
) {
    loop {
        let next = tokio::select! {
            () = shutdown.cancelled() => break,
            next = messages.message() => next,
        };
        let Ok(Some(message)) = next else { break };
        match headworks_proto::decode_child(message) {
            Ok(FromChild::Report { report, refused }) => {
                handle.send(Input::Report { stream, report, refused }).await;
            }
            Ok(FromChild::Goodbye) => break,
            Ok(FromChild::Hello(_)) => tracing::warn!("second hello on a stream ignored"),
            Err(error) => tracing::warn!(%error, "message refused"),
        }
    }
    handle.send(Input::Gone { stream }).await;
}
