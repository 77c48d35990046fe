//! The gate of a tree port: whom it lets in, over what, and how long one may stay without saying hello.

use std::sync::Arc;
use std::time::Duration;

use headworks_agent::tls::Tls;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::visitor::{Place, TreeCounters, Visitor};
use crate::serve::{Accepts, Listener, Socket};

/// Connections open at once. Beyond it no more are accepted, so that a flood fills the kernel's queue, not this
/// process's descriptors and memory.
const CONNECTIONS: usize = 32_768;
/// Those among them that have not said hello: so a flood of strangers leaves room for children that are attached, and
/// thousands that come back at once are let in by turns.
const STRANGERS: usize = 4096;
/// Time from the accept to the hello, or from one child's end to the next one's hello. Ends connections that send
/// nothing, and those that send a byte now and then; longer than a handshake may take.
pub(super) const INTRODUCTION: Duration = Duration::from_secs(15);

/// What a gate lets in.
pub(super) type Let = std::io::Result<Connection>;

/// A bound port, and what those who connect to it must show.
pub(super) struct Gate {
    pub(super) tls: Option<Tls>,
    pub(super) counters: Arc<TreeCounters>,
    pub(super) shutdown: CancellationToken,
}

impl Gate {
    /// Lets connections in until shutdown.
    pub(super) async fn open(self, listener: Listener, into: mpsc::Sender<Let>) {
        let mut accepts = Accepts::new(listener, self.shutdown.clone());
        let (connected, strangers) =
            (Arc::new(Semaphore::new(CONNECTIONS)), Arc::new(Semaphore::new(STRANGERS)));
        let gate = Arc::new(self);
        loop {
            let place = gate.shutdown.run_until_cancelled(place(&connected, &strangers)).await;
            let Some(Some(place)) = place else { return };
            match accepts.next().await {
                Some(Socket::Tcp(stream, peer)) => {
                    tokio::spawn(gate.clone().enter(stream, peer, place, into.clone()));
                }
                // A tree port is plain TCP here; TLS is this gate's own affair.
                Some(_) => {}
                None => return,
            }
        }
    }

    async fn enter(
        self: Arc<Self>,
        stream: TcpStream,
        peer: std::net::SocketAddr,
        place: Place,
        into: mpsc::Sender<Let>,
    ) {
        let deadline = Instant::now() + INTRODUCTION;
        let entered = self.shutdown.run_until_cancelled(async {
            let (io, credentials) = match &self.tls {
                None => (Either::Left(stream), None),
                Some(tls) => {
                    let (stream, identities) = tls.accept_child(stream, peer.ip()).await?;
                    (Either::Right(Box::new(stream)), Some((identities, tls.clone())))
                }
            };
            let visitor = Visitor::new(peer, credentials, self.counters.clone(), place);
            Some(Connection::new(io, Arc::new(visitor), deadline))
        });
        if let Some(Some(connection)) = entered.await {
            let _ = into.send(Ok(connection)).await;
        }
    }
}

/// A place for one more; waits until there is one.
async fn place(connected: &Arc<Semaphore>, strangers: &Arc<Semaphore>) -> Option<Place> {
    let connected = connected.clone().acquire_owned().await.ok()?;
    let stranger = strangers.clone().acquire_owned().await.ok()?;
    Some(Place { connected, stranger })
}
