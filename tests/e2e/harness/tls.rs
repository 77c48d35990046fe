//! The least TLS client that will do.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::certs::{Authority, Issued, serial_of};

/// No handshake takes this long unless its server hangs.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A connection to a port of this machine whose handshake is over for this side.
pub(crate) fn connect(address: &str, authority: &Authority, own: Option<&Issued>) -> io::Result<TlsStream> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der.clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => builder.with_client_auth_cert(own.chain.clone(), own.secret.clone_key()).unwrap(),
    };
    let mut connection =
        ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(connection, stream))
}

/// The serial number of the certificate that a port shows; nothing while it is away.
pub(crate) fn shown_serial(address: &str, authority: &Authority) -> Option<String> {
    let stream = connect(address, authority, None).ok()?;
    stream.conn.peer_certificates()?.first().map(|certificate| serial_of(certificate))
}

/// What a port answers to one who greets it as a child would: nothing but an error if it refuses.
pub(crate) fn greet(mut stream: impl Read + Write) -> io::Result<usize> {
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")?;
    stream.read(&mut [0; 1024])
}
