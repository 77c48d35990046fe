//! `headworks bench tick`: what zones that report cost their controller.

use std::time::Duration;

use clap::Args;

use super::cost::{self, Bench, Beside, Subject};
use super::span;
use crate::failure::Failure;

/// Measure what zones that report each second cost their controller: processor time and memory.
///
/// Starts a controller as a process of this program on this machine, and another process beside it with an aggregator for each
/// of --zones, as far as the controller can tell: each has a stream of its own, over which it reports once a second what its zone counted
/// in --buckets buckets, all of which changed, and hears plans. Zones share their buckets, which are asked for twice what
/// their limit allows; so every headroom moves, and is told to every zone.
///
/// When all buckets have their numbers, the processor time of the controller is taken over --duration, five seconds
/// later. CORES is processor time a second in user and kernel mode; OWNER is the part of the one thread that takes reports in,
/// computes all headrooms once a second, and makes the plans: no tick takes more of a second than that. A REPORT and A BUCKET are
/// the whole for each report and each bucket update in it. REPORTS TAKEN IN is told by the controller when the zones have
/// fallen silent: one that is missing was lost. Buckets that a zone was told no headroom for are named below the table.
///
/// A bare echo stands beside it: a tonic server without any state, which is told the same messages and answers each with a
/// plan of as many headrooms. Both take turns in each run.
///
/// Works on Linux, which tells what processes use under /proc. Progress goes to stderr, the table to stdout; Ctrl-C ends
/// early and still prints the runs that are over.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  headworks bench tick
  headworks bench tick --zones 3 --buckets 10000 --runs 1
  headworks bench tick --json | jq '.[] | {measured, owner: [.runs[].owner_cores]}'")]
pub(crate) struct TickArgs {
    /// Zones below the one controller
    #[arg(long, env = "HEADWORKS_BENCH_ZONES", default_value = "20", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    zones: u32,

    /// Buckets of each zone that change in every second
    #[arg(long, env = "HEADWORKS_BENCH_BUCKETS", default_value = "100000", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    buckets: u32,

    /// Time over which processor time is taken, from 1s to 1h
    #[arg(long, env = "HEADWORKS_BENCH_DURATION", default_value = "10s", value_parser = span, value_name = "TIME")]
    duration: Duration,

    /// Runs of each
    #[arg(long, env = "HEADWORKS_BENCH_RUNS", default_value = "3", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// Worker threads of what is measured; the controller has one more, which owns its state
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

/// Runs `bench tick`.
pub(crate) async fn tick(args: &TickArgs) -> Result<(), Failure> {
    cost::run(&Bench {
        subject: Subject::Controller,
        children: args.zones,
        buckets: args.buckets,
        resting: 0,
        duration: args.duration,
        runs: args.runs,
        threads: args.threads,
        beside: args.beside,
        json: args.json,
    })
    .await
}
