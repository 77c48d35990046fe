//! The `headworks` program.

mod admin;
mod cli;
mod front;
mod limits_file;
mod load;
mod logging;
mod metrics;
mod role;
mod serve;
mod shutdown;
mod status;
mod tree;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
