//! Dialling a parent, with TLS where its URL says so.

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use headworks_core::message::Tier;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::AsyncBufReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::route::Candidate;
use crate::tls::{Refusal, Tls};

/// Time to connect before another parent is tried.
const CONNECT: Duration = Duration::from_secs(3);
/// Pings on the stream, and how long an answer may take: a half-open link is found within 10 s.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// How a node reaches its parents.
#[derive(Clone, Debug)]
pub struct Dialer {
    tls: Option<Tls>,
    /// What a parent's certificate must let it be.
    parents: &'static [Tier],
}

/// A parent that could not be reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("https:// needs credentials; give --tls-cert, --tls-key and --tls-ca")]
    NoCredentials,
    #[error("the credentials cannot be used: {0}")]
    Credentials(String),
    #[error("connection failed")]
    Transport(#[from] tonic::transport::Error),
}

impl Dialer {
    /// Of an agent: its parent is an aggregator, or a controller where there is no tier between.
    pub fn of_agent(tls: Option<Tls>) -> Self {
        Self { tls, parents: &[Tier::Aggregator, Tier::Controller] }
    }

    /// Of an aggregator: its parents are controllers.
    pub fn of_aggregator(tls: Option<Tls>) -> Self {
        Self { tls, parents: &[Tier::Controller] }
    }

    /// A connection to a parent. Its certificate is checked against the host in its URL, whatever address that has.
    pub(super) async fn connect(&self, parent: &Candidate) -> Result<Channel, DialError> {
        let secured = parent.is_secure();
        let target = if secured { parent.url.clone() } else { parent.label() };
        let endpoint = Endpoint::from_shared(target)?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .keep_alive_while_idle(true);
        if !secured {
            return Ok(endpoint.connect().await?);
        }
        let tls = self.tls.clone().ok_or(DialError::NoCredentials)?;
        // Made anew for each connection, so that it is of the newest credentials.
        let config = Arc::new(tls.client(self.parents).map_err(DialError::Credentials)?);
        let address = parent.address;
        let connector = service_fn(move |uri| secure(uri, address, config.clone(), tls.clone()));
        Ok(endpoint.connect_with_connector(connector).await?)
    }
}

/// A connection on which both sides have accepted each other.
async fn secure(
    uri: Uri,
    address: SocketAddr,
    config: Arc<ClientConfig>,
    tls: Tls,
) -> io::Result<TokioIo<TlsStream<TcpStream>>> {
    match handshake(&uri, address, config).await {
        Ok(stream) => Ok(TokioIo::new(stream)),
        Err(error) => Err(match Refusal::of(&error) {
            Some(refusal) => {
                tls.refusals().count(refusal.cause);
                io::Error::other(refusal)
            }
            None => error,
        }),
    }
}

async fn handshake(
    uri: &Uri,
    address: SocketAddr,
    config: Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut stream = TlsConnector::from(config).connect(name, stream).await?;
    // In TLS 1.3 this side is done before the other has looked at its certificate. A parent speaks first, so what can be
    // read now is its settings, or why it refuses; later, that would be lost in the failure of a stream.
    if stream.fill_buf().await?.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the parent closed the connection at once"));
    }
    Ok(stream)
}

/// Why a stream was not opened. One who speaks plain text to a port with TLS learns no more than that the protocol broke.
pub(super) fn explain(parent: &Candidate, status: Status) -> Status {
    if parent.is_secure() || status.source().is_none() {
        return status;
    }
    Status::new(status.code(), format!("{}; if the parent has --tls-cert, write https://", status.message()))
}
