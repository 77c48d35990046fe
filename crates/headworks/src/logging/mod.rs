//! Logs: one line an event on standard error, as text or as JSON.
//!
//! Names, paths and errors come from outside. Whatever they hold, an event stays one line, no byte of it moves the cursor
//! of a terminal, no value fills a disk, and no event that comes again and again does so either.

mod fields;
mod lines;
mod repeats;

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use lines::Lines;

/// What is logged, and how.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// What to log: error, warn, info, debug, trace, or a filter such as headworks=debug,warn
    #[arg(long = "log", global = true, env = "HEADWORKS_LOG", default_value = "info", value_name = "LEVEL")]
    pub(crate) filter: String,
    /// How to write logs: lines of text, or of JSON, one object an event
    #[arg(
        long = "log-format",
        global = true,
        env = "HEADWORKS_LOG_FORMAT",
        default_value = "text",
        value_name = "FORMAT"
    )]
    pub(crate) format: LogFormat,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Says why the program failed; whoever reads JSON from it gets JSON. It goes past the filter, which may be what is wrong, and
/// may let nothing pass.
pub(crate) fn tell_failure(failure: &str, format: LogFormat) {
    match format {
        LogFormat::Text => eprintln!("headworks: {failure}"),
        LogFormat::Json => failure.lines().for_each(|line| eprintln!("{}", lines::json_error(line))),
    }
}

/// Starts logging what passes `filter` (`info`, or a filter such as `headworks=debug,warn`).
pub(crate) fn start(filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("--log {filter:?}: {error}; give error, warn, info, debug or trace"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(format == LogFormat::Text && std::io::stderr().is_terminal())
        .event_format(Lines::new(format))
        .init();
    Ok(())
}
