//! The flags by which proxies ask an agent.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::BoolishValueParser;

use super::{AuthzSettings, Derived, Fact, FromHeader, Network, Trust, attribute};

/// How proxies ask.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Proxies")]
pub(crate) struct ProxyArgs {
    /// Answer Envoy over gRPC here, such as 127.0.0.1:8101: its rate limit service (envoy.service.ratelimit.v3) and external
    /// authorization (envoy.service.auth.v3), with health and reflection [default: not at all]
    #[arg(long, env = "HEADWORKS_GRPC", value_name = "ADDRESS")]
    pub(crate) grpc: Option<SocketAddr>,
    /// Answer the same on a Unix socket. All users of this machine may ask there; let the rights of its folder say who may not
    #[arg(long, env = "HEADWORKS_GRPC_UNIX", value_name = "PATH")]
    pub(crate) grpc_unix: Option<PathBuf>,
    /// Serve --grpc over TLS, with the certificate of --tls-cert; clients need none
    #[arg(long, env = "HEADWORKS_GRPC_TLS", requires_all = ["tls_cert", "grpc"], value_parser = BoolishValueParser::new())]
    pub(crate) grpc_tls: bool,
    /// Headers whose values become attributes, for /allow and external authorization: x-api-key=caller. What a query or a route
    /// names itself comes first; of a header that is there several times /allow takes the first line, and Envoy hands on all of them in one value; empty ones count as absent. With this
    /// or --client-attribute, /allow wants no `key`. Clients can send any header: have the proxy set those that name somebody
    #[arg(long, env = "HEADWORKS_ATTRIBUTES_FROM", value_delimiter = ',', value_name = "HEADER=ATTRIBUTE,…")]
    pub(crate) attributes_from: Vec<FromHeader>,
    /// Let the client's address become this attribute: an IPv4 address, or of an IPv6 one its network, 2001:db8::/64. /allow takes
    /// that of who connects, unless it is a trusted proxy; external authorization takes what Envoy says
    #[arg(long, env = "HEADWORKS_CLIENT_ATTRIBUTE", value_name = "ATTRIBUTE", value_parser = attribute)]
    pub(crate) client_attribute: Option<String>,
    /// With --client-attribute: networks of proxies whose X-Forwarded-For /allow believes, such as 127.0.0.0/8; the client is the last
    /// address in it that is no trusted proxy's. Who asks on the Unix socket is trusted too then. A trusted proxy that says what is no
    /// address stands for its client itself [default: none are]
    #[arg(
        long,
        env = "HEADWORKS_TRUSTED_PROXIES",
        value_delimiter = ',',
        requires = "client_attribute",
        value_name = "NETWORK,…"
    )]
    pub(crate) trusted_proxies: Vec<Network>,
    /// Facts of a request that become attributes of these names in external authorization, beside the route's context_extensions
    #[arg(
        long,
        env = "HEADWORKS_AUTHZ_ATTRIBUTES",
        value_delimiter = ',',
        value_enum,
        value_name = "FACT,…"
    )]
    pub(crate) authz_attributes: Vec<Fact>,
}

impl ProxyArgs {
    /// Where attributes come from.
    pub(crate) fn authz(&self) -> AuthzSettings {
        let trust = Trust::new(self.trusted_proxies.clone());
        let derived = Derived::new(self.attributes_from.clone(), self.client_attribute.clone(), trust);
        AuthzSettings { facts: self.authz_attributes.clone(), derived: Arc::new(derived) }
    }
}
