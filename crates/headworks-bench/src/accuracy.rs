//! `accuracy`: how much of a limit is admitted when more is asked for.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::peers::{
    Allow, Ask, Connection, Headworks, Incr, LimitReq, Nginx, Place, Programs, Redis, SortedSet, Throttle,
    Throttlecrab, found,
};
use crate::statistics::table;

/// Measure how much of a limit is admitted when three times as much is asked for.
///
/// Four clients ask for 750 a second each, under a limit of 1000 a second for all of them together: of Headworks each asks an agent of
/// its own, of the others all ask one server. Shown is what was admitted over the limit, in all and from the third second on,
/// and in the second in which it was most.
#[derive(Debug, Args)]
pub(crate) struct AccuracyArgs {
    /// Print an array of {name, admitted, settled, worst_second} in place of a table
    #[arg(long)]
    json: bool,
    /// Seconds
    #[arg(long, default_value_t = 10, value_name = "S", value_parser = clap::value_parser!(u64).range(4..=600))]
    seconds: u64,
    #[command(flatten)]
    programs: Programs,
}

const LIMIT: i64 = 1000;
const CLIENTS: usize = 4;
/// A second, of each client.
const RATE: u32 = 750;
/// From this second on it should have settled.
const SETTLED: usize = 2;

/// A figure as `--json` prints it; all over the limit.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    admitted: f64,
    settled: f64,
    worst_second: f64,
}

impl Figure {
    fn of(name: &'static str, by_second: &[u64]) -> Self {
        let over = |admitted: &[u64]| {
            let all: u64 = admitted.iter().sum();
            (1000.0 * all as f64 / (LIMIT * admitted.len() as i64) as f64).round() / 1000.0
        };
        let worst = by_second.iter().max().map_or(0.0, |most| *most as f64 / LIMIT as f64);
        Self { name, admitted: over(by_second), settled: over(&by_second[SETTLED..]), worst_second: worst }
    }
}

/// Runs the command: one after the other, so that none has the processor of another.
pub(crate) fn run(args: &AccuracyArgs) -> io::Result<()> {
    let (programs, seconds) = (&args.programs, args.seconds);
    let mut figures = Vec::new();
    let mut measure = |name, places: &[&Place], ask: Arc<dyn Ask>| -> io::Result<()> {
        figures.push(Figure::of(name, &admitted(places, &ask, seconds)?));
        Ok(())
    };
    {
        let headworks = Headworks::start(programs, CLIENTS, LIMIT.unsigned_abs())?;
        // A fleet that has just come up learns what is asked before it drops by it.
        std::thread::sleep(Duration::from_secs(15));
        let places: Vec<&Place> = headworks.agents.iter().map(|(tcp, _)| tcp).collect();
        measure("headworks, 4 agents", &places, Arc::new(Allow))?;
    }
    if let Some(redis) = found(Redis::start(programs)) {
        let of = |unique| Arc::new(SortedSet { per_second: LIMIT, unique });
        measure("redis INCR, fixed window", &[&redis.tcp], Arc::new(Incr { per_second: LIMIT }))?;
        measure("redis sorted set, by millisecond", &[&redis.tcp], of(false))?;
        measure("redis sorted set, unique members", &[&redis.tcp], of(true))?;
    }
    if let Some(throttlecrab) = found(Throttlecrab::start(programs)) {
        let of = |burst| Arc::new(Throttle { per_second: LIMIT, burst });
        measure("throttlecrab-server, burst of a second", &[&throttlecrab.tcp], of(LIMIT))?;
    }
    if let Some(throttlecrab) = found(Throttlecrab::start(programs)) {
        let of = |burst| Arc::new(Throttle { per_second: LIMIT, burst });
        measure("throttlecrab-server, burst of a tenth", &[&throttlecrab.tcp], of(LIMIT / 10))?;
    }
    if let Some(nginx) = found(Nginx::start(programs, LIMIT, LIMIT / 10)) {
        measure("nginx limit_req, burst of a tenth", &[&nginx.tcp], Arc::new(LimitReq))?;
    }
    show(args, &figures)
}

/// What was admitted, by second.
fn admitted(places: &[&Place], ask: &Arc<dyn Ask>, seconds: u64) -> io::Result<Vec<u64>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let began = Instant::now();
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let connection = Connection::open(places[client % places.len()]).await?;
            clients.spawn(one_client(connection, ask.clone(), began, client, seconds));
        }
        let mut by_second = vec![0; usize::try_from(seconds).unwrap_or(usize::MAX)];
        while let Some(client) = clients.join_next().await {
            let client = client.map_err(io::Error::other)??;
            by_second.iter_mut().zip(client).for_each(|(all, one)| *all += one);
        }
        Ok(by_second)
    })
}

async fn one_client(
    mut connection: Connection,
    ask: Arc<dyn Ask>,
    began: Instant,
    client: usize,
    seconds: u64,
) -> io::Result<Vec<u64>> {
    let every = Duration::from_secs(1) / RATE;
    let mut by_second = vec![0; usize::try_from(seconds).unwrap_or(usize::MAX)];
    // Clients do not ask all at one moment.
    let first = began + every.mul_f64(client as f64 / CLIENTS as f64);
    let mut turns = interval_at(first, every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Burst);
    loop {
        let turn = turns.tick().await;
        let Some(second) =
            usize::try_from((turn - began).as_secs()).ok().and_then(|second| by_second.get_mut(second))
        else {
            return Ok(by_second);
        };
        *second += u64::from(connection.ask(&*ask, &ask.request("all")).await?);
    }
}

fn show(args: &AccuracyArgs, figures: &[Figure]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        return writeln!(out, "{}", serde_json::to_string_pretty(figures)?);
    }
    let title = format!("admitted / limit over {} s", args.seconds);
    let mut cells = vec![[title, "in all".into(), "from the 3rd".into(), "worst second".into()]];
    cells.extend(figures.iter().map(|figure| {
        let Figure { name, admitted, settled, worst_second } = figure;
        [format!("  {name}"), format!("{admitted:.3}"), format!("{settled:.3}"), format!("{worst_second:.2}")]
    }));
    table(&mut out, &cells)
}
