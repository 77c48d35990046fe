//! `headworks completions` and `headworks man`: made of the command line itself.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;

/// Print completions for a shell
///
/// For bash: `headworks completions bash > /usr/share/bash-completion/completions/headworks`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Print the manual page, or write one for each command
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder to write headworks.1 and a page for each command to; it must exist
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// `headworks completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "headworks", &mut script);
    Ok(io::stdout().write_all(&script)?)
}

/// `headworks man`.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    match &args.out {
        None => Ok(clap_mangen::Man::new(Cli::command()).render(&mut io::stdout())?),
        Some(folder) => clap_mangen::generate_to(Cli::command(), folder)
            .map_err(|error| Failure::Failed(format!("cannot write to {}: {error}", folder.display()))),
    }
}
