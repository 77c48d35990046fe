//! Logs: one line an event on standard error, without colour unless a person looks.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging at `level` (`info`, or a filter such as `headworks=debug,warn`).
pub(crate) fn start(level: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(level)
        .map_err(|error| format!("--log {level:?}: {error}; give error, warn, info, debug or trace"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    Ok(())
}
