//! `memory`: what a great many live buckets take.

use std::fs;
use std::io::{self, Write};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use headworks_agent::Limiter;

use crate::limiter::{BY_KEY, KEYS, headroom, limiter};

/// Measure what a great many live buckets take in memory.
///
/// Every thread touches every bucket. Shown are the pages that the process has in use for them (less what it had before), and the
/// slowest single decision while buckets came, of all threads.
#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// Buckets
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    buckets: u32,
    /// Threads that touch them
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
}

/// Runs the command.
pub(crate) fn run(args: &MemoryArgs) -> io::Result<()> {
    let before = resident()?;
    let limiter = limiter(BY_KEY);
    let start = Barrier::new(args.threads.into());
    let first = touch_all(&limiter, args, &start);
    limiter.rehearse(headroom(), None, false);
    let second = touch_all(&limiter, args, &start);
    let taken = resident()?.saturating_sub(before);
    let mut out = io::stdout().lock();
    writeln!(out, "{} buckets touched by {} threads: {} MiB", args.buckets, args.threads, taken >> 20)?;
    writeln!(out, "{} bytes a bucket", taken / u64::from(args.buckets))?;
    writeln!(out, "slowest decision while they came: {:.2} ms", first.as_secs_f64() * 1e3)?;
    writeln!(out, "slowest once they were there: {:.2} ms", second.as_secs_f64() * 1e3)
}

/// The slowest decision of all threads.
fn touch_all(limiter: &Limiter, args: &MemoryArgs, start: &Barrier) -> Duration {
    let touch = || {
        let mut keyed = limiter.keyed(KEYS);
        start.wait();
        (0..args.buckets)
            .map(|number| {
                timed(|| {
                    let tenant = tenant(number);
                    keyed.check(["checkout", &tenant, "/v1/Pay"], None);
                })
            })
            .max()
            .unwrap_or_default()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..args.threads).map(|_| scope.spawn(touch)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it has told why")).max().unwrap_or_default()
    })
}

fn timed(decide: impl FnOnce()) -> Duration {
    let began = Instant::now();
    decide();
    began.elapsed()
}

fn tenant(number: u32) -> String {
    format!("tenant-{number:07}")
}

/// Bytes of the pages that this process has in use.
fn resident() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| io::Error::other("/proc/self/status tells no VmRSS"))
}
