//! `decide`: what one decision in memory takes.

mod governor;
mod headworks;
mod workload;

use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use crate::statistics::{Summary, table};
use workload::{Quota, Workload};

/// Measure what one decision in memory takes.
///
/// Each competitor has a token bucket for each key. Admitted requests never spend it; denied ones find it spent. Competitors take
/// turns of some milliseconds; shown are the median and the range of their turns, and the median as a multiple of governor's.
#[derive(Debug, Args)]
pub(crate) struct DecideArgs {
    /// Print an array of {name, threads, keys, ns} in place of tables
    #[arg(long)]
    json: bool,
    /// How long to measure, in all
    #[arg(long, default_value_t = 20, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Measure only competitors whose name contains this, such as exact
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    only: String,
}

/// A rate limiter that is measured.
trait Competitor: Sync {
    /// Decides requests of these keys, one after the other; tells how many it admitted. The loop is here, so that what
    /// is measured is a call that the compiler sees.
    fn decide(&self, keys: &[&String]) -> usize;
}

/// A competitor, ready to run.
struct Entrant {
    name: &'static str,
    competitor: Box<dyn Competitor>,
}

/// What others are compared with.
const BASE: &str = governor::NAME;

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

fn entrants(quota: Quota, only: &str) -> Vec<Entrant> {
    let exact: Box<dyn Competitor> = Box::new(headworks::Exact::new(quota));
    let keyed: Box<dyn Competitor> = Box::new(governor::Keyed::new(quota));
    [(headworks::NAME, exact), (governor::NAME, keyed)]
        .into_iter()
        .filter(|(name, _)| name.contains(only))
        .map(|(name, competitor)| Entrant { name, competitor })
        .collect()
}

/// Lets competitors take turns until the time is over.
fn measure(workload: &Workload, time: Duration, only: &str) -> Vec<Row> {
    let entrants = entrants(workload.quota, only);
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

/// One turn: nanoseconds of each decision of a thread. With several threads that is until the last of them is done, so that
/// threads which the machine runs one after the other do not seem to run side by side.
fn turn(competitor: &dyn Competitor, workload: &Workload, by_thread: &[Vec<&String>]) -> f64 {
    let start = Barrier::new(by_thread.len());
    let run = |requests: &[&String]| {
        start.wait();
        let began = Instant::now();
        let admitted = competitor.decide(requests);
        let ended = Instant::now();
        assert_eq!(admitted, workload.admitted(requests.len()), "a competitor decides wrongly");
        (began, ended)
    };
    let spans: Vec<_> = thread::scope(|scope| {
        let others: Vec<_> = by_thread[1..].iter().map(|requests| scope.spawn(|| run(requests))).collect();
        let first = run(&by_thread[0]);
        others.into_iter().map(|thread| thread.join().expect("it has told why")).chain([first]).collect()
    });
    let began = spans.iter().map(|(began, _)| *began).min();
    let ended = spans.iter().map(|(_, ended)| *ended).max();
    let took = began.zip(ended).map(|(began, ended)| ended - began).unwrap_or_default();
    took.as_nanos() as f64 / by_thread[0].len() as f64
}

fn figure(workload: &Workload, row: &Row) -> Figure {
    let denied = if workload.quota == Quota::Spent { ", denied" } else { "" };
    Figure {
        name: format!("{}{denied}", row.name),
        threads: workload.threads,
        keys: workload.keys.len(),
        ns: (row.summary.median * 10.0).round() / 10.0,
    }
}

fn show(out: &mut impl Write, workload: &Workload, rows: &[Row]) -> io::Result<()> {
    let base = rows.iter().find(|row| row.name == BASE).map(|row| row.summary.median);
    let head = [workload.to_string(), "median ns".into(), "min–max".into(), format!("÷ {BASE}")];
    let cells = |row: &Row| {
        let Summary { median, least, greatest } = row.summary;
        let ratio = base.map_or_else(|| "-".to_owned(), |base| format!("{:.2}", median / base));
        [format!("  {}", row.name), format!("{median:.1}"), format!("{least:.1}–{greatest:.1}"), ratio]
    };
    let rows: Vec<_> = [head].into_iter().chain(rows.iter().map(cells)).collect();
    table(out, &rows)?;
    writeln!(out)
}
