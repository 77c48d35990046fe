//! Why a peer is refused: told in words, counted by cause, logged without flooding the log.

use std::collections::HashMap;
use std::error::Error as _;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::{AlertDescription, CertificateError, Error};

use super::verify::WrongRole;

/// A peer that goes on being refused for one cause is logged again after this time.
const REPEAT: Duration = Duration::from_secs(60);
/// Peers and causes remembered for that; with more, further ones are only counted.
const REMEMBERED: usize = 1024;

/// Why a peer was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It showed no certificate.
    NoCertificate,
    /// Its certificate comes from an authority that is not ours.
    UnknownCa,
    /// Its certificate has expired.
    Expired,
    /// Its certificate is for later.
    NotYetValid,
    /// Its certificate is for another host.
    WrongName,
    /// Its certificate does not let it be what it wants to be.
    WrongRole,
    /// Its certificate is broken, or not for this purpose.
    BadCertificate,
    /// It refused us.
    RefusedByPeer,
    /// It did not finish the handshake in time.
    Timeout,
    /// What it speaks is not TLS, or none that we have in common.
    NotTls,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; 10] = [
        Cause::NoCertificate,
        Cause::UnknownCa,
        Cause::Expired,
        Cause::NotYetValid,
        Cause::WrongName,
        Cause::WrongRole,
        Cause::BadCertificate,
        Cause::RefusedByPeer,
        Cause::Timeout,
        Cause::NotTls,
    ];

    /// The cause as metrics and logs write it.
    pub fn name(self) -> &'static str {
        match self {
            Cause::NoCertificate => "no-certificate",
            Cause::UnknownCa => "unknown-ca",
            Cause::Expired => "expired",
            Cause::NotYetValid => "not-yet-valid",
            Cause::WrongName => "wrong-name",
            Cause::WrongRole => "wrong-role",
            Cause::BadCertificate => "bad-certificate",
            Cause::RefusedByPeer => "refused-by-peer",
            Cause::Timeout => "timeout",
            Cause::NotTls => "not-tls",
        }
    }
}

/// A handshake that failed for a reason of TLS, in words for operators.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Refusal {
    pub(crate) cause: Cause,
    pub(crate) text: String,
}

impl Refusal {
    /// What a failed handshake, or a first read after it, tells. Nothing if the network failed and not TLS.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        let error = error.get_ref()?.downcast_ref::<Error>()?;
        Some(Self { cause: cause(error), text: text(error) })
    }

    pub(crate) fn timeout() -> Self {
        Self { cause: Cause::Timeout, text: "the TLS handshake was not finished in time".to_owned() }
    }
}

fn cause(error: &Error) -> Cause {
    match error {
        Error::NoCertificatesPresented => Cause::NoCertificate,
        Error::InvalidCertificate(error) => cause_in_certificate(error),
        Error::AlertReceived(_) => Cause::RefusedByPeer,
        _ => Cause::NotTls,
    }
}

fn cause_in_certificate(error: &CertificateError) -> Cause {
    use CertificateError as E;
    match error {
        // Of an authority that has the name of one of ours, and another key: two runs of `certs dev`, for one.
        E::UnknownIssuer | E::BadSignature => Cause::UnknownCa,
        E::Expired | E::ExpiredContext { .. } => Cause::Expired,
        E::NotValidYet | E::NotValidYetContext { .. } => Cause::NotYetValid,
        E::NotValidForName | E::NotValidForNameContext { .. } => Cause::WrongName,
        E::Other(other) if other.source().is_some_and(<dyn std::error::Error>::is::<WrongRole>) => {
            Cause::WrongRole
        }
        _ => Cause::BadCertificate,
    }
}

fn text(error: &Error) -> String {
    match error {
        Error::NoCertificatesPresented => {
            "the peer shows no certificate; give it --tls-cert, --tls-key and --tls-ca".to_owned()
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the peer's certificate comes from an authority that is not in --tls-ca".to_owned()
        }
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            "the peer's certificate comes from an authority that has the name of one in --tls-ca, but another key"
                .to_owned()
        }
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            other.source().map_or_else(|| error.to_string(), ToString::to_string)
        }
        Error::InvalidCertificate(reason) => format!("the peer's certificate is refused: {reason}"),
        Error::AlertReceived(alert) => format!("the peer refuses this node ({alert:?}): {}", advice(*alert)),
        Error::InvalidMessage(_) => "the peer does not speak TLS; does one side have http:// where the other \
             has --tls-cert?"
            .to_owned(),
        other => format!("TLS failed: {other}"),
    }
}

/// What an alert of the peer means here.
fn advice(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CertificateRequired => {
            "it wants a certificate; give --tls-cert, --tls-key and --tls-ca"
        }
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "this node's certificate comes from an authority that is not in the peer's --tls-ca"
        }
        AlertDescription::CertificateExpired => {
            "this node's certificate is not valid now, by the peer's clock"
        }
        AlertDescription::BadCertificate => {
            "this node's certificate is broken, or for another name than was asked for"
        }
        AlertDescription::CertificateUnknown | AlertDescription::AccessDenied => {
            "this node's certificate lacks the role that the peer asks for"
        }
        AlertDescription::NoApplicationProtocol => "its port does not speak gRPC; is it the tree port?",
        _ => "its log says why",
    }
}

/// Refused peers, by cause.
#[derive(Debug, Default)]
pub struct Refusals {
    counts: [AtomicU64; Cause::ALL.len()],
    told: Mutex<HashMap<(IpAddr, Cause), Instant>>,
}

impl Refusals {
    /// Counts a refused peer.
    pub fn count(&self, cause: Cause) {
        self.counts[cause as usize].fetch_add(1, Relaxed);
    }

    /// Counts a refused child or client, and logs it unless the same was logged a short while ago.
    pub fn note(&self, peer: IpAddr, cause: Cause, reason: &str) {
        self.count(cause);
        if self.is_news(peer, cause, Instant::now()) {
            tracing::warn!(%peer, cause = cause.name(), reason, "peer refused; repeats are logged once a minute");
        }
    }

    /// How many were refused for each cause so far.
    pub fn counts(&self) -> [(Cause, u64); Cause::ALL.len()] {
        Cause::ALL.map(|cause| (cause, self.counts[cause as usize].load(Relaxed)))
    }

    fn is_news(&self, peer: IpAddr, cause: Cause, now: Instant) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = told.get(&(peer, cause)) {
            if now.duration_since(*last) < REPEAT {
                return false;
            }
        } else if told.len() >= REMEMBERED {
            told.retain(|_, last| now.duration_since(*last) < REPEAT);
            if told.len() >= REMEMBERED {
                return false;
            }
        }
        told.insert((peer, cause), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn causes_count_each_at_its_own_place() {
        let refusals = Refusals::default();
        for (times, cause) in Cause::ALL.into_iter().enumerate() {
            (0..times).for_each(|_| refusals.count(cause));
        }
        for (times, (cause, count)) in refusals.counts().into_iter().enumerate() {
            assert_eq!(count, times as u64, "{}", cause.name());
        }
    }

    #[test]
    fn one_peer_is_told_once_a_minute_for_each_cause() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        assert!(refusals.is_news(peer(1), Cause::Expired, start));
        assert!(!refusals.is_news(peer(1), Cause::Expired, start + REPEAT / 2));
        assert!(refusals.is_news(peer(1), Cause::UnknownCa, start));
        assert!(refusals.is_news(peer(2), Cause::Expired, start));
        assert!(refusals.is_news(peer(1), Cause::Expired, start + REPEAT));
    }

    #[test]
    fn a_flood_of_peers_takes_bounded_memory() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        for number in 0..10_000 {
            refusals.is_news(peer(number), Cause::NotTls, start);
        }
        assert_eq!(refusals.told.lock().unwrap().len(), REMEMBERED);
        assert!(refusals.is_news(peer(20_000), Cause::NotTls, start + REPEAT), "the flood is forgotten");
        assert_eq!(refusals.told.lock().unwrap().len(), 1);
    }
}
