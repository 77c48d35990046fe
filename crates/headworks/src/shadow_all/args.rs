//! The flags of `headworks shadow-all`, and the token that clients of admin ports give.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::admin::Token;
use crate::failure::Failure;

/// What the switch shall be.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum State {
    /// Every limit counts what it would drop, nothing is dropped
    On,
    /// Every limit is in its own mode
    Off,
}

impl State {
    pub(super) fn is_on(self) -> bool {
        matches!(self, State::On)
    }
}

/// Turn every limit of the fleet to shadow at once, or back
///
/// While it is on, limits count what they would drop, and nothing is dropped: no bans, no budgets, nothing. It holds for
/// the whole fleet within a second, whichever controller it is thrown on, until it is thrown back.
#[derive(Debug, Args)]
#[command(after_help = "Without on or off it shows the present state.")]
pub(crate) struct ShadowAllArgs {
    pub(super) state: Option<State>,
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
    pub(super) token: TokenArgs,
}

/// The token that a client gives.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// File with the token that the node was given by --admin-token-file
    #[arg(long, env = "HEADWORKS_ADMIN_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl TokenArgs {
    /// The token, if a file is named.
    pub(crate) fn read(&self) -> Result<Option<Token>, Failure> {
        let token = self.token_file.as_deref().map(Token::read).transpose();
        token.map_err(|error| Failure::of(&error).into_usage())
    }
}
