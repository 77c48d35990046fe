//! The flags of `headworks top`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::duration;
use crate::shadow_all::ClientArgs;

/// Watch a node in the terminal: its limits, sorted and filtered, anew each second
#[derive(Debug, Args)]
#[command(after_help = "\
Keys:
  q            quit
  up, down     select a limit; its top values are shown below (also j and k, PgUp, PgDn, Home, End)
  left, right  sort by the column before, or the next one; r turns the order around
  /            filter by a part of the name; Enter keeps it, Esc forgets it")]
pub(crate) struct TopArgs {
    /// Admin address of the node to watch; https:// where it has --admin-tls
    #[arg(
        long,
        visible_alias = "url",
        env = "HEADWORKS_STATUS_ADMIN",
        default_value = "http://127.0.0.1:9120",
        value_name = "URL"
    )]
    pub(super) admin: String,
    #[command(flatten)]
    pub(super) client: ClientArgs,
    /// Time from one look to the next
    #[arg(long, default_value = "1s", value_parser = every, value_name = "TIME")]
    pub(super) every: Duration,
    /// What the limits are sorted by
    #[arg(long, default_value = "dropped", value_name = "COLUMN")]
    pub(super) sort: Column,
    /// Show only limits that have this in their name
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(super) filter: String,
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Column {
    /// What is over its limit comes first
    State,
    Name,
    Offered,
    Admitted,
    /// What is dropped, or would be in shadow
    Dropped,
    Ratio,
    Buckets,
}

/// Below a fifth of a second a node would do little but answer.
fn every(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    let is_sound = time >= Duration::from_millis(200);
    is_sound.then_some(time).ok_or_else(|| "write a time from 200ms, such as 1s".to_owned())
}
