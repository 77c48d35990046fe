//! Handshakes with those who connect.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Identities, Refusal, Tls};

/// Time for a handshake: ends those who connect and say nothing, or a byte now and then.
pub const HANDSHAKE: Duration = Duration::from_secs(10);

impl Tls {
    /// A child's handshake: it must show a certificate. Nothing if it is refused, which is logged and counted.
    pub async fn accept_child<IO>(&self, io: IO, peer: IpAddr) -> Option<(TlsStream<IO>, Identities)>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let stream = self.accept(self.tree(), io, peer).await?;
        let identities = Identities::of(stream.get_ref().1.peer_certificates().unwrap_or_default());
        Some((stream, identities))
    }

    /// The handshake of one who asks over HTTP, and needs no certificate.
    pub async fn accept_client<IO>(&self, io: IO, peer: IpAddr) -> Option<TlsStream<IO>>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        self.accept(self.front(), io, peer).await
    }

    /// The same of one who asks over gRPC.
    pub async fn accept_grpc<IO>(&self, io: IO, peer: IpAddr) -> Option<TlsStream<IO>>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        self.accept(self.grpc(), io, peer).await
    }

    async fn accept<IO>(&self, config: Arc<ServerConfig>, io: IO, peer: IpAddr) -> Option<TlsStream<IO>>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let ended = timeout(HANDSHAKE, TlsAcceptor::from(config).accept(io)).await;
        let refusal = match ended {
            Ok(Ok(stream)) => return Some(stream),
            // One who hangs up in the middle is a probe of a load balancer, and nothing to tell.
            Ok(Err(error)) => Refusal::of(&error)?,
            Err(_) => Refusal::timeout(),
        };
        self.refusals().note(peer, refusal.cause, &refusal.text);
        None
    }
}
