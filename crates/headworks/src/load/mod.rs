//! `headworks load`: asks an agent for permission at a steady rate and tells what came of it.
//!
//! The ordinary mode is an open loop: requests are due at fixed times, whatever the answers take, and latency counts
//! from when a request was due. A slow server can't slow its own examination down.

mod args;
mod attribute;
mod client;
mod closed;
mod interrupt;
mod lanes;
mod open;
mod outcome;
mod progress;
mod sample;
mod schedule;
mod summary;
mod tally;
mod target;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use headworks_agent::tls::TlsError;
use tokio::time::Instant;

use client::Client;
use summary::Summary;

pub(crate) use args::LoadArgs;
pub(crate) use attribute::Attribute;
pub(crate) use sample::{Sample, sample};
pub(crate) use target::Target;

/// Flags that make no sense; the program ends with code 64.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// A target's host has no address.
    #[error("the host of --target {target} cannot be resolved: check its spelling")]
    Resolve {
        /// As given.
        target: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A load generator should not be pointed at others by accident.
    #[error("--target {target} is not on this machine: add --allow-remote if it is yours to load")]
    Remote {
        /// As given.
        target: String,
    },
    /// Whoever is asked over TLS must show a certificate that can be checked.
    #[error("an https:// target needs --tls-ca, the authorities that its certificate must come from")]
    NoTrust,
    /// The authorities cannot be used.
    #[error(transparent)]
    Trust(#[from] TlsError),
}

/// Loads the targets and prints a summary; code 1 if no request got an answer.
pub(crate) async fn run(args: LoadArgs) -> Result<ExitCode, LoadError> {
    let mut clients = Vec::with_capacity(args.targets.len());
    for target in &args.targets {
        let address = target.resolve(args.allow_remote).await?;
        let client = Client::new(target, address, &args.query());
        clients.push(Arc::new(match &target.certified {
            None => client,
            Some(name) => client.trusting(args.trust()?, name.clone()),
        }));
    }
    let start = Instant::now();
    let tally = match args.closed {
        Some(connections) => closed::run(&clients, connections, &args, start).await,
        None => open::run(clients, &args, start).await,
    };
    let summary = Summary::new(&args, &tally, start.elapsed());
    print(&summary, args.json);
    Ok(if tally.answers() > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A reader that has gone away wants no summary, and is no failure.
fn print(summary: &Summary, as_json: bool) {
    let text = if as_json { summary.to_json() } else { summary.to_string() };
    let _ = writeln!(io::stdout(), "{text}");
}

#[cfg(test)]
mod tests;
