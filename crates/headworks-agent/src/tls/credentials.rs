//! Checked credentials, and what TLS makes of them.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use headworks_core::message::Tier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig};

use super::TlsError;
use super::certificate::{Facts, Standing};
use super::files::{Content, TlsFiles};
use super::identity::Identities;
use super::verify::ParentVerifier;

/// What is made of content.
pub(super) struct Parts {
    provider: Arc<CryptoProvider>,
    own: Arc<SingleCertAndKey>,
    roots: Arc<RootCertStore>,
    pub(super) facts: Facts,
    /// For children: both sides show certificates.
    pub(super) tree: Arc<ServerConfig>,
    /// For those who ask over HTTP: only this side does.
    pub(super) front: Arc<ServerConfig>,
    /// For those who ask over gRPC.
    pub(super) grpc: Arc<ServerConfig>,
}

impl Parts {
    pub(super) fn parse(files: &TlsFiles, content: &Content, now: SystemTime) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let chain = certificates("certificate", &files.cert, &content.cert)?;
        let facts = check_times(files, &chain, now)?;
        let own = Arc::new(SingleCertAndKey::from(pair(files, chain, &content.key, &provider)?));
        let roots = Arc::new(authorities(&files.ca, &content.ca)?);
        let broken =
            |reason: String| TlsError::Broken { what: "authorities", path: files.ca.clone(), reason };
        let tree = Arc::new(tree_config(&provider, &own, &roots).map_err(broken)?);
        let asked_over = |protocol: &[u8]| {
            let config = front_config(&provider, &own, protocol);
            config.map(Arc::new).map_err(|error| broken(error.to_string()))
        };
        let (front, grpc) = (asked_over(b"http/1.1")?, asked_over(b"h2")?);
        Ok(Self { provider, own, roots, facts, tree, front, grpc })
    }

    /// Whether this node's own certificate gives it this role.
    pub(super) fn have_role(&self, tier: Tier) -> bool {
        Identities::from_uris(self.facts.uris.iter().map(String::as_str)).include(&[tier])
    }

    /// For a parent that must be of one of these tiers.
    pub(super) fn client(&self, tiers: &'static [Tier]) -> Result<ClientConfig, String> {
        let names = WebPkiServerVerifier::builder_with_provider(self.roots.clone(), self.provider.clone());
        let names = names.build().map_err(|error| error.to_string())?;
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(ParentVerifier { names, tiers }))
            .with_client_cert_resolver(self.own.clone());
        config.alpn_protocols = vec![b"h2".to_vec()];
        // A resumed session would skip the look at the certificate.
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

/// Credentials in force: whatever is made of them is made of files that fit together.
pub(super) struct Credentials {
    /// What they were made of.
    pub(super) content: Content,
    pub(super) parts: Parts,
}

impl Credentials {
    /// Checks all that can be wrong before a peer finds out.
    pub(super) fn parse(files: &TlsFiles, content: Content, now: SystemTime) -> Result<Self, TlsError> {
        Ok(Self { parts: Parts::parse(files, &content, now)?, content })
    }
}

fn certificates(
    what: &'static str,
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let broken = |reason: String| TlsError::Broken { what, path: path.to_owned(), reason };
    let read = read.map_err(|error| broken(error.to_string()))?;
    if read.is_empty() {
        return Err(TlsError::NoCertificate { what, path: path.to_owned() });
    }
    Ok(read)
}

/// All of the chain must hold now; what the first one says.
fn check_times(files: &TlsFiles, chain: &[CertificateDer<'_>], now: SystemTime) -> Result<Facts, TlsError> {
    let path = || files.cert.clone();
    let read = |der: &CertificateDer<'_>| {
        Facts::read(der).map_err(|reason| TlsError::Broken { what: "certificate", path: path(), reason })
    };
    let all = chain.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    for facts in &all {
        match facts.standing(now) {
            Standing::Valid => {}
            Standing::NotAfter(at) => return Err(TlsError::Expired { path: path(), at }),
            Standing::NotBefore(from) => return Err(TlsError::NotYetValid { path: path(), from }),
        }
    }
    all.into_iter().next().ok_or_else(|| TlsError::NoCertificate { what: "certificate", path: path() })
}

fn pair(
    files: &TlsFiles,
    chain: Vec<CertificateDer<'static>>,
    key: &[u8],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let path = || files.key.clone();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey { path: path() })?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        Error::InconsistentKeys(_) => TlsError::KeyMismatch { key: path(), cert: files.cert.clone() },
        other => TlsError::Broken { what: "key", path: path(), reason: other.to_string() },
    })
}

pub(super) fn authorities(path: &Path, pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("authorities", path, pem)? {
        let broken = |reason: String| TlsError::Broken { what: "authorities", path: path.to_owned(), reason };
        roots.add(certificate).map_err(|error| broken(error.to_string()))?;
    }
    Ok(roots)
}

fn tree_config(
    provider: &Arc<CryptoProvider>,
    own: &Arc<SingleCertAndKey>,
    roots: &Arc<RootCertStore>,
) -> Result<ServerConfig, String> {
    let clients = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(clients.build().map_err(|error| error.to_string())?)
        .with_cert_resolver(own.clone());
    config.alpn_protocols = vec![b"h2".to_vec()];
    // A resumed session would skip the look at the certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn front_config(
    provider: &Arc<CryptoProvider>,
    own: &Arc<SingleCertAndKey>,
    protocol: &[u8],
) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(own.clone());
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}
