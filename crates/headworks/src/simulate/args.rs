//! The flags of `headworks simulate`.

use std::path::PathBuf;

use clap::Args;

/// Run scenarios on a simulated fleet, and draw what happened
///
/// A scenario is a text: a fleet, its limits, what is offered, what happens, what is measured and what it has to be.
/// The simulator runs the program's own agents, aggregators and controllers; only time, chance and the network are
/// simulated, and all chance comes from a seed, so that a scenario gives the same figures every time.
///
/// The exit code is 0 if every figure is as the scenario expects, 1 if one is not, and 64 if a scenario makes no sense.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// Scenarios: files, or names of those that come with the program; none lists the latter
    #[arg(value_name = "SCENARIO")]
    pub(super) scenarios: Vec<String>,
    /// Also draw the chart into this file, as SVG; takes one scenario, with a `chart` line
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Do not draw charts into the terminal
    #[arg(long)]
    pub(super) no_chart: bool,
    /// Print the scripts instead of running them, as a start for your own
    #[arg(long)]
    pub(super) show: bool,
    /// Print what `random faults` does by the seed, instead of running it: the lines do the same in its place, and can be
    /// left out one by one until what is wrong is plain to see
    #[arg(long, conflicts_with = "show")]
    pub(super) show_faults: bool,
    /// Take this seed instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Explain the language of scripts
    #[arg(long)]
    pub(super) language: bool,
}

const EXAMPLES: &str = "\
Examples:
  headworks simulate                                  lists the scenarios
  headworks simulate surge-200-hosts --svg surge.svg  a step to 15 times the limit
  headworks simulate --show surge-zipf > mine.sim     a script to change
  headworks simulate mine.sim
  headworks simulate chaos-short --seed 7 --show-faults";
