//! `stalls`: whether new limits and new headrooms hold decisions up.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use clap::Args;
use headworks_agent::{Agent, Limiter};
use headworks_core::limits::{LimitSet, parse};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limiter::{BY_KEY, KEYS, headroom};
use crate::statistics::{Summary, table};

/// Measure whether new limits and new headrooms hold decisions up.
///
/// Decisions are timed in batches of 64, over 10 000 buckets. Runs take turns: in every other one the limits are replaced a hundred
/// times a second, and the headrooms of all buckets written anew once a second. Shown are the medians of the runs and their
/// range.
#[derive(Debug, Args)]
pub(crate) struct StallsArgs {
    /// How long a run is
    #[arg(long, default_value_t = 4, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Runs of each kind
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
}

const BATCH: usize = 64;
const BUCKETS: usize = 10_000;
const LIMITS_EVERY: Duration = Duration::from_millis(10);
const HEADROOMS_EVERY: u32 = 100;

/// Quantiles of the time of a batch, in nanoseconds.
#[derive(Clone, Copy)]
struct Run {
    median: f64,
    p9999: f64,
}

/// Runs the command.
pub(crate) fn run(args: &StallsArgs) -> io::Result<()> {
    let (mut still, mut moving) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        still.push(one(args, false)?);
        moving.push(one(args, true)?);
    }
    let row = |name: &str, runs: &[Run]| {
        let of = |figure: fn(&Run) -> f64| Summary::of(&runs.iter().map(figure).collect::<Vec<_>>());
        let (median, tail) = (of(|run| run.median), of(|run| run.p9999));
        let range = format!("{:.0}–{:.0}", tail.least, tail.greatest);
        (
            [format!("  {name}"), format!("{:.0}", median.median), format!("{:.0}", tail.median), range],
            tail.median,
        )
    };
    let head =
        [format!("batches of {BATCH} decisions"), "p50 ns".into(), "p99.99 ns".into(), "min–max".into()];
    let ((still, without), (moving, with)) =
        (row("limits at rest", &still), row("limits and headrooms replaced", &moving));
    let mut out = io::stdout().lock();
    table(&mut out, &[head, still, moving])?;
    writeln!(out, "p99.99 with, over without: {:.2}", with / without)
}

/// One run; the agent's own thread puts limits in force, as it would those that a controller pushes.
fn one(args: &StallsArgs, moves: bool) -> io::Result<Run> {
    let sets =
        [BY_KEY.to_owned(), format!("{BY_KEY}, {{name: other, match: {{service: other}}, rate: 1/second}}")];
    let sets =
        sets.map(|limits| Arc::new(parse(&format!("limits: [{limits}]")).expect("the limits are sound")));
    let (replace, limits) = watch::channel((1, sets[0].clone()));
    let agent = Agent::builder("bench", "here").standalone(limits).build();
    let (limiter, shutdown) = (agent.limiter(), CancellationToken::new());
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.spawn(agent.run(shutdown.clone()));
    let over = AtomicBool::new(false);
    let measured = thread::scope(|scope| {
        scope.spawn(|| stir(&limiter, &replace, &sets, moves, &over));
        let measured = batches(&limiter, Duration::from_secs(args.seconds));
        over.store(true, Relaxed);
        measured
    });
    shutdown.cancel();
    Ok(measured)
}

/// Replaces limits and headrooms until it is over; in a run at rest it wakes as often and does nothing.
fn stir(
    limiter: &Limiter,
    replace: &watch::Sender<(u64, Arc<LimitSet>)>,
    sets: &[Arc<LimitSet>; 2],
    moves: bool,
    over: &AtomicBool,
) {
    for turn in 2_u32.. {
        sleep(LIMITS_EVERY);
        if over.load(Relaxed) {
            return;
        }
        if moves {
            let _ = replace.send((turn.into(), sets[turn as usize % 2].clone()));
            if turn.is_multiple_of(HEADROOMS_EVERY) {
                limiter.rehearse(headroom(), None, false);
            }
        }
    }
}

fn batches(limiter: &Limiter, time: Duration) -> Run {
    let tenants: Vec<String> = (0..BUCKETS).map(|number| format!("tenant-{number:07}")).collect();
    let mut keyed = limiter.keyed(KEYS);
    let mut took = Vec::with_capacity(4_000_000);
    let (end, mut tenants) = (Instant::now() + time, tenants.iter().cycle());
    loop {
        let began = Instant::now();
        for tenant in tenants.by_ref().take(BATCH) {
            keyed.check(["checkout", tenant, "/v1/Pay"], None);
        }
        let ended = Instant::now();
        took.push(ended - began);
        if ended > end {
            break;
        }
    }
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_nanos() as f64;
    Run { median: at(0.5), p9999: at(0.9999) }
}
