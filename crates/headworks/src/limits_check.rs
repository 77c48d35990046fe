//! `headworks limits check`: what is wrong with limits files, and what could be better.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;
use crate::limits_file::read;

/// Check limits files: every fault with line and path; exit code 64 if there is one
///
/// Warns of limits that another `enforcement` would hold better: what is too little for a drop ratio to be right on average,
/// and what is so much that exact counting costs more than it gives. Warnings change no exit code.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  headworks limits check limits.yaml --agents 50
  headworks limits check limits.d/")]
pub(crate) struct CheckArgs {
    /// Files, or folders of .yaml files
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// How many agents the limits are meant for: the more there are, the more a small drop-ratio limit is off
    #[arg(long, env = "HEADWORKS_CHECK_AGENTS", default_value_t = 10, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    agents: u32,
}

/// Tells of every path, good or bad.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut bad = 0;
    for path in &args.paths {
        match read(path).and_then(|content| content.review(args.agents)) {
            Ok((limits, warnings)) => {
                warnings.iter().for_each(|warning| eprintln!("{warning}"));
                let (count, digest) = (count(limits.limits().len(), "limit"), limits.digest());
                println!("{}: {count}, digest {digest}", path.display());
            }
            Err(error) => {
                bad += 1;
                eprintln!("{error}");
            }
        }
    }
    let all = args.paths.len();
    if bad == 0 { Ok(()) } else { Err(Failure::Usage(format!("{bad} of {} at fault", count(all, "path")))) }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
