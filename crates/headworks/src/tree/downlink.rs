//! The server side of the protocol: one stream per child.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http;
use futures_util::{Stream, StreamExt as _};
use headworks_agent::tls::Tls;
use headworks_core::message::Hello;
use headworks_proto::{EncodedPlan, FromChild, MAX_REPORT_BYTES, wire};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tower::Service;

use super::Seat;
use super::codec::TreeCodec;
use super::driver::{Handle, Input, PlanBox, StreamId};
use super::gate::Gate;
use super::pace::Pace;
use super::visitor::{Attached, TreeCounters, Visitor};
use crate::serve::Listener;

/// A child that connected must introduce itself within this time.
const HELLO: Duration = Duration::from_secs(10);
/// Pings to children; one that does not answer as long again is gone.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Streams on one connection. A child needs one; more is somebody else's program.
const STREAMS_PER_CONNECTION: u32 = 16;

/// Where a child's stream is opened.
const ATTACH: &str = "/headworks.v1.Tree/Attach";
/// Bytes of a request's head; a child's has a few hundred.
const HEAD_BYTES: u32 = 8 * 1024;
/// Streams that were reset before they were looked at. More of them at once end the connection.
const RESETS: usize = 20;

/// A tree port that is about to be served.
pub(crate) struct TreePort {
    pub(crate) listener: TcpListener,
    /// With credentials, children must show some too.
    pub(crate) tls: Option<Tls>,
    pub(crate) counters: Arc<TreeCounters>,
}

/// Serves children on a bound listener until `shutdown`.
pub(crate) async fn serve<S: Seat>(
    port: TreePort,
    handle: Handle<S>,
    shutdown: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    port.serve(Downlink { handle, shutdown: shutdown.clone() }, shutdown).await
}

impl TreePort {
    /// Serves a service to whoever the gate lets in, until `shutdown`. Its requests have their [`Visitor`] with them.
    pub(crate) async fn serve<T>(
        self,
        service: T,
        shutdown: CancellationToken,
    ) -> Result<(), tonic::transport::Error>
    where
        T: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        T::Future: Send + 'static,
    {
        let (into, entered) = mpsc::channel(1);
        let gate = Gate { tls: self.tls, counters: self.counters, shutdown: shutdown.clone() };
        tokio::spawn(gate.open(Listener::Tcp(self.listener), into));
        tonic::transport::Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE))
            .http2_max_header_list_size(HEAD_BYTES)
            .http2_max_pending_accept_reset_streams(Some(RESETS))
            .max_concurrent_streams(STREAMS_PER_CONNECTION)
            .add_service(service)
            .serve_with_incoming_shutdown(ReceiverStream::new(entered), shutdown.cancelled_owned())
            .await
    }
}

struct Downlink<S: Seat> {
    handle: Handle<S>,
    shutdown: CancellationToken,
}

impl<S: Seat> Clone for Downlink<S> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), shutdown: self.shutdown.clone() }
    }
}

type Plans = Pin<Box<dyn Stream<Item = Result<EncodedPlan, Status>> + Send>>;
type Soon<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S: Seat> NamedService for Downlink<S> {
    const NAME: &'static str = wire::tree_server::SERVICE_NAME;
}

/// What the generated server would do, but for the codec: plans come encoded already.
impl<S: Seat> Service<http::Request<Body>> for Downlink<S> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Soon<Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != ATTACH {
            return Box::pin(async { Ok(Status::unimplemented("there is only Attach").into_http()) });
        }
        let service = self.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(TreeCodec).max_decoding_message_size(MAX_REPORT_BYTES);
            Ok(grpc.streaming(service, request).await)
        })
    }
}

impl<S: Seat> StreamingService<wire::ChildMessage> for Downlink<S> {
    type Response = EncodedPlan;
    type ResponseStream = Plans;
    type Future = Soon<Result<Response<Plans>, Status>>;

    fn call(&mut self, request: Request<Streaming<wire::ChildMessage>>) -> Self::Future {
        let Self { handle, shutdown } = self.clone();
        Box::pin(async move {
            let visitor = Visitor::of(&request)?;
            let mut messages = request.into_inner();
            let hello = introduction(&mut messages).await?;
            visitor.may_be(&hello)?;
            let attached = visitor.attach();
            let (plans, outgoing) = mpsc::channel(1);
            let stream = handle.greet(hello, PlanBox::Stream(plans)).await;
            tokio::spawn(listen(handle, stream, messages, attached, shutdown));
            Ok(Response::new(Box::pin(ReceiverStream::new(outgoing).map(|plan| Ok(*plan))) as Plans))
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
    attached: Attached,
    shutdown: CancellationToken,
) {
    let mut pace = Pace::new(Instant::now());
    loop {
        let next = tokio::select! {
            () = shutdown.cancelled() => break,
            next = messages.message() => next,
        };
        let Ok(Some(message)) = next else { break };
        let mut entries = 0;
        match headworks_proto::decode_child(message) {
            Ok(FromChild::Report { report, refused }) => {
                entries = report.entries.len();
                handle.send(Input::Report { stream, report, refused }).await;
            }
            Ok(FromChild::Goodbye) => break,
            Ok(FromChild::Hello(_)) => {
                handle.send(Input::Nonsense { stream, cause: "a second hello".to_owned() }).await;
            }
            Err(error) => handle.send(Input::Nonsense { stream, cause: error.to_string() }).await,
        }
        if let Some(wait) = pace.wait(Instant::now(), entries) {
            attached.visitor().note_throttled();
            // Not to read is to slow the child: its messages stay in its own process. If it goes meanwhile, what it had sent
            // is forgotten: to read that slowly too would keep its demand counted for many seconds more.
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = attached.visitor().left() => break,
                () = sleep(wait) => {}
            }
        }
    }
    handle.send(Input::Gone { stream }).await;
}
