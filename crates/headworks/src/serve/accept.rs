//! Accepting: connections come in up to a bound, and go when they end.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::BoxError;
use axum::http::{Request, Response};
use bytes::Bytes;
use headworks_agent::tls::Tls;
use hyper::body::{Body, Incoming};
use hyper::service::Service;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::connection::{Protocol, Spoken};
use super::{Bounds, Listener};

/// Rest after a failed accept: without it, a lack of descriptors makes a busy loop, which slows what would free them.
const REST: Duration = Duration::from_millis(50);

/// Trouble is over when nothing failed for so long.
const OVER: Duration = Duration::from_secs(5);

/// One listener with its connections.
pub(super) struct Acceptor {
    accepts: Accepts,
    bounds: Bounds,
    shutdown: CancellationToken,
    /// Aborts them when dropped, so that a caller who stops waiting leaves none behind.
    connections: JoinSet<()>,
}

impl Acceptor {
    pub(super) fn new(listener: Listener, bounds: Bounds, shutdown: CancellationToken) -> Self {
        let accepts = Accepts::new(listener, shutdown.clone());
        Self { accepts, bounds, shutdown, connections: JoinSet::new() }
    }

    /// Accepts until shutdown, with a service for the peer of each connection, then waits until the connections have ended.
    pub(super) async fn run<S, B>(mut self, spoken: Spoken, service_for: impl Fn(Option<IpAddr>) -> S)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let protocol = Protocol::new(spoken, self.bounds, self.shutdown.clone());
        while let Some(socket) = self.next().await {
            let (protocol, service) = (protocol.clone(), service_for(socket.peer()));
            match socket {
                Socket::Tcp(stream, _) => self.connections.spawn(protocol.serve(stream, service)),
                Socket::Tls(stream, peer, tls) => self.connections.spawn(async move {
                    let stream = match spoken {
                        Spoken::Http1 => tls.accept_client(stream, peer.ip()).await,
                        Spoken::Grpc => tls.accept_grpc(stream, peer.ip()).await,
                    };
                    if let Some(stream) = stream {
                        protocol.serve(stream, service).await;
                    }
                }),
                Socket::Unix(stream) => self.connections.spawn(protocol.serve(stream, service)),
            };
        }
        let Self { accepts, mut connections, .. } = self;
        drop(accepts);
        while connections.join_next().await.is_some() {}
    }

    /// The next connection, or nothing at shutdown.
    async fn next(&mut self) -> Option<Socket> {
        loop {
            let has_room = self.connections.len() < self.bounds.connections;
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return None,
                Some(_) = self.connections.join_next() => {}
                accepted = self.accepts.next(), if has_room => return accepted,
            }
        }
    }
}

/// A listener that goes on whatever happens to it.
pub(crate) struct Accepts {
    listener: Listener,
    shutdown: CancellationToken,
    /// When an accept failed last, until the end of the trouble is told: one line is logged when it begins and one when it
    /// ends. It comes and goes with each descriptor that becomes free.
    in_trouble: Option<Instant>,
}

impl Accepts {
    pub(crate) fn new(listener: Listener, shutdown: CancellationToken) -> Self {
        Self { listener, shutdown, in_trouble: None }
    }

    /// The next connection, or nothing at shutdown. Nothing is lost when it is dropped half-way.
    pub(crate) async fn next(&mut self) -> Option<Socket> {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return None,
                accepted = accept(&self.listener) => accepted,
            };
            match accepted {
                Ok(socket) => {
                    self.note_success();
                    return Some(socket);
                }
                Err(error) => self.rest_after(&error).await,
            }
        }
    }

    fn note_success(&mut self) {
        if self.in_trouble.take_if(|failed| failed.elapsed() >= OVER).is_some() {
            info!(listener = %self.listener, "accepts connections again");
        }
    }

    async fn rest_after(&mut self, error: &io::Error) {
        // The client gave up before it was accepted: no trouble of ours.
        if error.kind() == io::ErrorKind::ConnectionAborted {
            return;
        }
        if self.in_trouble.replace(Instant::now()).is_none() {
            warn!(listener = %self.listener, %error, "cannot accept connections, goes on trying (descriptors: see ulimit -n)");
        }
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = sleep(REST) => {}
        }
    }
}

/// An accepted connection.
pub(crate) enum Socket {
    Tcp(TcpStream, SocketAddr),
    Tls(TcpStream, SocketAddr, Tls),
    Unix(UnixStream),
}

impl Socket {
    /// The address of the other side; there is none on a Unix socket.
    fn peer(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(_, peer) | Self::Tls(_, peer, _) => Some(peer.ip()),
            Self::Unix(_) => None,
        }
    }
}

async fn accept(listener: &Listener) -> io::Result<Socket> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, peer) = accept_tcp(listener).await?;
            Ok(Socket::Tcp(stream, peer))
        }
        Listener::Tls(listener, tls) => {
            let (stream, peer) = accept_tcp(listener).await?;
            Ok(Socket::Tls(stream, peer, tls.clone()))
        }
        Listener::Unix(listener) => Ok(Socket::Unix(listener.accept().await?.0)),
    }
}

async fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept().await?;
    // Answers are one small write each; to hold them back helps nobody. Fails only on a dead connection.
    let _ = stream.set_nodelay(true);
    Ok((stream, peer))
}
