//! The listeners of a node: opened together, drained together.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::Router;
use headworks_agent::tls::Tls;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::security::Security;
use crate::failure::Failure;
use crate::front::{GrpcFront, HttpFront};
use crate::rlqs::{self, Site};
use crate::serve::{self, Bounds, Listener, Spoken};
use crate::status::NodeStatus;
use crate::tree::{self, Handle, Seat, TreeCounters, TreePort, ZoneSeat};

/// How long requests that are under way may take to end. No route takes longer than milliseconds.
const UNDER_WAY: Duration = Duration::from_secs(2);

/// What a node serves, and whether it is ready.
pub(crate) struct Ports {
    role: &'static str,
    zone: String,
    region: String,
    security: Security,
    tree_counters: Arc<TreeCounters>,
    rlqs_counters: Option<Arc<rlqs::Counters>>,
    ready: watch::Sender<bool>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Ports {
    /// No listeners yet, and not ready.
    pub(super) fn new(role: &'static str, security: Security) -> Self {
        Self {
            role,
            zone: String::new(),
            region: String::new(),
            security,
            tree_counters: Arc::default(),
            rlqs_counters: None,
            ready: watch::Sender::new(false),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// The same for a node that stands in a zone.
    pub(super) fn in_zone(self, zone: &str, region: &str) -> Self {
        Self { zone: zone.to_owned(), region: region.to_owned(), ..self }
    }

    /// Whether the node is ready, for those who are asked.
    pub(super) fn readiness(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Cancelled when the ports close.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// Runs a task that ends when the ports close.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Serves routes to operators.
    pub(crate) fn routes(&self, what: &str, listener: Listener, routes: Router) {
        let listener = listener.with_tls(self.security.admin_tls());
        self.announce(what, &listener.to_string());
        self.spawn(serve::run(listener, routes, Bounds::default(), self.closing()));
    }

    /// Serves what clients ask over HTTP, by a service for the peer of each connection.
    pub(super) fn http(&self, what: &str, listener: Listener, front: HttpFront) {
        let listener = listener.with_tls(self.security.http_tls());
        self.announce(what, &listener.to_string());
        let service_for = move |peer| front.for_peer(peer);
        self.spawn(serve::run_service(
            listener,
            Spoken::Http1,
            service_for,
            Bounds::default(),
            self.closing(),
        ));
    }

    /// Serves what proxies ask over gRPC.
    pub(super) fn grpc(&self, what: &str, listener: Listener, front: GrpcFront) {
        let listener = listener.with_tls(self.security.grpc_tls());
        self.announce(what, &listener.to_string());
        let service_for = move |_| front.clone();
        self.spawn(serve::run_service(
            listener,
            Spoken::Grpc,
            service_for,
            Bounds::for_grpc(),
            self.closing(),
        ));
    }

    /// Serves the children of a parent.
    pub(super) fn tree<S: Seat>(&self, listener: TcpListener, handle: Handle<S>) -> Result<(), Failure> {
        self.announce("tree", &listener.local_addr()?.to_string());
        let port =
            TreePort { listener, tls: self.security.tls.clone(), counters: self.tree_counters.clone() };
        let closing = self.closing();
        self.spawn(async move {
            if let Err(error) = tree::serve(port, handle, closing).await {
                tracing::error!(%error, "children are no longer served");
            }
        });
        Ok(())
    }

    /// Serves Envoys that ask an aggregator for quotas.
    pub(super) fn rlqs(
        &mut self,
        listener: TcpListener,
        handle: Handle<ZoneSeat>,
        hold: Duration,
    ) -> Result<(), Failure> {
        self.announce("rlqs", &listener.local_addr()?.to_string());
        let counters = self.rlqs_counters.insert(Arc::default()).clone();
        let port = TreePort { listener, tls: None, counters: self.tree_counters.clone() };
        let site = Site {
            handle,
            zone: self.zone.clone(),
            region: self.region.clone(),
            hold,
            counters,
            shutdown: self.closing(),
        };
        self.spawn(async move {
            if let Err(error) = rlqs::serve(port, site).await {
                tracing::error!(%error, "Envoys are no longer served");
            }
        });
        Ok(())
    }

    /// Follows the files of the node's credentials.
    pub(super) fn follow_credentials(&self) {
        if let Some(tls) = self.security.tls.clone() {
            self.spawn(tls.watch(self.closing()));
        }
    }

    /// What the ports themselves have to tell, and where the node stands, for a status.
    pub(super) fn witness(&self) -> Witness {
        Witness {
            zone: self.zone.clone(),
            region: self.region.clone(),
            tls: self.security.tls.clone(),
            tree: self.tree_counters.clone(),
            rlqs: self.rlqs_counters.clone(),
        }
    }

    fn announce(&self, what: &str, address: &str) {
        tracing::info!(role = self.role, what, address, "listening");
    }

    /// Whether the node is ready from now on.
    pub(super) fn set_ready(&self, ready: bool) {
        self.ready.send_replace(ready);
    }

    /// Stops accepting, and waits until what is under way has ended; not for a client that never ends its request,
    /// which would use up the grace period that the last report needs.
    pub(super) async fn close(self) {
        self.closing.cancel();
        self.tasks.close();
        let _ = timeout(UNDER_WAY, self.tasks.wait()).await;
    }
}

/// Tells what happened at the ports of a node.
#[derive(Clone)]
pub(super) struct Witness {
    zone: String,
    region: String,
    tls: Option<Tls>,
    tree: Arc<TreeCounters>,
    rlqs: Option<Arc<rlqs::Counters>>,
}

impl Witness {
    /// The status with that in it.
    pub(super) fn complete(&self, status: NodeStatus) -> NodeStatus {
        NodeStatus {
            zone: self.zone.clone(),
            region: self.region.clone(),
            tls: self.tls.as_ref().map(|tls| tls.status().into()),
            rlqs: self.rlqs.as_ref().map(|counters| counters.view()),
            reports_throttled: self.tree.throttled.load(Relaxed),
            tree_closed_silent: self.tree.silent.load(Relaxed),
            tree_closed_restless: self.tree.restless.load(Relaxed),
            ..status
        }
    }
}

/// The TCP listener that a gRPC server takes.
pub(super) async fn bind_tree(
    flag: &'static str,
    address: std::net::SocketAddr,
) -> Result<TcpListener, Failure> {
    match serve::bind_tcp(flag, address).await? {
        Listener::Tcp(listener) => Ok(listener),
        _ => Err(Failure::Failed(format!("{flag} is not bound to a TCP port"))),
    }
}
