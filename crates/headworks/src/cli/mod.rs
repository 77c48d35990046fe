//! The command line: what users type, and what their shell gets back.

mod args;
mod duration;

use std::process::ExitCode;

use clap::Parser;

pub(crate) use args::{AgentArgs, AggregatorArgs, ControllerArgs, DevArgs, StatusArgs};
use args::{Cli, Command, LimitsCommand};

use crate::{limits_file, load, logging, role, status};

/// Wrong usage or configuration: what the user gave must change before another try can work.
pub(crate) const USAGE: u8 = 64;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The user has to change a flag or a file.
    #[error("{0}")]
    Usage(String),
    /// A port, a file or a peer did not do its part.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// A failure with all its causes in one line.
    pub(crate) fn of(error: &dyn std::error::Error) -> Self {
        let causes = std::iter::successors(error.source(), |cause| cause.source());
        let chain = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
        Failure::Failed(chain)
    }

    /// The same, for a flag that has to change.
    fn into_usage(self) -> Self {
        match self {
            Failure::Usage(text) | Failure::Failed(text) => Failure::Usage(text),
        }
    }

    fn code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(USAGE),
            Failure::Failed(_) => ExitCode::FAILURE,
        }
    }
}

impl From<crate::serve::BindError> for Failure {
    fn from(error: crate::serve::BindError) -> Self {
        Failure::of(&error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::of(&error)
    }
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let done = logging::start(&cli.log)
        .map_err(Failure::Usage)
        .and_then(|()| Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?))
        .and_then(|runtime| {
            let done = runtime.block_on(run(cli.command));
            // Whatever still runs has had its grace period.
            runtime.shutdown_background();
            done
        });
    done.unwrap_or_else(|failure| {
        eprintln!("headworks: {failure}");
        failure.code()
    })
}

async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Dev(args) => role::dev::run(args).await?,
        Command::Agent(args) => role::agent::run(args).await?,
        Command::Aggregator(args) => role::aggregator::run(args).await?,
        Command::Controller(args) => role::controller::run(args).await?,
        Command::Limits(LimitsCommand::Check { paths }) => limits_file::check(&paths)?,
        Command::Load(args) => {
            return load::run(args).await.map_err(|error| Failure::of(&error).into_usage());
        }
        Command::Status(args) => status::run(&args).await?,
    }
    Ok(ExitCode::SUCCESS)
}
