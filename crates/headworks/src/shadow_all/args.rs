//! The flags of `headworks shadow-all`, and those that all clients of admin ports have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use headworks_agent::tls::Trust;

use crate::admin::{Client, Token};
use crate::failure::Failure;

/// What the switch shall be.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Wanted {
    /// Every limit counts what it would drop, nothing is dropped
    On,
    /// Every limit is in its own mode
    Off,
}

impl Wanted {
    pub(super) fn is_on(self) -> bool {
        matches!(self, Wanted::On)
    }
}

/// Turn every limit of the fleet to shadow at once, or back
///
/// While it is on, limits count what they would drop, and nothing is dropped: no bans, no budgets, nothing. It holds for
/// the whole fleet within a second, whichever controller it is thrown on, until it is thrown back.
#[derive(Debug, Args)]
#[command(after_help = "Without on or off it shows the present state.")]
pub(crate) struct ShadowAllArgs {
    pub(super) state: Option<Wanted>,
    /// Admin addresses of the controllers; one is enough, it tells the others
    #[arg(
        long,
        env = "HEADWORKS_CONTROLLERS_ADMIN",
        default_value = "http://127.0.0.1:9120",
        value_delimiter = ',',
        value_name = "URL,…"
    )]
    pub(super) admin: Vec<String>,
    #[command(flatten)]
    pub(super) client: ClientArgs,
}

/// What a client of an admin port shows, and whom it trusts.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// File with the token that the node was given by --admin-token-file
    #[arg(long, env = "HEADWORKS_ADMIN_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Authorities that the certificate of an https:// address must come from, in PEM
    #[arg(long, env = "HEADWORKS_TLS_CA", value_name = "FILE")]
    tls_ca: Option<PathBuf>,
}

impl ClientArgs {
    /// The client, with what is in the files that are named.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let token = self.token_file.as_deref().map(Token::read).transpose();
        let token = token.map_err(|error| Failure::of(&error).into_usage())?;
        let trust = self.tls_ca.as_deref().map(Trust::load).transpose();
        let trust = trust.map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(Client::new(token, trust))
    }
}
