//! TLS between tiers: who a node is, whom it lets in, and how both change without a restart.
//!
//! [`Tls`] holds a certificate chain, its key and the authorities that peers must come from. It works both ways: a
//! node shows the same certificate to its parent and to its children. The roles of a peer are in its certificate, as
//! URIs of the form `spiffe://TRUST-DOMAIN/headworks/ROLE[/NAME]`.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use headworks_agent::Agent;
//! use headworks_agent::tls::{Tls, TlsFiles};
//!
//! let tls = Tls::load(TlsFiles { cert: "tls.crt".into(), key: "tls.key".into(), ca: "ca.crt".into() })?;
//! let agent = Agent::builder("checkout-7", "zone-a").aggregators(["https://aggregator:7100"]).tls(tls).build();
//! # Ok(())
//! # }
//! ```

mod accept;
mod certificate;
mod credentials;
mod error;
mod files;
mod identity;
mod refusal;
mod trust;
mod verify;
mod watched;

pub use accept::HANDSHAKE;
pub use error::TlsError;
pub use files::TlsFiles;
pub use identity::Identities;
pub use refusal::{Cause, Refusals};
pub use trust::Trust;
pub use watched::{Tls, TlsStatus};

pub(crate) use refusal::Refusal;

#[cfg(test)]
mod tests;
