//! `rls`: how many requests a second an agent answers over gRPC, beside the gRPC server of throttlecrab.

mod client;
mod server;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

use crate::statistics::{Summary, table};
use client::{Client, Question};
use server::Server;

/// Measure how many requests a second an agent's rate limit service answers, and what each costs its process.
///
/// Beside it stands throttlecrab-server (`cargo install throttlecrab-server --root target/throttlecrab`, which needs Debian's
/// protobuf-compiler). Both count one by one, in memory, and ask the same of one client on one connection: keys in turn, with as many
/// requests in flight. They take turns of a second. What a request costs is the processor time of the server's process.
#[derive(Debug, Args)]
pub(crate) struct RlsArgs {
    /// Print an array of {name, in_flight, keys, per_second, cpu_us} in place of a table
    #[arg(long)]
    json: bool,
    /// The program of Headworks
    #[arg(long, default_value = "target/release/headworks", value_name = "FILE")]
    headworks: PathBuf,
    /// The program of throttlecrab
    #[arg(long, default_value = "target/throttlecrab/bin/throttlecrab-server", value_name = "FILE")]
    throttlecrab: PathBuf,
    /// How long to measure, in all
    #[arg(long, default_value_t = 20, value_name = "S", value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: u64,
    /// Requests in flight
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    in_flight: u16,
    /// Distinct keys
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keys: u32,
}

/// How long a turn is.
const TURN: Duration = Duration::from_secs(1);

/// What was seen of one server, turn by turn.
struct Seen {
    name: &'static str,
    per_second: Vec<f64>,
    /// Processor time of a request, in microseconds.
    cpu_us: Vec<f64>,
}

/// A figure as `--json` prints it.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    in_flight: u16,
    keys: u32,
    per_second: f64,
    cpu_us: f64,
}

/// Runs the command.
pub(crate) fn run(args: &RlsArgs) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let servers = [Server::headworks(&args.headworks)?, Server::throttlecrab(&args.throttlecrab)?];
    let mut clients = Vec::new();
    for server in &servers {
        clients.push(runtime.block_on(Client::connect(server.address()))?);
    }
    let questions = servers.iter().map(|server| server.questions(args.keys)).collect::<Vec<Question>>();
    let mut seen = servers.iter().map(|server| Seen::new(server.name())).collect::<Vec<_>>();
    // The first turns open buckets and caches.
    for place in 0..servers.len() {
        turn(&runtime, &servers[place], &mut clients[place], &questions[place], args.in_flight)?;
    }
    let end = Instant::now() + Duration::from_secs(args.seconds);
    while Instant::now() < end {
        for place in 0..servers.len() {
            let (per_second, cpu_us) =
                turn(&runtime, &servers[place], &mut clients[place], &questions[place], args.in_flight)?;
            seen[place].per_second.push(per_second);
            seen[place].cpu_us.push(cpu_us);
        }
    }
    show(args, &seen)
}

impl Seen {
    fn new(name: &'static str) -> Self {
        Self { name, per_second: Vec::new(), cpu_us: Vec::new() }
    }
}

/// One turn: requests a second, and the processor time of one.
fn turn(
    runtime: &Runtime,
    server: &Server,
    client: &mut Client,
    question: &Question,
    in_flight: u16,
) -> io::Result<(f64, f64)> {
    let (before, began) = (server.processor_time()?, Instant::now());
    let answered = runtime.block_on(client.ask_for(TURN, question, in_flight.into()))?;
    let (elapsed, spent) = (began.elapsed(), server.processor_time()? - before);
    #[allow(clippy::cast_precision_loss, reason = "answers of a second")]
    let answered = answered as f64;
    Ok((answered / elapsed.as_secs_f64(), spent.as_secs_f64() * 1e6 / answered))
}

fn show(args: &RlsArgs, seen: &[Seen]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let rows = seen.iter().map(|seen| (seen.name, Summary::of(&seen.per_second), Summary::of(&seen.cpu_us)));
    if args.json {
        let figure = |(name, rate, cpu): (&'static str, Summary, Summary)| Figure {
            name,
            in_flight: args.in_flight,
            keys: args.keys,
            per_second: rate.median.round(),
            cpu_us: (cpu.median * 100.0).round() / 100.0,
        };
        let figures: Vec<Figure> = rows.map(figure).collect();
        return writeln!(out, "{}", serde_json::to_string_pretty(&figures)?);
    }
    let base = seen.last().map_or(f64::NAN, |seen| Summary::of(&seen.per_second).median);
    let title = format!("{} in flight, {} keys", args.in_flight, args.keys);
    let head =
        [title, "median a second".into(), "min–max".into(), "µs of the server".into(), "÷ last".into()];
    let cells = |(name, rate, cpu): (&'static str, Summary, Summary)| {
        [
            format!("  {name}"),
            format!("{:.0}", rate.median),
            format!("{:.0}–{:.0}", rate.least, rate.greatest),
            format!("{:.1}", cpu.median),
            format!("{:.2}", rate.median / base),
        ]
    };
    let rows: Vec<_> = [head].into_iter().chain(rows.map(cells)).collect();
    table(&mut out, &rows)
}
