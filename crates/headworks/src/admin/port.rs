//! The admin port's listeners.

use std::net::SocketAddr;
use std::sync::Arc;

use super::gate::Gate;
use super::token::TokenFile;
use super::{Admin, AdminSettings, Guarded};
use crate::failure::Failure;
use crate::role::Ports;
use crate::serve::{self, Listener};

/// The admin port of a node, bound, and the one for metrics if there is one.
#[derive(Debug)]
pub(crate) struct AdminPort {
    listener: Listener,
    metrics: Option<Listener>,
    token: Option<Arc<TokenFile>>,
}

impl AdminPort {
    /// Binds what the settings say; the flags are what errors call the two addresses.
    pub(crate) async fn bind(flags: [&'static str; 2], settings: AdminSettings) -> Result<Self, Failure> {
        let [admin, metrics] = flags;
        Ok(Self {
            listener: serve::bind_tcp(admin, settings.address).await?,
            metrics: match settings.metrics {
                Some(address) => Some(serve::bind_tcp(metrics, address).await?),
                None => None,
            },
            token: settings.token.map(Arc::new),
        })
    }

    /// Its address.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.tcp_address()
    }

    /// Serves until the ports close.
    pub(crate) fn serve(self, ports: &Ports, admin: Admin) -> Result<(), Failure> {
        let wide = !self.address()?.ip().to_canonical().is_loopback();
        if wide && self.token.is_none() {
            tracing::warn!(
                "--admin is beyond loopback and has no token: other machines read /metrics, and nobody may read \
                 /status; start with --admin-token-file"
            );
        }
        if let Some(token) = self.token.clone() {
            let closing = ports.closing();
            ports.spawn(async move { token.follow(closing).await });
        }
        let gate = Arc::new(Gate::new(self.token, wide));
        if let Some(listener) = self.metrics {
            let guarded = Guarded::new(admin.clone(), gate.clone());
            ports.routes("metrics", listener, guarded.for_probes());
        }
        ports.routes("admin", self.listener, admin.routes(gate));
        Ok(())
    }
}
