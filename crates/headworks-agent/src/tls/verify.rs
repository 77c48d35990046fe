//! A child's look at its parent: from our authority, for the name that was dialled, and of the right role.

use std::sync::Arc;

use headworks_core::message::Tier;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

use super::identity::Identities;

/// A parent whose certificate is good, but for something else.
#[derive(Debug, thiserror::Error)]
#[error("the parent's certificate gives {is}, but {wanted} is needed; is it another tier's port?")]
pub(super) struct WrongRole {
    is: String,
    wanted: String,
}

/// Checks as everybody does, and then the role.
#[derive(Debug)]
pub(super) struct ParentVerifier {
    pub(super) names: Arc<WebPkiServerVerifier>,
    pub(super) tiers: &'static [Tier],
}

impl ServerCertVerifier for ParentVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.names.verify_server_cert(certificate, intermediates, name, ocsp, now)?;
        let identities = Identities::of(std::slice::from_ref(certificate));
        if identities.include(self.tiers) {
            return Ok(verified);
        }
        let wanted: Vec<&str> = self.tiers.iter().map(|tier| tier.name()).collect();
        let wrong = WrongRole { is: identities.roles(), wanted: wanted.join(" or ") };
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(wrong)))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.names.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.names.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.names.supported_verify_schemes()
    }
}
