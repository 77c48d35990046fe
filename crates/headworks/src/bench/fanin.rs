//! `headworks bench fanin`: what agents that report cost their aggregator.

use std::time::Duration;

use clap::Args;

use super::cost::{self, Bench, Beside, Subject};
use super::span;
use crate::failure::Failure;

/// Measure what agents that report each second cost their aggregator: processor time and memory.
///
/// Starts a controller and an aggregator as processes of this program on this machine, and another process full of
/// agents beside them: each with a TCP connection and a gRPC stream of its own, over which it reports once a second what
/// it counted in --buckets buckets, all of which changed, and hears plans. Agents share their buckets, which are asked for twice
/// what their limit allows; so every headroom moves, and is told to every agent.
///
/// When all buckets have their numbers, the processor time of the aggregator is taken over --duration, five seconds
/// later. CORES is processor time a second in user and kernel mode; OWNER is the part of the one thread that keeps the
/// sums and makes the plans. A REPORT and A BUCKET are the same for each report and each bucket update in it, plans included. A CHILD is what
/// is resident in memory at the end, divided by the agents. REPORTS TAKEN IN is told by the aggregator when the agents have fallen silent:
/// one that is missing was lost.
///
/// A bare echo stands beside it: a tonic server without any state, which is told the same messages and answers each with a
/// plan. It is the least that so many gRPC streams cost. Both take turns in each run.
///
/// All of it runs on this machine's processors, and wall time is not measured; but with too few of them reports come late, which a
/// line below the table says. Each agent takes an open file in two processes: give `ulimit -n` enough. Works on Linux, which tells what processes use
/// under /proc. Progress goes to stderr, the table to stdout; Ctrl-C ends early and still prints the runs that are over.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  headworks bench fanin
  headworks bench fanin --agents 1000 --buckets 1000 --beside nothing
  headworks bench fanin --agents 1000 --buckets 10 --resting 1000    # buckets at rest cost nothing
  headworks bench fanin --json | jq '.[] | {measured, cores: [.runs[].cores]}'")]
pub(crate) struct FaninArgs {
    /// Agents below the one aggregator
    #[arg(long, env = "HEADWORKS_BENCH_AGENTS", default_value = "10000", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=30_000))]
    agents: u32,

    /// Buckets of each agent that change in every second
    #[arg(long, env = "HEADWORKS_BENCH_BUCKETS", default_value = "100", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=50_000))]
    buckets: u32,

    /// Buckets of each agent besides, which it tells of once and which then rest
    #[arg(long, env = "HEADWORKS_BENCH_RESTING", default_value = "0", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=50_000))]
    resting: u32,

    /// Time over which processor time is taken, from 1s to 1h
    #[arg(long, env = "HEADWORKS_BENCH_DURATION", default_value = "10s", value_parser = span, value_name = "TIME")]
    duration: Duration,

    /// Runs of each
    #[arg(long, env = "HEADWORKS_BENCH_RUNS", default_value = "3", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// Worker threads of what is measured; the aggregator has one more, which owns its state
    #[arg(long, env = "HEADWORKS_BENCH_THREADS", default_value = "2", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,

    /// What to measure beside it
    #[arg(long, env = "HEADWORKS_BENCH_BESIDE", default_value = "echo", value_enum, value_name = "WHAT")]
    beside: Beside,

    /// Print the figures of every run as JSON
    #[arg(long, env = "HEADWORKS_BENCH_JSON")]
    json: bool,
}

/// Runs `bench fanin`.
pub(crate) async fn fanin(args: &FaninArgs) -> Result<(), Failure> {
    cost::run(&Bench {
        subject: Subject::Aggregator,
        children: args.agents,
        buckets: args.buckets,
        resting: args.resting,
        duration: args.duration,
        runs: args.runs,
        threads: args.threads,
        beside: args.beside,
        json: args.json,
    })
    .await
}
