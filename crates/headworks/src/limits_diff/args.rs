//! The flags of `headworks limits diff`.

use std::path::PathBuf;

use clap::Args;

use crate::shadow_all::ClientArgs;

/// Show what limits files would change on a running controller, and drop of the present demand
///
/// Lists limits that would be added, removed or changed, each changed field with its old and new value, and what every one of
/// them would drop at present: NEWLY is the part of what passes now. Each limit is judged by itself, by bucket and with its
/// overrides; savings of budgets are left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 nothing would change, 1 something would, 2 the controller did not answer, 64 faulty limits or flags.

Examples:
  headworks limits diff limits.yaml
  headworks limits diff limits.d/ --admin https://c1:9120 --token-file token --tls-ca ca.crt --json")]
pub(crate) struct DiffArgs {
    /// Files, or folders of .yaml files; together they are what would be in force
    #[arg(required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// Admin address of the controller; of several ask the one that hears most of the fleet
    #[arg(long, env = "HEADWORKS_STATUS_ADMIN", default_value = "http://127.0.0.1:9120", value_name = "URL")]
    pub(super) admin: String,
    #[command(flatten)]
    pub(super) client: ClientArgs,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
