//! `headworks limits import`: limits from the files of other limiters.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use headworks_core::limits::import::{Holding, Imported, envoy_ratelimit, limitador};
use headworks_core::limits::print;

use crate::failure::Failure;
use crate::limits_file::{lines_of, read_all};

/// Print a limits file that means what the files of another limiter mean
///
/// The limits go to standard output; what could not be carried over, or not quite, is listed on standard error with its file
/// and line. A file that its own limiter would refuse is refused, with every fault; exit code 64.
///
/// Limits come as exact counts, as they were, or as drop ratios where these are right enough for so many agents: see
/// --enforcement and --agents. Domains and namespaces become the attribute `domain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  headworks limits import --from envoy-ratelimit config/ > limits.yaml
  headworks limits import --from limitador limits.yaml --enforcement exact
  headworks limits explain --limits limits.yaml domain=shop service=checkout")]
pub(crate) struct ImportArgs {
    /// Whose files they are
    #[arg(long, value_enum)]
    from: From,
    /// Files, or folders of .yaml files
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Several files may be of one domain, as envoyproxy/ratelimit takes them with MERGE_DOMAIN_CONFIG
    #[arg(long)]
    merge_domains: bool,
    /// How the limits are to be held
    #[arg(long, value_enum, default_value_t = Enforcement::Auto)]
    enforcement: Enforcement,
    /// How many agents will hold them: the more there are, the more requests a limit needs for a drop ratio to be right
    #[arg(long, env = "HEADWORKS_CHECK_AGENTS", default_value_t = 10, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    agents: u32,
    /// Print nothing, and end with exit code 64, unless everything could be carried over
    #[arg(long)]
    strict: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum From {
    /// envoyproxy/ratelimit: a tree of descriptors for each domain
    EnvoyRatelimit,
    /// limitador: a list of limits with conditions and variables
    Limitador,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Enforcement {
    /// A drop ratio where it is right to a tenth or so, else an exact count
    Auto,
    /// Exact counts
    Exact,
    /// Drop ratios, but for limits by the month and year
    DropRatio,
}

/// Reads, prints, and lists what is missing.
pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    let content = read_all(&args.paths)?;
    let files: Vec<_> = content.files().collect();
    let imported = import(args, &files.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>());
    let Imported { limits, notes } = imported.map_err(|(place, faults)| {
        Failure::Usage(format!("faulty file:\n{}", lines_of(files[place].0, &faults, "").join("\n")))
    })?;
    for (place, note) in &notes {
        eprintln!("{}:{note}", files[*place].0.display());
    }
    if args.strict && !notes.is_empty() {
        return Err(Failure::Usage(
            "not everything could be carried over: mend that, or leave out --strict".to_owned(),
        ));
    }
    print!("{}", print(&limits));
    Ok(())
}

fn import(args: &ImportArgs, files: &[&[u8]]) -> Result<Imported, headworks_core::limits::import::Refused> {
    let exact = match args.enforcement {
        Enforcement::Auto => None,
        Enforcement::Exact => Some(true),
        Enforcement::DropRatio => Some(false),
    };
    let holding = Holding { exact, agents: args.agents };
    match args.from {
        From::EnvoyRatelimit => envoy_ratelimit(files, args.merge_domains, holding),
        From::Limitador => limitador(files, holding),
    }
}
