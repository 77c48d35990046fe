//! The flags of the admin port that all roles have.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::token::TokenFile;
use crate::failure::Failure;

/// Who may use the admin port, and where metrics are served besides.
#[derive(Debug, Default, Args)]
pub(crate) struct AdminArgs {
    /// File with the token that --admin asks for before anything is changed; beyond loopback also before /status
    #[arg(long, env = "HEADWORKS_ADMIN_TOKEN_FILE", value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
    /// Serve /metrics, /healthz and /readyz here too, and nothing else [default: on --admin alone]
    #[arg(long, env = "HEADWORKS_METRICS", value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

impl AdminArgs {
    /// The settings of an admin port at this address, with the token that the file holds now.
    pub(crate) fn at(self, address: SocketAddr) -> Result<AdminSettings, Failure> {
        let token = self.admin_token_file.map(TokenFile::open).transpose();
        let token = token.map_err(|error| Failure::of(&error).into_usage())?;
        Ok(AdminSettings { address, token, metrics: self.metrics })
    }
}

/// What an admin port is started with.
#[derive(Debug)]
pub(crate) struct AdminSettings {
    pub(super) address: SocketAddr,
    pub(super) token: Option<TokenFile>,
    pub(super) metrics: Option<SocketAddr>,
}

impl AdminSettings {
    /// Where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether something can be changed through it.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// An admin port that nobody can change anything through.
    pub(crate) fn read_only(address: SocketAddr) -> Self {
        Self { address, token: None, metrics: None }
    }
}
