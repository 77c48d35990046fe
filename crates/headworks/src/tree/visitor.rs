//! One who is connected to a tree port: first a stranger, then a child.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use headworks_agent::tls::{Cause, Identities, Tls};
use headworks_core::message::Hello;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

/// Streams in the life of one connection. A child opens one, and a new connection for the next; whoever opens streams
/// only to end them costs a task each time.
const STREAMS_IN_A_LIFE: u32 = 100;

/// What befell those who overdid it.
#[derive(Debug, Default)]
pub(crate) struct TreeCounters {
    /// Reports that had to wait, since their child sent too many.
    pub(crate) throttled: AtomicU64,
    /// Connections closed, since nobody said hello on them in time.
    pub(crate) silent: AtomicU64,
    /// Connections closed, since too many streams were opened on them.
    pub(crate) restless: AtomicU64,
}

/// One connection's place among the others; kept until it and its streams are gone.
pub(crate) struct Visitor {
    peer: SocketAddr,
    /// Who it is by its certificate, and whose credentials asked for one; nothing on a plain port.
    credentials: Option<(Identities, Tls)>,
    attached: AtomicUsize,
    opened: AtomicU32,
    doomed: AtomicBool,
    /// Cancelled when its connection has ended.
    gone: CancellationToken,
    counters: Arc<TreeCounters>,
    /// Its place among those that have not said hello.
    stranger: Mutex<Option<OwnedSemaphorePermit>>,
    _connected: OwnedSemaphorePermit,
}

/// A place in the gate, for a connection that is about to come.
pub(super) struct Place {
    pub(super) connected: OwnedSemaphorePermit,
    pub(super) stranger: OwnedSemaphorePermit,
}

impl Visitor {
    pub(super) fn new(
        peer: SocketAddr,
        credentials: Option<(Identities, Tls)>,
        counters: Arc<TreeCounters>,
        place: Place,
    ) -> Self {
        Self {
            peer,
            credentials,
            attached: AtomicUsize::new(0),
            opened: AtomicU32::new(0),
            doomed: AtomicBool::new(false),
            gone: CancellationToken::new(),
            counters,
            stranger: Mutex::new(Some(place.stranger)),
            _connected: place.connected,
        }
    }

    /// Whose stream it is that begins with this request.
    pub(crate) fn of<T>(request: &Request<T>) -> Result<Arc<Self>, Status> {
        let visitor = request.extensions().get::<Arc<Self>>().cloned();
        let visitor = visitor.ok_or_else(|| Status::internal("a stream without a connection"))?;
        visitor.opens_stream()?;
        Ok(visitor)
    }

    /// Counts a stream; too many of them end the connection.
    fn opens_stream(&self) -> Result<(), Status> {
        if self.opened.fetch_add(1, Relaxed) < STREAMS_IN_A_LIFE {
            return Ok(());
        }
        if !self.doomed.swap(true, Relaxed) {
            self.counters.restless.fetch_add(1, Relaxed);
        }
        Err(Status::resource_exhausted("too many streams on one connection; a child needs one"))
    }

    /// Whether its certificate lets it be what it says it is.
    pub(super) fn may_be(&self, hello: &Hello) -> Result<(), Status> {
        let Some((identities, tls)) = &self.credentials else { return Ok(()) };
        identities.admit(hello.tier, &hello.node).map_err(|reason| {
            tls.refusals().note(self.peer.ip(), Cause::WrongRole, &reason);
            Status::permission_denied(reason)
        })
    }

    /// From where it connects.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// It has said hello: its connection stays for as long as what is returned here.
    pub(crate) fn attach(self: Arc<Self>) -> Attached {
        self.attached.fetch_add(1, Relaxed);
        self.stranger.lock().unwrap_or_else(PoisonError::into_inner).take();
        Attached(self)
    }

    pub(super) fn is_attached(&self) -> bool {
        self.attached.load(Relaxed) > 0
    }

    pub(super) fn is_doomed(&self) -> bool {
        self.doomed.load(Relaxed)
    }

    /// Tells that its connection has ended.
    pub(super) fn leave(&self) {
        self.gone.cancel();
    }

    /// Waits until its connection has ended.
    pub(crate) async fn left(&self) {
        self.gone.cancelled().await;
    }

    pub(super) fn note_silence(&self) {
        self.counters.silent.fetch_add(1, Relaxed);
    }

    pub(crate) fn note_throttled(&self) {
        self.counters.throttled.fetch_add(1, Relaxed);
    }
}

/// A stream on which a child has said hello.
pub(crate) struct Attached(Arc<Visitor>);

impl Attached {
    pub(crate) fn visitor(&self) -> &Visitor {
        &self.0
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.attached.fetch_sub(1, Relaxed);
    }
}
