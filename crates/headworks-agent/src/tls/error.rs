//! What can be wrong with files of credentials, and what to do about each.

use std::io;
use std::path::PathBuf;

/// Credentials that cannot be used. Each names its file and a way out.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("cannot read the {what} {}: {source}; check the path and who may read it", path.display())]
    Unreadable {
        /// certificate, key or authorities.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is far too large for what it should hold.
    #[error("the {what} {} is larger than 1 MiB; is it the right file?", path.display())]
    TooLarge {
        /// certificate, key or authorities.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A file holds nothing.
    #[error("the {what} {} is empty; write it again", path.display())]
    Empty {
        /// certificate, key or authorities.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A file holds no certificate.
    #[error("the {what} {} holds no certificate; it must be PEM, with BEGIN CERTIFICATE", path.display())]
    NoCertificate {
        /// certificate or authorities.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A certificate cannot be read.
    #[error("the {what} {} is broken: {reason}; write it again", path.display())]
    Broken {
        /// certificate, key or authorities.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A file holds no private key that can be used.
    #[error(
        "the key {} holds no private key; it must be PEM, with BEGIN PRIVATE KEY, and not encrypted",
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The key is of another certificate.
    #[error(
        "the key {} belongs to another certificate than {}; give the two that were made together",
        key.display(),
        cert.display()
    )]
    KeyMismatch {
        /// The key's file.
        key: PathBuf,
        /// The certificate's file.
        cert: PathBuf,
    },
    /// The certificate was good once.
    #[error("the certificate {} expired at {at}; have it renewed", path.display())]
    Expired {
        /// The file.
        path: PathBuf,
        /// When it ended.
        at: String,
    },
    /// The certificate is for later, or this machine's clock is behind.
    #[error(
        "the certificate {} is not yet valid, only from {from}; wait, or set this machine's clock",
        path.display()
    )]
    NotYetValid {
        /// The file.
        path: PathBuf,
        /// When it begins.
        from: String,
    },
}
