//! One who asks a port that is served over TLS, and shows nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Refusal, TlsError, credentials, files};

/// The authorities that a server's certificate must come from.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Reads them from a file in PEM.
    pub fn load(path: &Path) -> Result<Self, TlsError> {
        let roots = credentials::authorities(path, &files::read("authorities", path)?)?;
        let broken = |reason| TlsError::Broken { what: "authorities", path: path.to_owned(), reason };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| broken(error.to_string()))?;
        Ok(Self(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
    }

    /// The handshake with the server that was dialled as `host`, a name or an address.
    pub async fn secure<IO>(&self, stream: IO, host: &str) -> io::Result<TlsStream<IO>>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let name =
            ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(io::Error::other)?;
        let connected = TlsConnector::from(self.0.clone()).connect(name, stream).await;
        connected.map_err(|error| Refusal::of(&error).map_or(error, io::Error::other))
    }
}
