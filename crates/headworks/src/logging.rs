//! Logs: one line an event on standard error, without colour unless a person looks.
//!
//! Names, paths and errors come from outside. Whatever they hold, an event stays one line, no byte of it moves the cursor
//! of a terminal, and no value fills a disk.

use std::fmt::{self, Debug};
use std::io::IsTerminal;

use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::legible;

/// Most bytes of a value that are shown.
const LONGEST_VALUE: usize = 256;
/// Most bytes of what an event says of itself: the faults of a limits file are told here.
const LONGEST_MESSAGE: usize = 1024;

/// Starts logging at `level` (`info`, or a filter such as `headworks=debug,warn`).
pub(crate) fn start(level: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(level)
        .map_err(|error| format!("--log {level:?}: {error}; give error, warn, info, debug or trace"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .fmt_fields(debug_fn(write_field).delimited(" "))
        .init();
    Ok(())
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    match field.name() {
        "message" => writer.write_str(&legible::cut(&format!("{value:?}"), LONGEST_MESSAGE)),
        name => write!(writer, "{name}={}", legible::cut(&format!("{value:?}"), LONGEST_VALUE)),
    }
}
