//! The flags of `headworks trial`.

use clap::Args;

use crate::shadow_all::ClientArgs;

/// Show what a limit did in the last 24 hours, or would have done while in shadow
///
/// Tells the rates that were offered, what part was over the limit, when, and which values were hit hardest. So a new limit is
/// tried out: put it into the file with `mode: shadow`, wait for a day, look here, and enforce it when you like what you see. A
/// controller knows what it heard since it started.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  headworks trial checkout-per-caller --admin http://127.0.0.1:9120")]
pub(crate) struct TrialArgs {
    /// The limit's name
    pub(super) limit: String,
    /// Admin address of a controller; of several take the one that runs for longest
    #[arg(long, env = "HEADWORKS_STATUS_ADMIN", default_value = "http://127.0.0.1:9120", value_name = "URL")]
    pub(super) admin: String,
    #[command(flatten)]
    pub(super) client: ClientArgs,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
