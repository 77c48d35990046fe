//! Quotas for Envoy: `envoy.service.rate_limit_quota.v3`, served by an aggregator.
//!
//! Each stream is an Envoy that asks for one domain, and a child of the aggregator like any agent: what Envoy reports is
//! demand, and its share comes back as a bucket of tokens. What is decided is in [`headworks_core::quota`]; here are the stream
//! ([`stream`]), the messages ([`wire`]) and what of them is read at all ([`codec`]).

mod codec;
mod counters;
#[cfg(test)]
mod fuzz;
mod stream;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub(crate) use counters::{Counters, RlqsView};

use crate::tree::{Handle, TreePort, ZoneSeat};

/// What all Envoys of an aggregator have in common.
pub(crate) struct Site {
    pub(crate) handle: Handle<ZoneSeat>,
    pub(crate) zone: String,
    pub(crate) region: String,
    /// How long the last headrooms stay.
    pub(crate) hold: Duration,
    pub(crate) counters: Arc<Counters>,
    pub(crate) shutdown: CancellationToken,
}

/// Serves Envoys on a bound listener until shutdown.
pub(crate) async fn serve(port: TreePort, site: Site) -> Result<(), tonic::transport::Error> {
    let shutdown = site.shutdown.clone();
    port.serve(codec::Server(Arc::new(site)), shutdown).await
}
