//! `serve`: what a server takes to answer over the wire.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

use crate::peers::{
    Allow, Ask, Connection, Headworks, Incr, LimitReq, Nginx, Place, Process, Programs, Redis, SortedSet,
    Throttle, Throttlecrab, found,
};
use crate::statistics::{Summary, table};

/// Measure how many requests a second a server answers, and what each takes it.
///
/// One client of one thread asks all of them, over as many connections, on each of which one request at a time is under way; the
/// servers are started for it. None of them drops: limits are above what is asked. They take turns of a second; shown are the median
/// and the range of requests a second, and the processor time of the server for each.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Print an array of {name, connections, per_second, server_us} in place of a table
    #[arg(long)]
    json: bool,
    /// Turns that each has
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    turns: u16,
    /// Connections
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: u16,
    #[command(flatten)]
    programs: Programs,
}

const TURN: Duration = Duration::from_secs(1);
/// Distinct keys, of which each connection has one.
const KEYS: usize = 64;
/// More than anybody asks for.
const AMPLE: i64 = 1_000_000_000;

/// A server that is measured.
struct Entrant<'a> {
    name: &'static str,
    process: &'a Process,
    place: &'a Place,
    ask: &'a dyn Ask,
    /// Nothing that is asked is above its limit.
    passes_all: bool,
}

/// What came of a turn.
struct Turn {
    per_second: f64,
    server_us: f64,
}

/// A figure as `--json` prints it.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    connections: u16,
    per_second: f64,
    server_us: f64,
}

/// Runs the command.
pub(crate) fn run(args: &ServeArgs) -> io::Result<()> {
    let programs = &args.programs;
    let headworks = Headworks::start(programs, 1, AMPLE.unsigned_abs())?;
    let redis = found(Redis::start(programs));
    let throttlecrab = found(Throttlecrab::start(programs));
    let nginx = found(Nginx::start(programs, 1_000_000, 100_000));
    let (incr, set) = (Incr { per_second: AMPLE }, SortedSet { per_second: 1000, unique: true });
    let throttle = Throttle { per_second: AMPLE, burst: AMPLE };
    let (tcp, unix) = &headworks.agents[0];
    let entrant = |name, process, place, ask| Entrant { name, process, place, ask, passes_all: true };
    let mut entrants = vec![
        entrant("headworks /allow, TCP", headworks.agent(), tcp, &Allow as &dyn Ask),
        entrant("headworks /allow, Unix socket", headworks.agent(), unix, &Allow),
    ];
    if let Some(Redis { process, tcp, unix, .. }) = &redis {
        entrants.extend([
            entrant("redis INCR, TCP", process, tcp, &incr),
            entrant("redis INCR, Unix socket", process, unix, &incr),
            // A set as large as a limit may be at most: beyond that it is refused, and its members counted all the same.
            Entrant { passes_all: false, ..entrant("redis sorted set, TCP", process, tcp, &set) },
        ]);
    }
    let others = throttlecrab.iter();
    entrants.extend(
        others.map(|peer| entrant("throttlecrab-server HTTP, TCP", &peer.process, &peer.tcp, &throttle)),
    );
    entrants.extend(
        nginx.iter().map(|peer| entrant("nginx limit_req, TCP", &peer.process, &peer.tcp, &LimitReq)),
    );
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut turns: Vec<Vec<Turn>> = entrants.iter().map(|_| Vec::new()).collect();
    for _ in 0..args.turns {
        for (entrant, turns) in entrants.iter().zip(&mut turns) {
            turns.push(turn(&runtime, entrant, args.connections.into())?);
        }
    }
    show(args, &entrants, &turns)
}

fn turn(runtime: &Runtime, entrant: &Entrant<'_>, connections: usize) -> io::Result<Turn> {
    let before = entrant.process.cpu()?;
    let (answered, took) = runtime.block_on(ask_all(entrant, connections))?;
    let server = entrant.process.cpu()? - before;
    Ok(Turn { per_second: answered as f64 / took, server_us: server * 1e6 / answered as f64 })
}

/// Asks on all connections for the time of a turn: how many answers came, and in how many seconds.
async fn ask_all(entrant: &Entrant<'_>, connections: usize) -> io::Result<(u64, f64)> {
    let began = Instant::now();
    let mut asking = Vec::new();
    for number in 0..connections {
        let key = format!("caller-{}", number % KEYS);
        asking.push(ask_on(entrant, key, began));
    }
    let answered: u64 = futures_util::future::try_join_all(asking).await?.into_iter().sum();
    Ok((answered, began.elapsed().as_secs_f64()))
}

async fn ask_on(entrant: &Entrant<'_>, key: String, began: Instant) -> io::Result<u64> {
    let mut connection = Connection::open(entrant.place).await?;
    let mut answered = 0;
    while began.elapsed() < TURN {
        // What is refused, or no answer to such a request at all, is not what is measured.
        if !connection.ask(entrant.ask, &entrant.ask.request(&key)).await? && entrant.passes_all {
            return Err(io::Error::other(format!("{}: a request was refused", entrant.name)));
        }
        answered += 1;
    }
    Ok(answered)
}

fn show(args: &ServeArgs, entrants: &[Entrant<'_>], turns: &[Vec<Turn>]) -> io::Result<()> {
    let of =
        |turns: &[Turn], figure: fn(&Turn) -> f64| Summary::of(&turns.iter().map(figure).collect::<Vec<_>>());
    let rows = entrants.iter().zip(turns).map(|(entrant, turns)| {
        (entrant.name, of(turns, |turn| turn.per_second), of(turns, |turn| turn.server_us))
    });
    let mut out = io::stdout().lock();
    if args.json {
        let figures: Vec<Figure> = rows
            .map(|(name, per_second, server)| Figure {
                name,
                connections: args.connections,
                per_second: per_second.median.round(),
                server_us: (server.median * 100.0).round() / 100.0,
            })
            .collect();
        return writeln!(out, "{}", serde_json::to_string_pretty(&figures)?);
    }
    let title = format!("{} connections", args.connections);
    let mut cells = vec![[title, "median a second".into(), "min–max".into(), "server µs each".into()]];
    cells.extend(rows.map(|(name, per_second, server)| {
        let Summary { median, least, greatest } = per_second;
        [
            format!("  {name}"),
            format!("{median:.0}"),
            format!("{least:.0}–{greatest:.0}"),
            format!("{:.2}", server.median),
        ]
    }));
    table(&mut out, &cells)
}
