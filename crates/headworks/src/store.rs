//! The flags of a store for exact limits, and the store that they describe.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use headworks_agent::{Store, StoreSettings, StoreTls};

use crate::duration;
use crate::failure::Failure;

/// Where exact limits are counted.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Count exact limits in this Redis or Valkey, for all agents together, and not in this process: redis://host:6379,
    /// rediss:// for TLS, redis+unix:///path, with user:password@ and /database as usual (in the variable, since others see flags).
    /// Several addresses are of one store: its replicas, or nodes of a cluster; they are tried in turn
    #[arg(
        long,
        help_heading = "Store of exact limits",
        env = "HEADWORKS_STORE",
        value_delimiter = ',',
        value_name = "URL,…",
        hide_env_values = true
    )]
    store: Vec<String>,
    /// How long the store may take for an answer; after that, and while it is away, limits answer by their
    /// on_store_failure
    #[arg(long, help_heading = "Store of exact limits", env = "HEADWORKS_STORE_DEADLINE", default_value = "20ms", value_parser = duration::parse, value_name = "TIME")]
    store_deadline: Duration,
    /// What the keys in the store begin with, in braces; fleets of their own want their own
    #[arg(long, help_heading = "Store of exact limits", env = "HEADWORKS_STORE_PREFIX", default_value = "headworks", value_parser = prefix, value_name = "NAME")]
    store_prefix: String,
    /// Authorities that the certificate of a rediss:// store must come from, in PEM [default: the system's]
    #[arg(
        long,
        help_heading = "Store of exact limits",
        env = "HEADWORKS_STORE_CA",
        value_name = "FILE",
        requires = "store"
    )]
    store_ca: Option<PathBuf>,
    /// Certificate to show to a rediss:// store, in PEM
    #[arg(
        long,
        help_heading = "Store of exact limits",
        env = "HEADWORKS_STORE_CERT",
        value_name = "FILE",
        requires = "store_key"
    )]
    store_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(
        long,
        help_heading = "Store of exact limits",
        env = "HEADWORKS_STORE_KEY",
        value_name = "FILE",
        requires = "store_cert"
    )]
    store_key: Option<PathBuf>,
}

impl StoreArgs {
    /// The store, if there is to be one.
    pub(crate) fn open(self) -> Result<Option<Store>, Failure> {
        if self.store.is_empty() {
            return Ok(None);
        }
        let own = self.store_cert.as_deref().zip(self.store_key.as_deref());
        let own = own.map(|(cert, key)| Ok::<_, Failure>((read(cert)?, read(key)?))).transpose()?;
        let ca = self.store_ca.as_deref().map(read).transpose()?;
        let tls = (ca.is_some() || own.is_some()).then_some(StoreTls { ca, own });
        let settings =
            StoreSettings { urls: self.store, prefix: self.store_prefix, deadline: self.store_deadline, tls };
        let store = Store::new(settings);
        store.map(Some).map_err(|error| Failure::Usage(format!("agent --store: {error}")))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", path.display())))
}

/// A brace would end what a cluster chooses the node by.
fn prefix(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
        return Err("write 1 to 64 letters, digits and -_.:/".to_owned());
    }
    Ok(text.to_owned())
}
