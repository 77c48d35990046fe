//! `store`: how many exact checks a second go over Redis.

mod headworks;
mod incr;
mod server;

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::statistics::{Summary, table};
use server::Redis;

/// Measure how many checks of an exact limit a second go over Redis.
///
/// Starts a redis-server of its own. Beside Headworks stands what the simplest limiter does: INCR and EXPIRE of a key in one
/// round trip, over the same client library, as many connections, as many requests in flight, and the same keys. They take turns of
/// half a second.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Print an array of {name, in_flight, keys, per_second} in place of a table
    #[arg(long)]
    json: bool,
    /// How long to measure, in all
    #[arg(long, default_value_t = 20, value_name = "S", value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: u64,
    /// Requests in flight
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    in_flight: u16,
    /// Distinct keys
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keys: u32,
}

/// A limiter in front of a Redis.
trait Competitor: Send + Sync {
    /// Checks one request; tells whether it passes.
    fn check<'a>(&'a self, key: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// How long a turn is.
const TURN: Duration = Duration::from_millis(500);
/// What others are compared with.
const BASE: &str = incr::NAME;

/// A figure as `--json` prints it.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    in_flight: u16,
    keys: u32,
    per_second: f64,
}

/// Runs the command.
pub(crate) fn run(args: &StoreArgs) -> io::Result<()> {
    let redis = Redis::start()?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let competitors: [(&'static str, Arc<dyn Competitor>); 2] = [
        (headworks::NAME, Arc::new(runtime.block_on(headworks::Shared::connect(redis.url()))?)),
        (incr::NAME, Arc::new(runtime.block_on(incr::Counter::connect(redis.url()))?)),
    ];
    let keys: Arc<Vec<String>> = Arc::new((0..args.keys).map(|key| format!("tenant-{key}")).collect());
    let mut turns = [Vec::new(), Vec::new()];
    let end = Instant::now() + Duration::from_secs(args.seconds);
    while Instant::now() < end {
        for ((_, competitor), turns) in competitors.iter().zip(&mut turns) {
            turns.push(turn(&runtime, competitor, &keys, args.in_flight));
        }
    }
    let names = competitors.map(|(name, _)| name);
    let rows = names.into_iter().zip(turns.iter().map(|turns| Summary::of(turns)));
    show(args, &rows.collect::<Vec<_>>())
}

/// One turn: requests a second.
fn turn(runtime: &Runtime, competitor: &Arc<dyn Competitor>, keys: &Arc<Vec<String>>, in_flight: u16) -> f64 {
    runtime.block_on(async {
        let began = Instant::now();
        let mut asking = JoinSet::new();
        for place in 0..usize::from(in_flight) {
            let (competitor, keys) = (competitor.clone(), keys.clone());
            asking.spawn(async move {
                let mut asked = 0_u32;
                for key in keys.iter().cycle().skip(place * 61 % keys.len()) {
                    if began.elapsed() >= TURN {
                        break;
                    }
                    assert!(competitor.check(key).await, "a limiter that is never spent refuses");
                    asked += 1;
                }
                asked
            });
        }
        let asked: u32 = asking.join_all().await.into_iter().sum();
        f64::from(asked) / began.elapsed().as_secs_f64()
    })
}

fn show(args: &StoreArgs, rows: &[(&'static str, Summary)]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        let figure = |(name, summary): &(&'static str, Summary)| Figure {
            name,
            in_flight: args.in_flight,
            keys: args.keys,
            per_second: summary.median.round(),
        };
        let figures: Vec<Figure> = rows.iter().map(figure).collect();
        return writeln!(out, "{}", serde_json::to_string_pretty(&figures)?);
    }
    let base = rows.iter().find(|(name, _)| *name == BASE).map_or(f64::NAN, |(_, summary)| summary.median);
    let title = format!("{} in flight, {} keys", args.in_flight, args.keys);
    let head = [title, "median a second".into(), "min–max".into(), format!("÷ {BASE}")];
    let cells = |(name, summary): &(&'static str, Summary)| {
        let Summary { median, least, greatest } = summary;
        [
            format!("  {name}"),
            format!("{median:.0}"),
            format!("{least:.0}–{greatest:.0}"),
            format!("{:.2}", median / base),
        ]
    };
    let rows: Vec<_> = [head].into_iter().chain(rows.iter().map(cells)).collect();
    table(&mut out, &rows)
}
