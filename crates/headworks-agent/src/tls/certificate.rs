//! What a certificate says: when it holds, its serial number, and the URIs it names.

use std::time::{SystemTime, UNIX_EPOCH};

use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::time::Time;

/// A certificate that has been read.
pub(super) struct Facts {
    /// Seconds since 1970.
    pub(super) not_after: u64,
    pub(super) serial: String,
    pub(super) uris: Vec<String>,
    validity: [Time; 2],
}

/// Whether a moment is within a certificate's time, and if not, the end that it missed.
pub(super) enum Standing {
    Valid,
    NotBefore(String),
    NotAfter(String),
}

impl Facts {
    pub(super) fn read(der: &[u8]) -> Result<Self, String> {
        let certificate = Certificate::from_der(der).map_err(|error| error.to_string())?;
        let told = &certificate.tbs_certificate;
        let names = told.get::<SubjectAltName>().map_err(|error| error.to_string())?;
        let uri = |name: &GeneralName| match name {
            GeneralName::UniformResourceIdentifier(uri) => Some(uri.as_str().to_owned()),
            _ => None,
        };
        Ok(Self {
            not_after: told.validity.not_after.to_unix_duration().as_secs(),
            serial: told.serial_number.to_string(),
            uris: names.iter().flat_map(|(_, names)| names.0.iter().filter_map(uri)).collect(),
            validity: [told.validity.not_before, told.validity.not_after],
        })
    }

    pub(super) fn standing(&self, now: SystemTime) -> Standing {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let [from, until] = &self.validity;
        if now < from.to_unix_duration() {
            Standing::NotBefore(from.to_date_time().to_string())
        } else if now > until.to_unix_duration() {
            Standing::NotAfter(until.to_date_time().to_string())
        } else {
            Standing::Valid
        }
    }
}
