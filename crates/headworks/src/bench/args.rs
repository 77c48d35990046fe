//! The flags of `headworks bench surge`.

use std::time::Duration;

use clap::Args;

use crate::duration;
use crate::failure::Failure;

/// Most requests of one run: they are drawn before it and kept after it, in memory.
const MOST_REQUESTS: f64 = 5e6;

/// Measure how a fleet takes a step in demand: how soon it holds its limit, and what gets through until then.
///
/// Starts a controller, an aggregator in each of two zones, and agents, all as processes of this program on this machine,
/// held to one limit. Asks the agents in turn over their Unix sockets, at random times, as those of many independent
/// users are, first below the limit and then, in one step, far above it. Each run is done twice, each time with a fresh fleet: as limits files
/// have it, and with neither early reports nor the surge guard, so that what they do can be seen.
///
/// SETTLES is the time from the step until every sum of what was admitted in 300 ms is within 8 % of the limit, up to
/// the end of the surge. A sum reaches back, so a burst counts for 0.3 s after it.
///
/// EXCESS is what was admitted above the limit until then, in seconds' worth of the limit.
///
/// PEAK is the highest sum of 100 ms, in multiples of the limit.
///
/// OFFERED is what the agents were asked per second of the surge, and what was wanted; where the generator could not
/// keep up, a line below the table says so.
///
/// All of it runs on this machine's processors, which can be too few for a high --limit; and with a limit below about
/// 1000, chance alone can move a sum of 300 ms by more than 8 %. Progress goes to stderr, the table to stdout; Ctrl-C ends
/// early and still prints the runs that are over.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  headworks bench surge
  headworks bench surge --limit 2000 --agents 4 --runs 10
  headworks bench surge --runs 3 --json | jq '.[] | {configuration, settle: [.runs[].settle_s]}'")]
pub(crate) struct SurgeArgs {
    /// The limit of the whole fleet, in requests a second
    #[arg(long, env = "HEADWORKS_BENCH_LIMIT", default_value = "4000", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub(crate) limit: u32,

    /// Demand before the step, in multiples of the limit, up to 1
    #[arg(long, env = "HEADWORKS_BENCH_BEFORE", default_value = "0.9", value_parser = before, value_name = "FACTOR")]
    pub(crate) before: f64,

    /// Demand after the step, in multiples of the limit, from 1 to 100
    #[arg(long, env = "HEADWORKS_BENCH_AFTER", default_value = "4", value_parser = after, value_name = "FACTOR")]
    pub(crate) after: f64,

    /// Time before the step; a controller learns in its first 5 s what is in force, so give it more than that
    #[arg(long, env = "HEADWORKS_BENCH_WARM_UP", default_value = "8s", value_parser = phase, value_name = "TIME")]
    pub(crate) warm_up: Duration,

    /// Time after the step
    #[arg(long, env = "HEADWORKS_BENCH_SURGE", default_value = "3s", value_parser = phase, value_name = "TIME")]
    pub(crate) surge: Duration,

    /// Runs of each configuration
    #[arg(long, env = "HEADWORKS_BENCH_RUNS", default_value = "5", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,

    /// Agents, spread over two zones
    #[arg(long, env = "HEADWORKS_BENCH_AGENTS", default_value = "8", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) agents: u32,

    /// Print the figures of every run as JSON
    #[arg(long, env = "HEADWORKS_BENCH_JSON")]
    pub(crate) json: bool,
}

impl SurgeArgs {
    /// Requests a second that are wanted before the step and after it.
    pub(super) fn wanted(&self) -> (f64, f64) {
        let limit = f64::from(self.limit);
        (limit * self.before, limit * self.after)
    }

    /// What no flag alone can tell.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let (before, after) = self.wanted();
        let requests = before * self.warm_up.as_secs_f64() + after * self.surge.as_secs_f64();
        if requests <= MOST_REQUESTS {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "a run of {requests:.0} requests is too long (at most {MOST_REQUESTS:.0}): \
             give a lower --limit or --after, or a shorter --surge or --warm-up"
        )))
    }
}

fn before(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.01..=1.0).contains(factor));
    factor.ok_or_else(|| "write a number from 0.01 to 1, such as 0.9".to_owned())
}

fn after(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (1.0..=100.0).contains(factor));
    factor.ok_or_else(|| "write a number from 1 to 100, such as 4".to_owned())
}

/// Shorter, there would be too few sums of 300 ms to speak of.
fn phase(text: &str) -> Result<Duration, String> {
    let phase = duration::parse(text)?;
    let is_sound = (Duration::from_secs(1)..=Duration::from_secs(600)).contains(&phase);
    is_sound.then_some(phase).ok_or_else(|| "write a time from 1s to 10m, such as 3s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        surge: SurgeArgs,
    }

    fn parse(flags: &str) -> Result<SurgeArgs, clap::Error> {
        Program::try_parse_from(format!("surge {flags}").split_whitespace()).map(|program| program.surge)
    }

    #[test]
    fn has_the_defaults_of_the_manual() {
        let args = parse("").unwrap();
        assert_eq!((args.limit, args.runs, args.agents, args.json), (4000, 5, 8, false));
        assert_eq!((args.warm_up, args.surge), (Duration::from_secs(8), Duration::from_secs(3)));
        assert_eq!(args.wanted(), (3600.0, 16_000.0));
        assert!(args.check().is_ok());
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        for flags in [
            "--limit 0",
            "--before 1.1",
            "--before 0",
            "--after 0.5",
            "--after NaN",
            "--surge 300ms",
            "--warm-up 1h",
            "--runs 0",
            "--agents 0",
        ] {
            assert!(parse(flags).is_err(), "{flags}");
        }
    }

    #[test]
    fn refuses_runs_that_would_fill_the_memory() {
        let error = parse("--limit 100000 --after 100 --surge 10s").unwrap().check().unwrap_err();
        assert!(error.to_string().contains("--surge"), "{error}");
    }
}
