//! The flags of `headworks bench idle`.

use std::time::Duration;

use clap::Args;

use crate::bench::span;

/// Measure what a fleet at rest costs its aggregator and its controller.
///
/// Starts a controller and an aggregator as processes of this program on this machine, and the agents as tasks inside
/// the bench itself, each with a stream of its own to the aggregator. They have a limit for all callers and a limit for
/// each caller; each agent is asked once by each of four callers, and from then on by nobody. What goes on is what
/// goes on in every fleet: each second a report from each agent, and a plan to each.
///
/// When all agents are attached and have a fresh plan, the fleet rests for twelve seconds (after ten without requests an
/// agent reports every other second); then the processor time of the two processes is taken over --duration. So 5 % is a twentieth of one core. MEMORY is what is resident at the
/// end.
///
/// Each agent takes an open file of the bench and one of the aggregator. If the shell allows too few, the command says
/// how many it needs: give `ulimit -n` that number first. Agents take turns on this machine's processors with what is
/// measured; that does not count, but with far too many of them, reports come late, and the command fails rather than
/// tell too little.
///
/// Works on Linux, which tells what processes use under /proc. Progress goes to stderr, the figures to stdout; Ctrl-C
/// ends it, and the fleet.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  headworks bench idle
  headworks bench idle --agents 5000 --duration 1m
  headworks bench idle --json | jq .aggregator.cpu_percent")]
pub(crate) struct IdleArgs {
    /// Agents below the one aggregator
    #[arg(long, env = "HEADWORKS_BENCH_AGENTS", default_value = "1000", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) agents: u32,

    /// Time over which processor time is taken, from 1s to 1h
    #[arg(long, env = "HEADWORKS_BENCH_DURATION", default_value = "20s", value_parser = span, value_name = "TIME")]
    pub(crate) duration: Duration,

    /// Print the figures as JSON
    #[arg(long, env = "HEADWORKS_BENCH_JSON")]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        idle: IdleArgs,
    }

    fn parse(flags: &str) -> Result<IdleArgs, clap::Error> {
        Program::try_parse_from(format!("idle {flags}").split_whitespace()).map(|program| program.idle)
    }

    #[test]
    fn has_the_defaults_of_the_manual() {
        let args = parse("").unwrap();
        assert_eq!((args.agents, args.duration, args.json), (1000, Duration::from_secs(20), false));
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        for flags in ["--agents 0", "--agents 20001", "--duration 500ms", "--duration 2h", "--duration 20"] {
            assert!(parse(flags).is_err(), "{flags}");
        }
    }
}
