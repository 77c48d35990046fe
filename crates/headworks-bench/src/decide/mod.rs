//! `decide`: what one decision in memory takes.

mod floor;
mod governor;
mod headworks;
mod others;
mod workload;

use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use cpu_time::ThreadTime;
use serde::Serialize;

use crate::statistics::{Summary, table};
use workload::{Order, Quota, Requests, Workload};

/// Measure what one decision in memory takes.
///
/// Requests name a service, a tenant and a route, and all who tell them apart do so by these three values. Headworks decides by drop
/// ratio: prepared for one such request; keyed, for requests whose keys are known beforehand; or for any that comes (check); and
/// exactly. Competitors take turns of
/// some milliseconds; shown are the median and the range of the processor time that a decision took, and the median, less that of
/// an empty loop, as a multiple of governor's.
#[derive(Debug, Args)]
pub(crate) struct DecideArgs {
    /// Print an array of {name, threads, keys, ns} in place of tables
    #[arg(long)]
    json: bool,
    /// How long to measure, in all
    #[arg(long, default_value_t = 30, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Measure only competitors whose name contains this, such as exact
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
}

/// A rate limiter that is measured.
trait Competitor: Sync {
    /// Decides these requests, one after the other; tells how many it admitted. The loop is here, so that what
    /// is measured is a call that the compiler sees.
    fn decide(&self, requests: &Requests<'_>) -> usize;

    /// The part that it should admit.
    fn share(&self) -> f64 {
        1.0
    }
}

/// A competitor, ready to run.
struct Entrant {
    name: &'static str,
    competitor: Box<dyn Competitor>,
}

impl Entrant {
    fn new(name: &'static str, competitor: impl Competitor + 'static) -> Self {
        Self { name, competitor: Box::new(competitor) }
    }
}

/// What others are compared with.
const BASE: &str = governor::KEYED;

/// Turns that each competitor has at least.
const LEAST_TURNS: usize = 5;

/// A figure as `--json` prints it.
#[derive(Serialize)]
struct Figure {
    name: String,
    threads: usize,
    keys: usize,
    ns: f64,
}

/// What one competitor took in each of its turns.
struct Row {
    name: &'static str,
    summary: Summary,
}

/// Runs the command.
pub(crate) fn run(args: &DecideArgs) -> io::Result<()> {
    let workloads = Workload::all();
    let share = Duration::from_secs(args.seconds).div_f64(workloads.len() as f64);
    let mut figures = Vec::new();
    let mut out = io::stdout().lock();
    for workload in &workloads {
        let rows = measure(workload, share, &args.only);
        if args.json {
            figures.extend(rows.iter().map(|row| figure(workload, row)));
        } else {
            show(&mut out, workload, &rows)?;
        }
    }
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&figures)?)?;
    }
    Ok(())
}

fn entrants(workload: &Workload, only: &str) -> Vec<Entrant> {
    let (quota, keys) = (workload.quota, workload.keys.len());
    let (one, every) = (&workload.keys[0], workload.every_key());
    let mut entrants = vec![Entrant::new(floor::EMPTY, floor::Empty(quota))];
    if quota == Quota::Ample {
        entrants.push(Entrant::new(headworks::KEYED, headworks::Keyed::new(&every, keys == 1)));
        entrants.push(Entrant::new(headworks::CHECK, headworks::Check::new(&every, keys == 1)));
        entrants.push(Entrant::new(others::THROTTLECRAB, others::Throttlecrab::new(keys)));
    }
    if quota == Quota::Ample && keys == 1 {
        let ready = |name, limits, guarded| Entrant::new(name, headworks::Ready::new(one, limits, guarded));
        entrants.extend([
            Entrant::new("floor", floor::Floor::new()),
            ready("headworks prepared", 1, false),
            ready("headworks prepared, guard", 1, true),
            ready("headworks prepared, 2 limits", 2, false),
            ready("headworks prepared, 3 limits", 3, false),
            Entrant::new(governor::DIRECT, governor::Direct::new(quota)),
            Entrant::new(others::LEAKY_BUCKET, others::LeakyBucket::new()),
        ]);
    }
    entrants.extend([
        Entrant::new(headworks::EXACT, headworks::Exact::new(quota)),
        Entrant::new(governor::KEYED, governor::Keyed::new(quota)),
        Entrant::new(others::LIMITADOR, others::Limitador::new(quota)),
    ]);
    entrants.retain(|entrant| entrant.name == floor::EMPTY || entrant.name.contains(only));
    entrants
}

/// Lets competitors take turns until the time is over.
fn measure(workload: &Workload, time: Duration, only: &str) -> Vec<Row> {
    let entrants = entrants(workload, only);
    for entrant in &entrants {
        // Not measured: the first requests make the buckets, and spend them where that is wanted.
        black_box(entrant.competitor.decide(&workload.every_key()));
    }
    let by_thread: Vec<_> = (0..workload.threads).map(|thread| workload.requests(thread)).collect();
    let mut turns = vec![Vec::new(); entrants.len()];
    let end = Instant::now() + time;
    while turns.iter().any(|turns| turns.len() < LEAST_TURNS) || (!turns.is_empty() && Instant::now() < end) {
        for (entrant, turns) in entrants.iter().zip(&mut turns) {
            turns.push(turn(&*entrant.competitor, workload, &by_thread));
        }
    }
    let row =
        |(entrant, turns): (&Entrant, &Vec<f64>)| Row { name: entrant.name, summary: Summary::of(turns) };
    entrants.iter().zip(&turns).map(row).collect()
}

/// One turn: nanoseconds of processor time for each decision, the mean of the threads. Not of the wall's: what else the machine
/// does is none of theirs, but waiting for each other's cache lines is.
fn turn(competitor: &dyn Competitor, workload: &Workload, by_thread: &[Requests<'_>]) -> f64 {
    let start = Barrier::new(by_thread.len());
    let run = |requests: &Requests<'_>| {
        start.wait();
        let began = ThreadTime::now();
        let admitted = competitor.decide(requests);
        let took = began.elapsed();
        let share = if workload.quota == Quota::Ample { competitor.share() } else { 0.0 };
        let expected = share * requests.len() as f64;
        // A ratio is drawn by chance.
        let off = (admitted as f64 - expected).abs();
        assert!(off <= 0.01 * requests.len() as f64, "{admitted} admitted, not {expected}");
        took
    };
    let took: Vec<Duration> = thread::scope(|scope| {
        let others: Vec<_> = by_thread[1..].iter().map(|requests| scope.spawn(|| run(requests))).collect();
        let first = run(&by_thread[0]);
        others.into_iter().map(|thread| thread.join().expect("it has told why")).chain([first]).collect()
    });
    let requests: usize = by_thread.iter().map(Requests::len).sum();
    took.iter().sum::<Duration>().as_nanos() as f64 / requests as f64
}

fn figure(workload: &Workload, row: &Row) -> Figure {
    let denied = if workload.quota == Quota::Spent { ", denied" } else { "" };
    let order = if workload.order == Order::Other { ", other order" } else { "" };
    Figure {
        name: format!("{}{denied}{order}", row.name),
        threads: workload.threads,
        keys: workload.keys.len(),
        ns: (row.summary.median * 10.0).round() / 10.0,
    }
}

fn show(out: &mut impl Write, workload: &Workload, rows: &[Row]) -> io::Result<()> {
    let of = |name| rows.iter().find(|row| row.name == name).map(|row| row.summary.median);
    let (base, empty) = (of(BASE), of(floor::EMPTY).unwrap_or(0.0));
    let head = [workload.to_string(), "median ns".into(), "min–max".into(), format!("÷ {BASE}")];
    let cells = |row: &Row| {
        let Summary { median, least, greatest } = row.summary;
        let ratio =
            base.map_or_else(|| "-".to_owned(), |base| format!("{:.2}", (median - empty) / (base - empty)));
        [format!("  {}", row.name), format!("{median:.1}"), format!("{least:.1}–{greatest:.1}"), ratio]
    };
    let rows: Vec<_> = [head].into_iter().chain(rows.iter().map(cells)).collect();
    table(out, &rows)?;
    writeln!(out)
}
